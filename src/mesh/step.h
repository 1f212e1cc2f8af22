// The messages of collectives: steps of a plan, matched by (group, sequence number, part) between two ranks.
//
// Whoever runs a plan owns the operation and its sends and receives, and keeps them until leave(); the port holds pointers between. Ranks
// here are ranks of the world.
//
// Thread: engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "mesh/message.h"
#include "nexar/error.h"
#include "nexar/ids.h"
#include "nexar/message.h"
#include "wire/operation_messages.h"

namespace nexar::mesh {

struct StepSend {
  Rank peer = 0;
  std::uint32_t part = 0;
  std::uint32_t step = 0;  // of the owner's plan
  ConstRegion data;
  // Where the bytes of a message longer than wire::kEagerBytesMax lie when that is not one place: then data.data is null. The list stays as
  // the memory does.
  std::span<const ConstRegion> regions{};

  // Kept by the port. A send is done when its bytes are no longer needed.
  enum class State : std::uint8_t { kIdle, kWaiting, kGranted, kDone };
  State state = State::kIdle;
  std::uint64_t transfer = 0;  // of kGranted
  std::uint64_t flow = 0;      // the same as the port numbers it
};

struct StepReceive {
  Rank peer = 0;
  std::uint32_t part = 0;
  std::uint32_t step = 0;  // of the owner's plan
  std::uint64_t bytes = 0;
  std::byte* into = nullptr;  // where the bytes go as they are; null when the owner makes something of them: StepOwner::take

  // Kept by the port.
  enum class State : std::uint8_t { kIdle, kPosted, kArriving, kDone };
  State state = State::kIdle;
  bool wanted = false;         // its sender was told to send it without credit
  std::uint64_t transfer = 0;  // that it has granted; 0: none
  std::uint64_t flow = 0;      // the same as the port numbers it
};

// Hears what becomes of an operation's messages. May call the port back, and may leave.
class StepOwner {
 public:
  virtual ~StepOwner() = default;

  // Bytes [offset, offset + bytes.size()) of a message that is not simply stored. Each byte comes once; those of a message in order, or, of
  // a large one, in several runs that are each in order.
  virtual void take(StepReceive& receive, std::uint64_t offset, base::ByteView bytes) = 0;

  virtual void on_sent(StepSend& send) = 0;
  virtual void on_received(StepReceive& receive) = 0;

  // Something moved, or a peer that was waited for has come.
  virtual void on_progress() = 0;

  // A peer called something else under this sequence number.
  virtual void on_disagreement(Rank peer) = 0;
  // Both called the same, but `peer` has `theirs` bytes for a message of which this rank has `ours`.
  virtual void on_other_size(Rank peer, std::uint64_t theirs, std::uint64_t ours) = 0;

  // A peer that is needed has left, or the epoch is over.
  virtual void on_failed(const Error& error) = 0;
};

// One collective call between enter() and leave().
struct StepOperation {
  GroupId group = 0;
  Sequence sequence = 0;
  std::uint64_t fingerprint = 0;  // of the call, never 0
  StepOwner* owner = nullptr;

  // Kept by the port: what has been posted and is not done.
  std::vector<StepSend*> sends{};
  std::vector<StepReceive*> receives{};
};

// Moves the messages of collectives.
class StepPort {
 public:
  virtual ~StepPort() = default;

  // A group that this node is a member of. What has come for it counts no longer as early (early_groups.h).
  virtual void add_group(GroupId group) = 0;

  // From here on its messages are delivered. Sequence numbers of a group are entered in order, and those left out have ended. Messages that
  // came before are checked: the owner may hear of a disagreement before this returns.
  virtual void enter(StepOperation& operation) = 0;

  // The owner may hear of the end before these return.
  virtual void send(StepOperation& operation, StepSend& send) = 0;
  virtual void receive(StepOperation& operation, StepReceive& receive) = 0;

  // When this returns nothing reads or writes the operation's memory any more; what still comes for it is drained.
  virtual void leave(StepOperation& operation) = 0;

  // The same for an operation that ended before it could be entered.
  virtual void skip(GroupId group, Sequence sequence) = 0;

  // Says to the peers of sends that nobody has asked for what is waiting for them.
  virtual void announce(StepOperation& operation) = 0;

  // Frames about operations, to one peer.
  virtual void tell(Rank peer, GroupId group, const wire::Verdict& verdict) = 0;
  virtual void tell(Rank peer, GroupId group, const wire::Probe& probe) = 0;
  virtual void tell(Rank peer, GroupId group, const wire::ProbeReply& reply) = 0;

  // Peers of whom small messages of the operation have come and wait, appended; perhaps more than once.
  virtual void early_sources(const StepOperation& operation, std::vector<Rank>& peers) const = 0;

  // That a peer has left, or null.
  virtual const Error* departure(Rank peer) const = 0;

  // Whether there is no link to a peer any more, or it has left: it reads nothing that was lent to it, or discards it.
  virtual bool is_gone(Rank peer) const = 0;

  // That the epoch is over, or null.
  virtual const Error* verdict() const = 0;
};

}  // namespace nexar::mesh
