// Real networks on one machine, for tests: network namespaces joined by virtual cables, with losses, limits and cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "io/address.h"
#include "nexar/result.h"

namespace nexar::test {

enum class Protocol : std::uint8_t {
  kUdp,
  kTcp,
  kTcpConnections,  // only those that others begin, as a host's firewall has it
};

enum class Blocking : std::uint8_t {
  kDropped,   // nobody is told, as behind most firewalls
  kRejected,  // the sender is: port unreachable for UDP, a reset for TCP
};

struct NamespacesOptions {
  int count = 2;
  int subnets = 1;  // more than one: namespace i is in subnet i % subnets, and a router forwards between them
  int mtu = 1500;

  // False: every packet crosses the cable by itself, as through a plain network card. Otherwise up to 64 KiB cross in one piece, and a loss
  // takes the whole of it.
  bool offload = true;
};

// `count` network namespaces, each with one interface, all on one Ethernet.
//
//   two:    [0] eth0 ---cable--- eth0 [1]           more:   [0] eth0 ---cable--- p0 \                      .
//                                                           [1] eth0 ---cable--- p1  >- br0 in a namespace of its own
//                                                           [2] eth0 ---cable--- p2 /
//
// With subnets, br0, br1, ... are the router's interfaces, one for each.
//
// Namespace i has the addresses 10.77.S.(i+1) and fd00:77:0:S::(i+1), S being its subnet, 0 where there is only one. A process or a socket
// gets in by path() and io::in_network_namespace. The destructor removes everything; what a killed test left is removed when the next one
// creates its own. Setters replace what was set before.
//
// Thread: one at a time. Owned by the test.
class Namespaces {
 public:
  using Options = NamespacesOptions;

  // More than any test of ours needs, and few enough to make in a second.
  static constexpr int kCountMax = 64;

  // Why namespaces cannot be had here (no root, no tool, no kernel support), for GTEST_SKIP; nothing when they can.
  static std::optional<std::string> missing();

  // Returns when every cable carries packets.
  static Result<Namespaces> create(const Options& options = {});

  Namespaces(Namespaces&&) = default;
  Namespaces& operator=(Namespaces&&) = delete;
  ~Namespaces();

  int size() const { return count_; }
  std::string name(int i) const;  // as `ip netns` knows it
  std::string path(int i) const;  // /run/netns/NAME
  std::string router() const;     // the name of the namespace between subnets
  io::Address v4(int i, std::uint16_t port = 0) const;
  io::Address v6(int i, std::uint16_t port = 0) const;

  // What each namespace may send. `burst` is what goes out at once after a pause, at least a packet and, for high rates, at least what
  // passes in one tick of the kernel's timer; what would wait longer than `latency` is dropped.
  Result<void> set_rate(std::uint64_t bits_per_second, std::size_t burst_bytes, base::Duration latency);
  Result<void> clear_rate();

  // Drops this share, 0 to 100 in steps of 0.01, of the UDP and TCP packets that arrive at each namespace, at random.
  Result<void> set_loss(double percent);

  // What TCP does there by default; an error where the kernel has no such thing.
  Result<void> set_congestion_control(const std::string& name);

  // Drops UDP packets that are longer than this, headers included, and tells nobody: a path that is narrower than its interfaces. 0 drops
  // none. Without offload, because longer pieces than packets cross the cable otherwise.
  Result<void> set_black_hole(std::size_t ip_bytes);

  // Nothing of that protocol arrives at namespace i, or at any, until unblocked.
  Result<void> block(int i, Protocol protocol, Blocking how = Blocking::kDropped);
  Result<void> block(Protocol protocol, Blocking how = Blocking::kDropped);
  Result<void> unblock(Protocol protocol);

  // Takes the interface of namespace i down, and up again with the addresses it had. With two namespaces the other one's cable loses its
  // carrier.
  Result<void> link_down(int i);
  Result<void> link_up(int i);

  // Everything under /run/netns that was made by this class, in this process or in another, alive or dead.
  static std::vector<std::string> existing();

 private:
  // What was done to one namespace.
  struct State {
    std::map<Protocol, Blocking> blocked;
    bool is_down = false;
  };

  Namespaces(std::string prefix, int count, int subnets)
      : prefix_(std::move(prefix)), count_(count), subnets_(subnets), states_(static_cast<std::size_t>(count)) {}

  State& state(int i) { return states_.at(static_cast<std::size_t>(i)); }
  bool has_bridge() const { return count_ > 2 || subnets_ > 1; }
  int subnet(int i) const { return i % subnets_; }
  std::string bridge() const { return prefix_ + "-bridge"; }
  Result<void> build(const Options& options);
  Result<void> add(const std::string& name);
  Result<void> join(const Options& options);
  Result<void> add_subnet(int subnet, const std::string& mtu);
  Result<void> add_routes(int i);
  Result<void> configure(int i, const Options& options);
  Result<void> apply_filter(int i);
  Result<void> apply_filters();

  std::string prefix_;
  int count_;
  int subnets_;
  std::vector<State> states_;
  int loss_ = 0;  // of kLossSteps packets
  bool limited_ = false;
  std::size_t black_hole_ = 0;        // the longest packet that passes; 0: all do
  std::vector<std::string> created_;  // to be removed; empty after a move
};

}  // namespace nexar::test
