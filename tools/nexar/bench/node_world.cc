#include "bench/node_world.h"

#include <cstddef>
#include <stdexcept>

#include <fmt/format.h>

namespace nexar::bench {
namespace {

constexpr int kMessageLanes[] = {2, 3};  // data and bulk, in the order of LinkTraffic

}  // namespace

std::vector<double> NodeWorld::gather(std::span<const double> own) {
  std::vector<double> all(rank() == 0 ? own.size() * static_cast<std::size_t>(size()) : 0);
  group_.gather(own.data(), all.data(), own.size(), DataType::kF64, 0).value();
  return all;
}

double NodeWorld::from_first(double value) {
  group_.broadcast(&value, 1, DataType::kF64, 0).value();
  return value;
}

Carrier::Carrier(const Node& node) : node_(node), before_(ways()) {}

std::vector<Carrier::Way> Carrier::ways() const {
  std::uint64_t quic = 0;
  std::uint64_t shm = 0;
  const NodeCounters counters = node_.counters().value();
  for (const PeerCounters& peer : counters.peers)
    for (const int lane : kMessageLanes)
      (peer.transport == "shm" ? shm : quic) += peer.traffic.bytes_sent[lane] + peer.traffic.bytes_received[lane];
  return {{"quic", quic}, {"shm", shm}};
}

std::string Carrier::name() const {
  const std::vector<Way> now = ways();
  std::uint64_t most = 0;
  std::string name = "none";
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::uint64_t passed = now[i].bytes - before_[i].bytes;
    if (passed <= most) continue;
    most = passed;
    name = now[i].name;
  }
  return name;
}

void require_carrier(Transport asked, const std::string& carrier, std::uint64_t bytes) {
  constexpr std::uint64_t kEagerBytes = 64 << 10;
  const char* wanted = asked == Transport::kShm ? "shm" : asked == Transport::kQuic ? "quic" : asked == Transport::kTcp ? "tcp" : "";
  if (*wanted == '\0' || carrier == "none" || carrier == wanted || (asked == Transport::kTcp && bytes <= kEagerBytes)) return;
  throw std::runtime_error(fmt::format("--transport: {} was asked for, and messages of {} bytes went by {}", wanted, bytes, carrier));
}

}  // namespace nexar::bench
