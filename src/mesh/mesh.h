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

#include "mesh/matcher.h"
#include "mesh/message.h"
#include "mesh/outbox.h"
#include "mesh/peer.h"
#include "transport/link.h"
#include "wire/link_messages.h"

namespace nexar::mesh {

class Mesh {
 public:
  struct Events {
    std::function<void(Rank)> ready;                            // the link to a peer can be used
    std::function<void(Rank, const transport::LinkEnd&)> lost;  // it cannot any more
    std::function<void(Rank, const wire::Pong&)> pong;          // a ping was answered
  };

  Mesh(Rank self, int size, Epoch epoch, Events events, const EagerLimits& limits = {});

  Rank self() const { return self_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // The handler of the link to a peer, and the link once there is one. A peer has one link.
  transport::LinkHandler& handler(Rank rank) { return peer(rank); }
  void attach(Rank rank, transport::Link& link);
  transport::Link* link(Rank rank) const { return peers_[static_cast<std::size_t>(rank)]->link(); }

  // Fields but `state` and `transfer` are set, and the rank is in range. `done` is called exactly once, perhaps before these return.
  void send(Send& send);
  void receive(Receive& receive);

  // Ends what has not ended, with kCancelled. When this returns, nothing reads or writes the memory any more.
  void cancel(Send& send);
  void cancel(Receive& receive);

  // The message that such a receive would get now. Asks senders that queue for it, so that asking again finds it.
  std::optional<Status> probe(GroupId group, Rank source, std::optional<Tag> tag);

  // Sends a ping on the control lane; false when there is no link to that rank.
  bool ping(Rank rank, std::uint64_t nonce, std::uint64_t time) { return peer(rank).ping(nonce, time); }

  const Matcher& matcher() const { return matcher_; }

 private:
  Peer& peer(Rank rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  void send_to_self(Send& send);
  void deliver_local(Receive& receive, Send& send);

  Rank self_;
  EagerLimits limits_;
  Matcher matcher_;
  Events events_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace nexar::mesh
