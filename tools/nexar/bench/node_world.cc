#include "bench/node_world.h"

#include <cstddef>
#include <stdexcept>

#include <fmt/format.h>

namespace nexar::bench {

std::vector<double> NodeWorld::gather(std::span<const double> own) {
  std::vector<double> all(rank() == 0 ? own.size() * static_cast<std::size_t>(size()) : 0);
  group_.gather(own.data(), all.data(), own.size(), DataType::kF64, 0).value();
  return all;
}

double NodeWorld::from_first(double value) {
  group_.broadcast(&value, 1, DataType::kF64, 0).value();
  return value;
}

std::string transport_used(const Node& node) { return node.size() == 1 ? "none" : "quic"; }

void require_transport(const Node& node) {
  const Transport asked = node.config().transport;
  if (node.size() == 1 || asked == Transport::kAuto || asked == Transport::kNet || asked == Transport::kQuic) return;
  throw std::runtime_error(
      fmt::format("--transport: {} was asked for, and {} is used", asked == Transport::kShm ? "shm" : "tcp", transport_used(node)));
}

}  // namespace nexar::bench
