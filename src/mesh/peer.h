// One peer: its link, what is on its way to it and from it.
//
// Thread: engine. Owned by Mesh.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "mesh/bulk_way.h"
#include "mesh/call_bodies.h"
#include "mesh/control_lane.h"
#include "mesh/early_groups.h"
#include "mesh/events.h"
#include "mesh/incoming_transfers.h"
#include "mesh/lanes.h"
#include "mesh/matcher.h"
#include "mesh/message.h"
#include "mesh/message_sink.h"
#include "mesh/outbox.h"
#include "mesh/outgoing_transfers.h"
#include "mesh/regions.h"
#include "mesh/rpc_frames.h"
#include "mesh/step_lane.h"
#include "transport/link.h"
#include "wire/frame.h"
#include "wire/link_messages.h"
#include "wire/matching_messages.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

// Announcements that were taken back before they came. Each has 64 bytes, and no more than these are on their way in a data lane of a
// megabyte.
inline constexpr std::size_t kWithdrawnEarlyMax = 16384;

class Peer final : public transport::LinkHandler {
 public:
  // What a peer needs of the mesh.
  struct Surroundings {
    Rank self;
    Matcher& matcher;
    const EagerLimits& limits;  // what this node keeps of early messages
    Epoch epoch;
    const Events& events;
    std::uint64_t& frames_of_other_epochs;
    base::ByteSpan scratch;        // kBulkBytesMax, between two calls of no meaning
    const LaneEnvironment* lanes;  // null: none
    Steps& steps;
    RpcFrames* const& rpc;  // null while nobody takes them
  };

  Peer(Rank rank, Surroundings surroundings);

  // Its link, and what the peer keeps of early messages. Nothing is sent before on_ready(), which is called by the link, by whoever knows
  // that the peer takes frames, or here when the first frame comes.
  void attach(transport::Link& link, const EagerLimits& limits);
  transport::Link* link() const { return link_; }
  Rank rank() const { return rank_; }
  bool is_ready() const { return ready_; }

  // That it has left, as those who still want something from it are told.
  const std::optional<Error>& departure() const { return departure_; }

  const Lanes& lanes() const { return lanes_; }
  void drain_lanes() { lanes_.drain(); }

  // The same of one that has left or whose link has ended: nothing reaches it any more.
  const std::optional<Error>& gone() const { return gone_; }

  // False when the lane has no room or there is no link yet. The peer is not gone.
  [[nodiscard]] bool send_rpc(const wire::Header& header, base::ByteView payload) {
    return ready_ && link_ != nullptr && link_->send(header, payload);
  }

  // What has passed its link, also when that has ended.
  const transport::LaneCounters& counters(wire::Lane lane) const;

  // The epoch is over. Everything of the peer ends with `verdict`; frames are drained from here on, but for pings and those that end
  // things.
  void revoke(const Error& verdict);
  template <typename M>
  void tell_verdict(const M& message) {
    if (link_ != nullptr && ready_) control_lane_.send(message, 0);
  }

  // Says goodbye after everything that is queued. Its operations have been cancelled.
  void leave(std::string_view text);

  // The send's `done` may be called before this returns.
  void send(Send& send);
  void cancel(Send& send);

  // A receive that matched nothing yet, or got `arrival`, which came from this peer.
  void want(const Receive& receive);
  void deliver(Receive& receive, std::unique_ptr<Arrival> arrival);

  // An announcement of this peer's has left the matcher.
  void announcement_taken(GroupId group) { --inboxes_[group].announcements; }

  // Stops a receive that is arriving from this peer. False when it is not.
  bool stop(Receive& receive);

  // Asks for a pong; false when there is no link.
  bool ping(std::uint64_t nonce, std::uint64_t time);

  // Large transfers to it and from it, of messages and of operations.
  OutgoingTransfers& outgoing() { return outgoing_; }
  IncomingTransfers& incoming() { return incoming_; }
  ControlLane& control() { return control_lane_; }
  CallBodies& bodies() { return bodies_; }

  EarlyGroups& early_groups() { return early_groups_; }

  // The small messages of collectives; and what waits here of a large one that nobody asks for.
  StepLane& steps() { return steps_; }
  void announce(GroupId group, wire::Announce announcement);

  // transport::LinkHandler
  void on_ready() override;
  Result<transport::Sink*> on_frame(const wire::Header& header) override;
  Result<void> on_frame_end(const wire::Header& header) override;
  void on_room(wire::Lane lane) override;
  void on_end(const transport::LinkEnd& end) override;

 private:
  // The receiving half of the credit of one group.
  struct Inbox {
    std::uint64_t outstanding_bytes = 0;  // sent eagerly and not given back
    std::uint32_t outstanding_messages = 0;
    std::uint64_t due_bytes = 0;  // consumed, to be given back
    std::uint32_t due_messages = 0;
    std::uint32_t announcements = 0;  // that wait in the matcher
    std::uint32_t wants = 0;          // not answered yet: as many announcements may exceed the limit
    bool sender_queues = false;
  };

