// One process's place in a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nexar/config.h"
#include "nexar/export.h"
#include "nexar/group.h"
#include "nexar/ids.h"
#include "nexar/result.h"

namespace nexar {

// What has passed a link, for each lane in the order control, rpc, data, bulk.
struct LinkTraffic {
  std::uint64_t frames_sent[4] = {};
  std::uint64_t bytes_sent[4] = {};
  std::uint64_t frames_received[4] = {};
  std::uint64_t bytes_received[4] = {};
};

struct LocalOptions {
  Config config;

  // The network namespace and address of each node; empty: here, on loopback. Entering a namespace needs root.
  struct Place {
    std::string network_namespace;  // a path such as /run/netns/NAME
    std::string address;            // without a port: 10.0.0.1, fd00::1
  };
  std::vector<Place> places;
};

// Move-only; owns its links and threads. Groups and operations keep what they need of it, but end when it is closed. The destructor closes.
class NEXAR_API Node {
 public:
  // A world of `n` nodes in this process, linked over real QUIC, with an authority in memory: for tests, and to try things out. Node i has
  // rank i.
  static Result<std::vector<Node>> local(int n, const LocalOptions& options = {});

  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();

  Rank rank() const;
  int size() const;
  Group world() const;
  const Config& config() const;

  // The time that a ping to `peer` and its answer take now, on the control lane.
  Result<std::chrono::nanoseconds> ping(Rank peer) const;

  Result<LinkTraffic> traffic(Rank peer) const;

  // Sends what is queued, says goodbye, and waits for acknowledgements, a few seconds at most. Operations that have not ended end with
  // kCancelled. Idempotent.
  Result<void> close();

  // For the runtime.
  explicit Node(std::shared_ptr<runtime::NodeCore> core);

 private:
  std::shared_ptr<runtime::NodeCore> core_;
};

}  // namespace nexar
