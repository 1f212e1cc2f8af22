// Ranks that run collectives over memory, in one thread, in a random order, with time that only the test moves.
//
// As unkind as a mesh may be: small messages are copied when sent and come before or after their receive is posted, in pieces of any
// length; large ones move when both ends are ready, in two runs of pieces, straight from the sender's memory, and their sends end some time
// after. Frames about operations overtake and are overtaken.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "collective/collectives.h"
#include "mesh/step.h"
#include "nexar/buffer_pool.h"

namespace nexar::collective::test {

class Network;

class MemoryPort final : public mesh::StepPort {
 public:
  MemoryPort(Network& network, Rank self) : network_(network), self_(self) {}

  void add_group(mesh::GroupId) override {}
  void enter(mesh::StepOperation& operation) override;
  void send(mesh::StepOperation& operation, mesh::StepSend& send) override;
  void receive(mesh::StepOperation& operation, mesh::StepReceive& receive) override;
  void leave(mesh::StepOperation& operation) override;
  void skip(mesh::GroupId group, Sequence sequence) override { last_entered_[group] = sequence; }
  void announce(mesh::StepOperation&) override {}
  void tell(Rank peer, mesh::GroupId group, const wire::Verdict& verdict) override;
  void tell(Rank peer, mesh::GroupId group, const wire::Probe& probe) override;
  void tell(Rank peer, mesh::GroupId group, const wire::ProbeReply& reply) override;
  void early_sources(const mesh::StepOperation& operation, std::vector<Rank>& peers) const override;
  const Error* departure(Rank rank) const override { return departed && departed_rank == rank ? &*departed : nullptr; }
  bool is_gone(Rank) const override { return false; }
  const Error* verdict() const override { return verdict_ ? &*verdict_ : nullptr; }

  // The epoch is over: everything ends with this.
  void revoke(const Error& verdict);

  bool is_mute = false;  // probes are not answered

  // Who has left.
  std::optional<Error> departed;
  Rank departed_rank = -1;

 private:
  friend class Network;
  using Key = std::tuple<mesh::GroupId, Sequence>;

  struct Kept {
    Rank from;
    Sequence sequence;
    mesh::GroupId group;
    std::uint32_t part;
    std::uint64_t fingerprint;
    std::vector<std::byte> bytes;
  };

  void arrive(Kept message);
  bool offer(mesh::StepOperation& operation, const Kept& message);
  void deliver(mesh::StepOperation& operation, mesh::StepReceive& receive, const std::vector<std::byte>& bytes);
  mesh::StepOperation* find(mesh::GroupId group, Sequence sequence);

  Network& network_;
  const Rank self_;
  std::map<Key, mesh::StepOperation*> operations_;
  std::map<mesh::GroupId, Sequence> last_entered_;
  std::vector<Kept> kept_;
  std::optional<Error> verdict_;
};

class Network {
 public:
  static constexpr mesh::GroupId kGroup = 7;

  // Messages of up to `eager_bytes` are small.
  Network(Rank size, std::uint64_t seed, std::uint64_t eager_bytes, const Timeouts& timeouts = {}, const plan::Hosts& hosts = {});

  Collectives& rank(Rank rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  MemoryPort& port(Rank rank) { return *ports_[static_cast<std::size_t>(rank)]; }
  std::mt19937_64& random() { return random_; }

  // Of all ranks.
  const std::shared_ptr<BufferPool> pool = BufferPool::make(64 << 20);

  // Does whatever can be done, in a random order, until nothing is left or `until` holds.
  void run(const std::function<bool()>& until = [] { return false; });

  // Lets time pass, ticking whoever asked for it, and runs in between.
  void pass(base::Duration time);

 private:
  friend class MemoryPort;

  // A large message between two ends that are ready.
  struct Transfer {
    Rank from;
    Rank to;
    mesh::StepOperation* sender;
    mesh::StepSend* send;
    mesh::StepOperation* receiver;
    mesh::StepReceive* receive;
    std::uint64_t at[2];  // of each run
    std::uint64_t end[2];
  };

  void match(Rank from, mesh::StepOperation& operation, mesh::StepSend& send);
  void move_some(std::size_t index);
  void drop(const mesh::StepOperation& operation);

  std::mt19937_64 random_;
  const std::uint64_t eager_bytes_;
  base::Time now_{};
  std::vector<base::Time> wake_;
  std::vector<std::unique_ptr<MemoryPort>> ports_;
  std::vector<std::unique_ptr<Collectives>> ranks_;
  std::vector<std::function<void()>> actions_;
  std::vector<Transfer> transfers_;
};

}  // namespace nexar::collective::test