  // Sending (peer_send.cc).
  enum class Attempt : std::uint8_t { kGone, kNoRoom, kMustWait };
  Attempt try_send(Outbox& box, Send& send);
  bool send_eagerly(Send& send);
  bool announce(Send& send);
  void drain(GroupId group, Outbox& box);
  void tell_queued(GroupId group, Outbox& box);
  bool satisfy_want(Outbox& box, Send& send);
  Send* release_announced(std::uint64_t transfer);
  Outbox& outbox(GroupId group) { return outboxes_.try_emplace(group, peer_limits_).first->second; }

  // Receiving (peer_receive.cc).
  void take_message(base::ByteView bytes);
  void take_control(base::ByteView bytes) { control_.insert(control_.end(), bytes.begin(), bytes.end()); }
  void take_announce(base::ByteView bytes) { announce_.insert(announce_.end(), bytes.begin(), bytes.end()); }
  void take_rpc(base::ByteView bytes) { rpc_payload_.insert(rpc_payload_.end(), bytes.begin(), bytes.end()); }
  Result<Inbox*> inbox(GroupId group);
  Result<transport::Sink*> begin_message(const wire::Header& header);
  Result<void> end_message(const wire::Header& header);
  Result<void> on_announce(const wire::Header& header, const wire::Announce& announce);
  void start_transfer(Receive& receive, GroupId group, Tag tag, std::uint64_t transfer, std::uint64_t bytes);
  Result<void> prepare(Receive& receive, std::uint64_t bytes) const;
  void copy_out(Receive& receive, const Arrival& arrival, GroupId group);
  void give_back(GroupId group, std::uint64_t bytes);

  static void finish(Send& send, Result<void> result);
  static void finish(Receive& receive, Result<Status> result);

  // Control frames.
  Result<void> on_control(const wire::Header& header);
  Result<void> on_goodbye(const wire::Goodbye& goodbye);
  bool is_drained(const wire::Header& header) const;
  void end_operations(const Error& verdict);
  void end_calls(const Error& why);
  Result<void> on_grant(GroupId group, const wire::Grant& grant);
  Result<void> on_grant_ahead(GroupId group, const wire::Grant& grant);
  Result<void> on_refuse(const wire::Refuse& refuse);
  Result<void> on_want(GroupId group, const wire::Want& want);
  Result<void> on_queued(GroupId group, const wire::Queued& queued);
  Result<void> on_withdraw(GroupId group, const wire::Withdraw& withdraw);

  Rank rank_;
  Surroundings around_;
  transport::Link* link_ = nullptr;
  ControlLane control_lane_;
  BulkWay link_way_;
  OutgoingTransfers outgoing_;
  IncomingTransfers incoming_;
  CallBodies bodies_{rank_, control_lane_, outgoing_, incoming_};
  IncomingTransfers::Arrivals arrivals_{incoming_, kLinkWay};
  Lanes lanes_;
  std::unordered_map<std::uint64_t, MessageSink> messages_arriving_;  // of incoming transfers, those that are messages
  EarlyGroups early_groups_;
  StepLane steps_;
  EagerLimits peer_limits_{};
  bool ready_ = false;
  bool revoked_ = false;
  std::optional<std::string> leaving_;  // we did, or will when the backlog is sent
  std::optional<Error> departure_;
  std::optional<Error> gone_;
  std::array<transport::LaneCounters, 4> counters_{};  // of a link that has ended

  std::map<GroupId, Outbox> outboxes_;
  std::map<GroupId, Inbox> inboxes_;
  std::unordered_map<std::uint64_t, Send*> announced_;
  std::uint64_t last_announced_ = 0;         // by the peer
  std::set<std::uint64_t> withdrawn_early_;  // at most kWithdrawnEarlyMax

  // The data frame that is arriving.
  Receive* arriving_ = nullptr;  // straight into the user's memory
  RegionCursor<Region> arriving_to_;
  Arrival* keeping_ = nullptr;           // or into memory of ours
  std::unique_ptr<Arrival> taken_over_;  // which a receive has matched meanwhile
  std::optional<Error> arriving_error_;  // or nowhere, and the receive ends with this

  std::vector<std::byte> control_;  // payload of the control or announce frame that is arriving
  std::vector<std::byte> announce_;
  std::vector<std::byte> rpc_payload_;

  // Lanes interleave, so each has a sink of its own.
  template <void (Peer::*take_bytes)(base::ByteView)>
  struct LaneSink final : transport::Sink {
    explicit LaneSink(Peer& owner) : peer(owner) {}
    void take(base::ByteView bytes) override { (peer.*take_bytes)(bytes); }
    Peer& peer;
  };
  LaneSink<&Peer::take_message> message_sink_{*this};
  LaneSink<&Peer::take_control> control_sink_{*this};
  LaneSink<&Peer::take_announce> announce_sink_{*this};
  LaneSink<&Peer::take_rpc> rpc_sink_{*this};
};

}  // namespace nexar::mesh
