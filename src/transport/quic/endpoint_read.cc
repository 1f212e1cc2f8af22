// How packets find their connection, and strangers their bounds.
#include <algorithm>
#include <bit>

#include "transport/quic/admission.h"
#include "transport/quic/callbacks.h"
#include "transport/quic/endpoint.h"

namespace nexar::transport::quic {
namespace {

// Super-datagrams that are read before anything is written: acknowledgements that wait longer starve the sender.
constexpr int kReadsBeforeWriting = 4;

// A datagram shorter than this is most likely the last of what is there; looking for another would cost more than it finds.
constexpr std::size_t kMoreLikelyBytes = 16u << 10;

const std::uint8_t* data_of(base::ByteView bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

}  // namespace

bool Endpoint::read_some() {
  for (int i = 0; i < kReadsBeforeWriting; ++i) {
    const Result<io::Received> received = socket_.receive(receive_buffer_);
    if (!received) {
      ++counters_.receive_errors;
      return i > 0;
    }
    if (received->outcome == io::ReceiveOutcome::kBlocked) return i > 0;
    if (received->outcome == io::ReceiveOutcome::kRefused) continue;  // of a packet to somebody who is gone: silence tells that as well
    environment_.loop.refresh();                                      // round trips are shorter than a turn, and the window depends on them
    const bool short_datagram = received->bytes.size() < kMoreLikelyBytes;
    for (base::ByteView rest = received->bytes; !rest.empty();) {
      const std::size_t size = std::min(received->segment, rest.size());
      read_packet(rest.first(size), received->from);
      rest = rest.subspan(size);
    }
    if (short_datagram) return true;
  }
  return true;
}

void Endpoint::read_packet(base::ByteView packet, const io::Address& from) {
  ngtcp2_version_cid ids;
  if (const int code = ngtcp2_pkt_decode_version_cid(&ids, data_of(packet), packet.size(), kConnectionIdBytes); code != 0) {
    ++counters_.packets_ignored;
    if (code == NGTCP2_ERR_VERSION_NEGOTIATION && acceptor_ != nullptr) send_versions(ids, from);
    return;
  }
  const std::uint64_t key = key_of(ids.dcid, ids.dcidlen);
  if (const auto dead = tombstones_.find(key); dead != tombstones_.end()) return answer_for(*dead->second);
  const auto known = by_id_.find(key);
  Connection* connection = known != by_id_.end() ? known->second : accept(packet, from);
  if (connection == nullptr) return;
  connection->read(packet, environment_.loop.now());
  mark_dirty(*connection);
}

// Tells a caller with a version of QUIC that we do not speak which one we do. Nothing is remembered, and the answer is far shorter than the
// question, which ngtcp2 has found to be long enough for a first packet. `nexar doctor` asks on purpose: who answers is there.
void Endpoint::send_versions(const ngtcp2_version_cid& ids, const io::Address& to) {
  const std::uint32_t spoken = NGTCP2_PROTO_VER_V1;
  std::array<std::byte, 128> packet;
  const ngtcp2_ssize size =
      ngtcp2_pkt_write_version_negotiation(reinterpret_cast<std::uint8_t*>(packet.data()), packet.size(), random().number<std::uint8_t>(),
                                           ids.scid, ids.scidlen, ids.dcid, ids.dcidlen, &spoken, 1);
  if (size < 0) return;  // ids that are too long to be any
  if (!socket_.send(base::ByteView(packet).first(static_cast<std::size_t>(size)), static_cast<std::size_t>(size), to))
    ++counters_.send_errors;
}

// The peer goes on sending, so it may not have our closing packet; once, twice, four times heard it is told again.
void Endpoint::answer_for(Tombstone& tombstone) {
  if (std::has_single_bit(++tombstone.heard) && !tombstone.packet.empty())
    if (!socket_.send(tombstone.packet, tombstone.packet.size(), tombstone.peer)) ++counters_.send_errors;
}

// A packet of no connection that we know: a stranger's first, or nothing.
Connection* Endpoint::accept(base::ByteView packet, const io::Address& from) {
  ngtcp2_pkt_hd header;
  if (acceptor_ == nullptr || ngtcp2_accept(&header, data_of(packet), packet.size()) != 0) {
    ++counters_.packets_ignored;
    return nullptr;
  }
  const std::optional<ngtcp2_cid> original = original_dcid(header, from);
  switch (admit(pending_, original.has_value())) {
    case Admission::kRetry: send_retry(header, from); return nullptr;
    case Admission::kReplaceOldest: drop_oldest_pending(); break;
    case Admission::kAdmit: break;
  }
  auto connection = std::make_unique<Connection>(*this, from);
  const Connection::FirstPacket first{header, original ? &*original : nullptr};
  ++pending_;
  connections_.push_back(std::move(connection));
  Connection& accepted = *connections_.back();
  if (auto started = accepted.start_server(*tls_, verifier_, first, acceptor_->takes_observers(), environment_.loop.now()); !started) {
    ++counters_.packets_ignored;
    bury(accepted);
    return nullptr;
  }
  return &accepted;
}

// From the token of a Retry, what the client first called us; nothing when there is no token, or it is not ours, too old or for another
// address.
std::optional<ngtcp2_cid> Endpoint::original_dcid(const ngtcp2_pkt_hd& header, const io::Address& from) const {
  const auto token = token_of(header);
  if (token.empty() || token[0] != NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY) return std::nullopt;
  ngtcp2_cid original;
  const auto now = static_cast<ngtcp2_tstamp>(environment_.loop.now().time_since_epoch().count());
  const int code = ngtcp2_crypto_verify_retry_token(&original, token.data(), token.size(), data_of(retry_secret_), retry_secret_.size(),
                                                    header.version, from.data(), from.size(), &header.dcid,
                                                    static_cast<ngtcp2_duration>(kRetryTokenLifetime.count()), now);
  if (code != 0) return std::nullopt;
  return original;
}

// Asks the client to come back with proof that it is at that address. Nothing is remembered: everything is in the token.
void Endpoint::send_retry(const ngtcp2_pkt_hd& header, const io::Address& to) {
  const ngtcp2_cid id = random_id(random());
  std::array<std::uint8_t, NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN> token;
  const auto now = static_cast<ngtcp2_tstamp>(environment_.loop.now().time_since_epoch().count());
  const ngtcp2_ssize token_size = ngtcp2_crypto_generate_retry_token(token.data(), data_of(retry_secret_), retry_secret_.size(),
                                                                     header.version, to.data(), to.size(), &id, &header.dcid, now);
  if (token_size < 0) return;
  std::array<std::byte, 512> packet;
  const ngtcp2_ssize size = ngtcp2_crypto_write_retry(reinterpret_cast<std::uint8_t*>(packet.data()), packet.size(), header.version,
                                                      &header.scid, &id, &header.dcid, token.data(), static_cast<std::size_t>(token_size));
  if (size < 0) return;
  ++counters_.retries_sent;
  if (!socket_.send(base::ByteView(packet).first(static_cast<std::size_t>(size)), static_cast<std::size_t>(size), to))
    ++counters_.send_errors;
}

void Endpoint::drop_oldest_pending() {
  const auto oldest = std::find_if(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection->is_server() && !connection->authenticated() && connection->state() != Connection::State::kEnded;
  });
  if (oldest == connections_.end()) return;
  ++counters_.handshakes_dropped;
  std::erase(dirty_, oldest->get());
  bury(**oldest);
}

}  // namespace nexar::transport::quic
