// What a node takes on in calls. Each is a field of Config.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nexar::rpc {

// For each peer, and apart for calls that this node makes and calls that it serves.
struct PeerLimits {
  std::uint32_t calls = 1024;          // several for every thread that a program is likely to have
  std::uint64_t bytes = 256ull << 20;  // arguments and results that this node holds for them
};

struct PoolLimits {
  std::uint32_t workers = 4;   // handlers that run at once
  std::uint32_t spares = 64;   // threads that stand in for workers that wait
  std::uint32_t queue = 1024;  // calls that wait for a worker
};

struct Limits {
  PeerLimits peer{};
  PoolLimits pool{};
};

// Answers that wait for room in a peer's lane: a result of the longest for each call that it may have here, and this much for calls that
// were refused. A peer that lets more pile up does not read.
inline constexpr std::size_t kRefusalsBytesMax = 4u << 20;

}  // namespace nexar::rpc
