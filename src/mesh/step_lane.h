// The small messages of collectives to one peer and from it, and their credit.
//
// A step goes at once while the peer has credit for it. Otherwise it waits here and the peer is told that something does; the peer then
// asks by name for what its posted receives wait for, and that is sent beyond the credit: the excess is bounded by those receives. So an
// operation that is ahead and has used all the credit never holds up one that is needed now.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "mesh/control_lane.h"
#include "mesh/early_groups.h"
#include "mesh/outbox.h"
#include "mesh/step.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "wire/matching_messages.h"

namespace nexar::mesh {

class Steps;
struct KeptStep;

class StepLane final : private transport::Sink {
 public:
  struct Surroundings {
    Rank rank;
    Epoch epoch;
    const EagerLimits& limits;  // what this node keeps of early messages
    Steps& steps;
    EarlyGroups& early_groups;
    ControlLane& control;
  };

  explicit StepLane(const Surroundings& surroundings) : around_(surroundings) {}

  // The link can be used, with what the peer keeps of early messages; or is gone, and with it what it had to do with the peer.
  void begin(transport::Link& link, const EagerLimits& limits);
  void end();

  // A step of at most kEagerBytesMax: gone when this is true, otherwise it waits.
  bool send(StepOperation& operation, StepSend& send);
  void forget(const StepSend& send);

  // Sends what waits, as far as credit and room allow.
  void drain();

  // A posted receive of a small message that has not come.
  void want(const StepOperation& operation, StepReceive& receive);

  // What arrives for these goes nowhere from here on.
  void stop(const StepReceive& receive);
  void stop(const KeptStep& kept);

  // A kept message is consumed or dropped.
  void give_back(GroupId group, std::uint64_t bytes);

  // What the peer says. An error ends the link.
  Result<transport::Sink*> on_frame(const wire::Header& header);
  Result<void> on_frame_end(const wire::Header& header);
  void on_credit(GroupId group, const wire::Credit& credit);
  Result<void> on_want(GroupId group, const wire::Want& want);
  Result<void> on_queued(GroupId group, const wire::Queued& queued);

 private:
  using Named = std::pair<Sequence, std::uint32_t>;

  // What may be sent to the peer in one group, and what waits.
  struct Outgoing {
    std::int64_t bytes = 0;  // credit; negative after messages that were asked for
    std::int64_t messages = 0;
    std::deque<std::pair<StepOperation*, StepSend*>> waiting{};
    std::set<Named> wants{};   // of the peer, for steps that are not there yet; at most kWantsMax
    std::size_t look_at = 64;  // so many wants: those of operations that are over are dropped
    bool told = false;         // the peer knows that something waits
  };
  // What has come from it.
  struct Incoming {
    std::uint64_t outstanding_bytes = 0;  // sent and not given back
    std::uint64_t outstanding_messages = 0;
    std::uint64_t due_bytes = 0;  // consumed, to be given back
    std::uint32_t due_messages = 0;
    std::uint64_t wanted_bytes = 0;  // asked for beyond the credit
    std::uint64_t wanted_messages = 0;
    bool sender_queues = false;
  };

  void take(base::ByteView bytes) override;
  Outgoing& outgoing(GroupId group);
  Result<Incoming*> incoming(GroupId group);
  bool try_send(Outgoing& to, const StepOperation& operation, const StepSend& send);
  void drain(GroupId group, Outgoing& to);
  void tell_queued(GroupId group, Outgoing& to);

  Surroundings around_;
  transport::Link* link_ = nullptr;
  EagerLimits peer_limits_{};
  std::unordered_map<GroupId, Outgoing> outgoing_;
  std::unordered_map<GroupId, Incoming> incoming_;

  // The frame that is arriving: into its receive, into memory of ours, or nowhere.
  StepOperation* operation_ = nullptr;
  StepReceive* receive_ = nullptr;
  KeptStep* kept_ = nullptr;
  std::uint64_t received_ = 0;
};

}  // namespace nexar::mesh
