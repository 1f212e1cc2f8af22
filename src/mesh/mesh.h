// Messages between the members of a world: send, receive, probe, cancel.
//
// Ranks here are ranks of the world; groups are numbers that messages are matched by.
//
// Thread: engine. Owned by the node; sends and receives that were posted are done or cancelled before it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "mesh/events.h"
#include "mesh/matcher.h"
#include "mesh/message.h"
#include "mesh/outbox.h"
#include "mesh/peer.h"
#include "mesh/rpc_frames.h"
#include "mesh/steps.h"
#include "transport/link.h"
#include "wire/link_messages.h"

namespace nexar::mesh {

class Mesh {
 public:
  // Without `lanes`, which outlive it, bulk goes by the links alone.
  Mesh(Rank self, int size, Epoch epoch, Events events, const EagerLimits& limits = {}, const LaneEnvironment* lanes = nullptr);

  Rank self() const { return self_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // The handler of the link to a peer, and the link once there is one. A peer has one link. `limits` are what the peer keeps of early
  // messages, as its hello says. Nothing is sent before the handler's on_ready().
  transport::LinkHandler& handler(Rank rank) { return peer(rank); }
  void attach(Rank rank, transport::Link& link, const EagerLimits& limits);
  const Peer& peer(Rank rank) const { return *peers_[static_cast<std::size_t>(rank)]; }
  transport::Link* link(Rank rank) const { return peer(rank).link(); }
  int open_links() const;

  const EagerLimits& limits() const { return limits_; }
  Epoch epoch() const { return epoch_; }

  // Fields but `state` and `transfer` are set, and the rank is in range. `done` is called exactly once, perhaps before these return.
  void send(Send& send);
  void receive(Receive& receive);

  // Ends what has not ended, with kCancelled. When this returns, nothing reads or writes the memory any more.
  void cancel(Send& send);
  void cancel(Receive& receive);

  // Takes what has come from a peer by its TCP lanes and is not read yet.
  void drain_lanes(Rank rank) { peer(rank).drain_lanes(); }

  // The epoch is over: everything in flight ends with `verdict`, and so does everything later, but for receives of messages that are here
  // whole. Again with another verdict changes what later calls get.
  void revoke(const Error& verdict);
  const std::optional<Error>& verdict() const { return verdict_; }

  // A frame that ends things, to everybody who has a link: wire::Revoke, wire::Abort.
  template <typename M>
  void tell_all(const M& message);

  // Says goodbye to everybody, after everything that is queued. Operations have been cancelled before.
  void leave(std::string_view text);

  // The rpc lane. Calls survive the end of an epoch: only a peer that is gone itself ends them.
  void set_rpc(RpcFrames* frames) { rpc_ = frames; }
  // Why nothing can be sent to that rank any more; nothing while it can, or will be able to.
  const std::optional<Error>& gone(Rank rank) const { return peer(rank).gone(); }
  // False when the lane has no room, or there is no link yet: RpcFrames is told when there is.
  [[nodiscard]] bool send_rpc(Rank to, const wire::Header& header, base::ByteView payload) { return peer(to).send_rpc(header, payload); }
  // Ends the link to a peer that breaks the rules.
  void give_up(Rank rank, std::string_view reason);

  // The message that such a receive would get now. Asks senders that queue for it, so that asking again finds it.
  std::optional<Status> probe(GroupId group, Rank source, std::optional<Tag> tag);

  // Sends a ping on the control lane; false when there is no link to that rank.
  bool ping(Rank rank, std::uint64_t nonce, std::uint64_t time) { return peer(rank).ping(nonce, time); }

  // Large transfers to a peer and from it (transfers.h), and control frames about them.
  OutgoingTransfers& outgoing(Rank rank) { return peer(rank).outgoing(); }
  IncomingTransfers& incoming(Rank rank) { return peer(rank).incoming(); }
  ControlLane& control(Rank rank) { return peer(rank).control(); }
  CallBodies& bodies(Rank rank) { return peer(rank).bodies(); }

  // The messages of collectives.
  Steps& steps() { return steps_; }

  const Matcher& matcher() const { return matcher_; }
  std::uint64_t frames_of_other_epochs() const { return frames_of_other_epochs_; }

 private:
  Peer& peer(Rank rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  void send_to_self(Send& send);
  void deliver_local(Receive& receive, Send& send);

  Rank self_;
  Epoch epoch_;
  EagerLimits limits_;
  Matcher matcher_;
  Events events_;
  std::uint64_t frames_of_other_epochs_ = 0;
  std::optional<Error> verdict_;
  RpcFrames* rpc_ = nullptr;
  const std::unique_ptr<std::byte[]> scratch_ = std::make_unique_for_overwrite<std::byte[]>(wire::kBulkBytesMax);
  std::vector<std::unique_ptr<Peer>> peers_;
  Steps steps_{peers_, verdict_};
};

}  // namespace nexar::mesh
