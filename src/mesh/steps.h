// Pairs the messages of collectives with the operations that they belong to.
//
// A message is known by (group, sequence number, part) and its sender. Small ones go and come by the peers' StepLanes; what comes before
// its receive is posted is kept under the sender's credit. Large ones flow under grants that their receives give when they are posted. What
// belongs to an operation that has ended here is drained.
//
// Thread: engine. Owned by Mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mesh/step.h"
#include "mesh/transfers.h"
#include "nexar/result.h"
#include "wire/matching_messages.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

class Peer;

// Messages that are kept for the next one's bytes: a step that comes early costs no allocation.
inline constexpr std::size_t kSpareStepsMax = 64;

// A small message that came before its receive.
struct KeptStep {
  Rank source = 0;
  GroupId group = 0;
  Sequence sequence = 0;
  std::uint32_t part = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t bytes = 0;
  std::vector<std::byte> content{};
  bool whole = false;
  StepOperation* operation = nullptr;  // whose receive was posted before it was whole
  StepReceive* taker = nullptr;
};

class Steps final : public StepPort {
 public:
  // `peers` by rank; they and the verdict outlive this.
  Steps(const std::vector<std::unique_ptr<Peer>>& peers, const std::optional<Error>& verdict) : peers_(peers), verdict_(verdict) {}

  // StepPort
  void add_group(GroupId group) override;
  void enter(StepOperation& operation) override;
  void send(StepOperation& operation, StepSend& send) override;
  void receive(StepOperation& operation, StepReceive& receive) override;
  void leave(StepOperation& operation) override;
  void skip(GroupId group, Sequence sequence) override;
  void announce(StepOperation& operation) override;
  void tell(Rank peer, GroupId group, const wire::Verdict& verdict) override;
  void tell(Rank peer, GroupId group, const wire::Probe& probe) override;
  void tell(Rank peer, GroupId group, const wire::ProbeReply& reply) override;
  void early_sources(const StepOperation& operation, std::vector<Rank>& peers) const override;
  const Error* departure(Rank rank) const override;
  bool is_gone(Rank rank) const override;
  const Error* verdict() const override { return verdict_ ? &*verdict_ : nullptr; }

  // Those that were added.
  const std::unordered_set<GroupId>& known_groups() const { return known_; }

  // Of lanes. Where a message that begins goes: into a receive, into memory of ours, or nowhere. Its group is admitted (early_groups.h).
  struct Place {
    StepOperation* operation = nullptr;
    StepReceive* receive = nullptr;
    KeptStep* kept = nullptr;
  };
  Place place(Rank source, GroupId group, const wire::EagerMessage& message, std::uint64_t bytes);
  void kept_whole(KeptStep& kept);
  void sent(StepOperation& operation, StepSend& send);
  void received(StepOperation& operation, StepReceive& receive);
  void want_all(GroupId group, Rank peer);
  bool is_over(GroupId group, Sequence sequence) const;

  // Of peers: grants of large messages, and what their senders say when none comes.
  void on_granted(Rank from, GroupId group, const wire::Grant& grant);
  void on_refused(Rank from, const wire::Refuse& refuse);
  void on_announced(Rank from, GroupId group, const wire::Announce& announce);

  // A peer has left: operations that still need it end. Or everything ends.
  void on_departure(Rank peer, const Error& error);
  void end_all(const Error& verdict);

  std::size_t kept() const;
  std::size_t spare() const { return unused_.size(); }

 private:
  struct KeptGrant {
    Rank from;
    std::uint64_t transfer;
    Sequence sequence;
    std::uint32_t part;
    std::uint64_t bytes;
    std::uint64_t fingerprint;
  };
  struct Group {
    Sequence last = 0;                     // that was entered or skipped
    std::vector<StepOperation*> active{};  // in the order of their numbers
    std::vector<std::unique_ptr<KeptStep>> kept{};
    std::vector<KeptGrant> grants{};
  };

  // A large message on its way in, as a sink.
  struct Inflow final : TransferSink {
    StepOperation* operation = nullptr;
    StepReceive* receive = nullptr;
    void take(std::uint64_t offset, base::ByteView bytes) override { operation->owner->take(*receive, offset, bytes); }
    std::size_t place(std::uint64_t offset, std::size_t bytes, std::span<base::ByteSpan> regions) override;
    void placed(std::uint64_t, std::size_t) override { operation->owner->on_progress(); }
  };
  struct Outflow {
    StepOperation* operation = nullptr;
    StepSend* send = nullptr;
  };

  Peer& peer(Rank rank) const { return *peers_[static_cast<std::size_t>(rank)]; }
  Group* find(GroupId group);
  StepOperation* find(GroupId group, Sequence sequence);
  static StepOperation* find(const Group& group, Sequence sequence);
  static StepReceive* find_receive(const StepOperation& operation, Rank source, std::uint32_t part);
  void begin_group(GroupId id, Group& group, Sequence sequence);
  void drop_kept(GroupId id, Group& group, Sequence sequence);
  void deliver(StepOperation& operation, StepReceive& receive, std::unique_ptr<KeptStep> kept);
  std::unique_ptr<KeptStep> unused();
  void reuse(std::unique_ptr<KeptStep> kept);

  // Large messages (steps_flow.cc).
  bool use_kept_grant(StepOperation& operation, StepSend& send);
  void flow(StepOperation& operation, StepSend& send, std::uint64_t transfer, std::uint64_t granted);
  void on_flowed_out(std::uint64_t number, const Result<void>& result);
  void grant(StepOperation& operation, StepReceive& receive);
  void on_flowed_in(std::uint64_t number, const Result<void>& result);
  void stop(StepSend& send);
  void stop(StepReceive& receive);

  const std::vector<std::unique_ptr<Peer>>& peers_;
  const std::optional<Error>& verdict_;
  std::unordered_map<GroupId, Group> groups_;
  std::unordered_set<GroupId> known_;
  std::vector<std::unique_ptr<KeptStep>> unused_;
  std::unordered_map<std::uint64_t, Outflow> outflows_;
  std::unordered_map<std::uint64_t, Inflow> inflows_;
  std::uint64_t next_flow_ = 1;
};

}  // namespace nexar::mesh
