#include "mesh/mesh.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::mesh {
namespace {

// From regions to regions, as much as the send has.
void copy(const Send& send, const Receive& receive) {
  RegionCursor<Region> to{std::span<const Region>(receive.regions)};
  for (const ConstRegion& region : send.regions) write(to, {static_cast<const std::byte*>(region.data), region.bytes});
}

void finish(Send& send, Result<void> result) {
  send.state = Send::State::kIdle;
  std::exchange(send.done, nullptr)(std::move(result));
}

void finish(Receive& receive, Result<Status> result) {
  receive.state = Receive::State::kIdle;
  std::exchange(receive.done, nullptr)(std::move(result));
}

}  // namespace

Mesh::Mesh(Rank self, int size, Epoch epoch, Events events, const EagerLimits& limits, const LaneEnvironment* lanes)
    : self_(self), epoch_(epoch), limits_(limits), events_(std::move(events)) {
  // Grants ahead are for collectives, unless the owner wants them itself.
  if (!events_.granted_ahead)
    events_.granted_ahead = [this](Rank rank, GroupId group, const wire::Grant& grant) { steps_.on_granted(rank, group, grant); };
  if (!events_.refused_ahead) events_.refused_ahead = [this](Rank rank, const wire::Refuse& refuse) { steps_.on_refused(rank, refuse); };
  for (Rank rank = 0; rank < size; ++rank)
    peers_.push_back(std::make_unique<Peer>(rank, Peer::Surroundings{self_,
                                                                     matcher_,
                                                                     limits_,
                                                                     epoch,
                                                                     events_,
                                                                     frames_of_other_epochs_,
                                                                     {scratch_.get(), wire::kBulkBytesMax},
                                                                     lanes,
                                                                     steps_,
                                                                     rpc_}));
}

void Mesh::attach(Rank rank, transport::Link& link, const EagerLimits& limits) {
  NEXAR_ASSERT(rank != self_ && peer(rank).link() == nullptr, "a peer has one link");
  peer(rank).attach(link, limits);
}

int Mesh::open_links() const {
  return static_cast<int>(std::count_if(peers_.begin(), peers_.end(), [](const auto& one) { return one->link() != nullptr; }));
}

void Mesh::revoke(const Error& verdict) {
  if (std::exchange(verdict_, verdict)) return;
  for (const auto& one : peers_) one->revoke(verdict);
  const std::vector<Send*> sends = matcher_.drop_unfinished();
  const std::vector<Receive*> receives = matcher_.drop_all();
  for (Send* send : sends) finish(*send, verdict);
  for (Receive* receive : receives) finish(*receive, verdict);
  steps_.end_all(verdict);
}

template <typename M>
void Mesh::tell_all(const M& message) {
  for (const auto& one : peers_) one->tell_verdict(message);
}
template void Mesh::tell_all(const wire::Revoke& message);
template void Mesh::tell_all(const wire::Abort& message);

void Mesh::give_up(Rank rank, std::string_view reason) {
  if (transport::Link* there = link(rank); there != nullptr) there->abort(reason);
}

void Mesh::leave(std::string_view text) {
  for (const auto& one : peers_) one->leave(text);
}

void Mesh::send(Send& send) {
  if (verdict_) return finish(send, *verdict_);
  if (send.peer == self_) return send_to_self(send);
  Peer& to = peer(send.peer);
  if (to.departure()) return finish(send, *to.departure());
  to.send(send);
}

// What a node sends itself stays in the user's memory until a receive comes, and the send with it: nothing is copied twice.
void Mesh::send_to_self(Send& send) {
  if (Receive* receive = matcher_.match(send.group, self_, send.tag); receive != nullptr) return deliver_local(*receive, send);
  Arrival arrival{.source = self_, .tag = send.tag, .bytes = send.bytes, .form = Arrival::Form::kLocal, .complete = true, .send = &send};
  send.state = Send::State::kQueued;
  matcher_.keep(send.group, std::move(arrival));
}

void Mesh::deliver_local(Receive& receive, Send& send) {
  Result<Status> result = Status{send.bytes, self_, send.tag};
  if (receive.allocate)
    if (auto allocated = receive.allocate(receive, send.bytes); !allocated) result = std::move(allocated).error();
  if (result && receive.capacity < send.bytes)
    result = Error(ErrorCode::kMismatch,
                   fmt::format("rank {} sent itself {} bytes, and the receive has room for {}", self_, send.bytes, receive.capacity));
  if (result) copy(send, receive);
  finish(send, {});
  finish(receive, std::move(result));
}

void Mesh::receive(Receive& receive) {
  std::unique_ptr<Arrival> arrival = matcher_.post(receive);
  if (arrival == nullptr) {
    if (verdict_) {
      matcher_.cancel(receive);
      return finish(receive, *verdict_);
    }
    if (receive.source != kAnySource && peer(receive.source).departure()) {  // what it had sent before is delivered; this cannot come
      matcher_.cancel(receive);
      return finish(receive, *peer(receive.source).departure());
    }
    for (const auto& one : peers_)
      if (receive.source == kAnySource || receive.source == one->rank()) one->want(receive);
    return;
  }
  if (arrival->form == Arrival::Form::kLocal) return deliver_local(receive, *arrival->send);
  Peer& from = peer(arrival->source);
  if (arrival->form == Arrival::Form::kAnnounced) from.announcement_taken(receive.group);
  from.deliver(receive, std::move(arrival));
}

void Mesh::cancel(Send& send) {
  if (send.state == Send::State::kIdle) return;
  if (send.peer != self_) return peer(send.peer).cancel(send);
  matcher_.withdraw_local(send);
  finish(send, Error(ErrorCode::kCancelled, fmt::format("the send of tag {} to this rank was cancelled", send.tag)));
}

void Mesh::cancel(Receive& receive) {
  if (receive.state == Receive::State::kIdle) return;
  if (!matcher_.cancel(receive))
    for (const auto& one : peers_)
      if (one->stop(receive)) break;
  finish(receive, Error(ErrorCode::kCancelled, "the receive was cancelled"));
}

std::optional<Status> Mesh::probe(GroupId group, Rank source, std::optional<Tag> tag) {
  if (const Arrival* arrival = matcher_.find(group, source, tag); arrival != nullptr)
    return Status{arrival->bytes, arrival->source, arrival->tag};
  Receive wanted;
  wanted.group = group;
  wanted.source = source;
  wanted.tag = tag;
  for (const auto& one : peers_)
    if (source == kAnySource || source == one->rank()) one->want(wanted);
  return std::nullopt;
}

}  // namespace nexar::mesh
