#include "wire/info_messages.h"

#include <cstring>

namespace nexar::wire {
namespace {

void get_proof(std::array<std::byte, kProofBytes>& proof, Reader& reader) {
  if (const base::ByteView bytes = reader.bytes(kProofBytes); !bytes.empty()) std::memcpy(proof.data(), bytes.data(), kProofBytes);
}

// Every counter, in the order of the wire: one list for both directions.
template <typename C, typename F>
void each_counter(C& counters, F each) {
  for (auto* counter :
       {&counters.handshakes_refused, &counters.handshakes_dropped, &counters.retries_sent, &counters.packets_ignored,
        &counters.protocol_errors, &counters.frames_of_other_epochs, &counters.rpc_calls, &counters.rpc_served, &counters.rpc_refused,
        &counters.rpc_late_answers, &counters.rpc_calling, &counters.rpc_serving, &counters.rpc_serving_bytes, &counters.rpc_threads})
    each(*counter);
}

template <typename L, typename F>
void each_lane_counter(L& lanes, F each) {
  for (auto& lane : lanes)
    for (auto* counter : {&lane.frames_sent, &lane.bytes_sent, &lane.frames_received, &lane.bytes_received}) each(*counter);
}

}  // namespace

void InfoRequest::put(Header&, Writer& writer) const {
  writer.bytes(proof);
  writer.number(static_cast<std::uint8_t>(view ? 1 : 0));
}

InfoRequest InfoRequest::get(const Header&, Reader& reader) {
  InfoRequest request;
  get_proof(request.proof, reader);
  const auto view = reader.number<std::uint8_t>();
  if (view > 1) reader.fail("neither asks for the world nor does not");
  request.view = view == 1;
  return request;
}

const char* InfoAnswer::fault() const {
  if (rank < -1) return "is of a rank that cannot be";
  return peers >= kWorldMax ? "announces more peers than a world has" : nullptr;
}

void InfoAnswer::put(Header&, Writer& writer) const {
  writer.bytes(proof);
  writer.number(rank);
  writer.number(peers);
  writer.text(name, kNodeNameBytesMax);
  each_counter(counters, [&](std::uint64_t counter) { writer.number(counter); });
}

InfoAnswer InfoAnswer::get(const Header&, Reader& reader) {
  InfoAnswer answer;
  get_proof(answer.proof, reader);
  answer.rank = reader.number<Rank>();
  answer.peers = reader.number<std::uint32_t>();
  answer.name = reader.text(kNodeNameBytesMax);
  each_counter(answer.counters, [&](std::uint64_t& counter) { counter = reader.number<std::uint64_t>(); });
  return answer;
}

const char* InfoPeer::fault() const {
  if (rank < 0) return "is about a rank that cannot be";
  if (state < State::kLinked || state > State::kLost) return "has a state that does not exist";
  if (link > Way::kQuic) return "has a link of a kind that does not exist";
  if (bulk > Way::kTcp) return "has a way of bulk that does not exist";
  return tcp_lanes > kTcpLanesMax ? "has more TCP lanes than a link may have" : nullptr;
}

void InfoPeer::put(Header&, Writer& writer) const {
  writer.number(rank);
  for (const auto value : {static_cast<std::uint8_t>(state), static_cast<std::uint8_t>(link), static_cast<std::uint8_t>(bulk)})
    writer.number(value);
  writer.text(address, kAddressTextBytesMax);
  writer.text(no_shm, kTextBytesMax);
  writer.text(no_tcp, kTextBytesMax);
  writer.number(round_trip_ns);
  each_lane_counter(lanes, [&](std::uint64_t counter) { writer.number(counter); });
  writer.number(tcp_lanes);
  writer.number(tcp_lanes_lost);
  writer.number(tcp_bytes_sent);
  writer.number(tcp_bytes_received);
}

InfoPeer InfoPeer::get(const Header&, Reader& reader) {
  InfoPeer peer;
  peer.rank = reader.number<Rank>();
  peer.state = static_cast<State>(reader.number<std::uint8_t>());
  peer.link = static_cast<Way>(reader.number<std::uint8_t>());
  peer.bulk = static_cast<Way>(reader.number<std::uint8_t>());
  peer.address = reader.text(kAddressTextBytesMax);
  peer.no_shm = reader.text(kTextBytesMax);
  peer.no_tcp = reader.text(kTextBytesMax);
  peer.round_trip_ns = reader.number<std::uint64_t>();
  each_lane_counter(peer.lanes, [&](std::uint64_t& counter) { counter = reader.number<std::uint64_t>(); });
  peer.tcp_lanes = reader.number<std::uint32_t>();
  peer.tcp_lanes_lost = reader.number<std::uint64_t>();
  peer.tcp_bytes_sent = reader.number<std::uint64_t>();
  peer.tcp_bytes_received = reader.number<std::uint64_t>();
  return peer;
}

}  // namespace nexar::wire
