#include "cluster/seed_client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/node_address.h"
#include "crypto/secret.h"

namespace nexar::cluster {

using wire::FrameType;

static_assert(wire::kDerBytesMax == crypto::kDerBytesMax, "what can be read can be sent");

SeedClient::SeedClient(Host& host, io::Loop& loop, ClientId id, transport::Link& link)
    : host_(host), loop_(loop), id_(id), link_(link), timer_(loop, [this] { link_.abort("nothing was heard for too long"); }) {
  timer_.set(loop.now() + kProofTimeout);
}

bool SeedClient::expects(FrameType type) const {
  switch (state_) {
    case State::kStranger: return type == FrameType::kJoinProof;
    case State::kProved: return type == FrameType::kJoinRequest;
    case State::kAccepted: return type == FrameType::kJoinReady;
    case State::kReady: return type == FrameType::kJoinAsk;
    case State::kAsked:
    case State::kInformed:
    case State::kLeaving: return false;
  }
  return false;
}

Result<void> SeedClient::on_message(const wire::Header& header, base::ByteView payload) {
  const auto with = [&]<typename M>(Result<M> message, auto next) -> Result<void> {
    if (!message) return std::move(message).error();
    return next(*std::move(message));
  };
  switch (header.type) {
    case FrameType::kJoinProof:
      return with(wire::decode_frame<wire::JoinProof>(header, payload),
                  [&](const wire::JoinProof& message) { return check_proof(message); });
    case FrameType::kJoinRequest:
      return with(wire::decode_frame<wire::JoinRequest>(header, payload),
                  [&](const wire::JoinRequest& message) { return take_request(message); });
    case FrameType::kJoinAsk:
      return with(wire::decode_frame<wire::JoinAsk>(header, payload), [&](const wire::JoinAsk&) -> Result<void> {
        state_ = State::kInformed;
        host_.on_ask(*this);
        return {};
      });
    default:
      return with(wire::decode_frame<wire::JoinReady>(header, payload), [&](const wire::JoinReady& message) -> Result<void> {
        state_ = State::kReady;
        host_.on_ready(*this, from_wire(message.addresses));
        return {};
      });
  }
}

Result<void> SeedClient::check_proof(const wire::JoinProof& message) {
  const Result<crypto::Sha256> theirs = host_.proof(false, link_);
  const Result<crypto::Sha256> ours = host_.proof(true, link_);
  if (!theirs || !ours) return theirs ? ours.error() : theirs.error();
  if (!crypto::equal_constant_time(*theirs, message.proof)) {
    host_.on_wrong_proof(*this);
    refuse(Error(ErrorCode::kRefused, "the token is not this cluster's"));
    return {};
  }
  timer_.cancel();
  state_ = State::kProved;
  if (!send(link_, wire::SeedProof{*ours})) return Error(ErrorCode::kOverloaded, "the proof of the seed could not be sent");
  host_.on_proved(*this);
  return {};
}

Result<void> SeedClient::take_request(const wire::JoinRequest& message) {
  state_ = State::kAsked;
  Result<crypto::CertificateRequest> request = crypto::CertificateRequest::parse(message.request);
  if (!request) return std::move(request).error();
  request_ = *std::move(request);
  host_.on_request(*this, message, *request_);
  return {};
}

void SeedClient::accept(Rank rank, const crypto::Certificate& certificate, const crypto::Certificate& authority) {
  state_ = State::kAccepted;
  request_.reset();
  const auto copy = [](base::ByteView der) { return std::vector<std::byte>(der.begin(), der.end()); };
  if (!send(link_, wire::JoinAccept{rank, copy(certificate.der()), copy(authority.der())})) finish("there is no room to answer");
}

void SeedClient::refuse(const Error& error) {
  if (state_ == State::kLeaving) return;
  if (!send(link_, wire::JoinRefuse{error})) link_.abort(error.sentence());
  finish(error.sentence());
}

void SeedClient::send_view(std::shared_ptr<const View> view) {
  view_ = std::move(view);
  send_parts();
}

void SeedClient::send_state(const Error& missing, base::Duration left) {
  const auto left_ns = static_cast<std::uint64_t>(std::max(left, base::Duration::zero()).count());
  if (!send(link_, wire::JoinState{left_ns, missing})) finish("there is no room to say who is missing");
}

// As many parts as the lane takes; the rest when it has room.
void SeedClient::send_parts() {
  while (view_ != nullptr && (state_ == State::kReady || state_ == State::kInformed)) {
    const wire::JoinView part = view_part(*view_, next_member_);
    if (!send(link_, part)) return;
    next_member_ += part.members.size();
    if (next_member_ == view_->members.size()) view_.reset();
  }
}

void SeedClient::finish(std::string_view reason) {
  if (std::exchange(state_, State::kLeaving) == State::kLeaving) return;
  link_.close(reason);
  timer_.set(loop_.now() + kFarewellTimeout);
}

}  // namespace nexar::cluster
