#include "cluster/join_conversation.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "cluster/join_proof.h"
#include "cluster/node_address.h"
#include "crypto/secret.h"

namespace nexar::cluster {

using wire::FrameType;

void JoinConversation::on_ready() { state_ = State::kConnected; }

void JoinConversation::begin() {
  NEXAR_ASSERT(state_ == State::kConnected && link_ != nullptr, "a conversation begins once, on a link");
  state_ = State::kProving;
  const Result<crypto::Sha256> proof = join_proof(JoinRole::kWorker, token_.secret.view(), token_.cluster, *link_);
  if (!proof || !send(*link_, wire::JoinProof{*proof})) leave("no proof could be made");
}

void JoinConversation::tell(const std::vector<io::Address>& addresses) {
  NEXAR_ASSERT(state_ == State::kAccepted && link_ != nullptr, "who was accepted tells where it is");
  state_ = State::kWaiting;
  view_ = {};
  if (!send(*link_, wire::JoinReady{to_wire(addresses)})) leave("there is no room to say where this node is");
}

void JoinConversation::ask() {
  NEXAR_ASSERT(state_ == State::kWaiting && link_ != nullptr && !asked_, "who waits asks once");
  asked_ = send(*link_, wire::JoinAsk{});
}

void JoinConversation::leave(std::string_view reason) {
  if (link_ != nullptr) link_->close(reason);
}

bool JoinConversation::expects(FrameType type) const {
  const bool speaks = state_ == State::kProving || state_ == State::kAsking || state_ == State::kAccepted || state_ == State::kWaiting;
  switch (type) {
    case FrameType::kJoinRefuse: return speaks;
    case FrameType::kSeedProof: return state_ == State::kProving;
    case FrameType::kJoinAccept: return state_ == State::kAsking;
    case FrameType::kJoinView: return state_ == State::kWaiting;
    case FrameType::kJoinState: return state_ == State::kWaiting && asked_ && !news_;
    default: return false;
  }
}

Result<void> JoinConversation::on_message(const wire::Header& header, base::ByteView payload) {
  switch (header.type) {
    case FrameType::kSeedProof: {
      const auto message = wire::decode_frame<wire::SeedProof>(header, payload);
      return message ? check_proof(*message) : Result<void>(message.error());
    }
    case FrameType::kJoinAccept: {
      auto message = wire::decode_frame<wire::JoinAccept>(header, payload);
      if (!message) return std::move(message).error();
      answer_ = *std::move(message);
      state_ = State::kAccepted;
      return {};
    }
    case FrameType::kJoinView: {
      const auto message = wire::decode_frame<wire::JoinView>(header, payload);
      return message ? add_part(*message) : Result<void>(message.error());
    }
    case FrameType::kJoinState: {
      auto message = wire::decode_frame<wire::JoinState>(header, payload);
      if (!message) return std::move(message).error();
      news_ = *std::move(message);
      return {};
    }
    default: {
      const auto message = wire::decode_frame<wire::JoinRefuse>(header, payload);
      if (!message) return message.error();
      error_ = message->error;
      state_ = State::kRefused;
      return {};
    }
  }
}

// Nothing but the proof has been said until here.
Result<void> JoinConversation::check_proof(const wire::SeedProof& message) {
  const Result<crypto::Sha256> expected = join_proof(JoinRole::kSeed, token_.secret.view(), token_.cluster, *link_);
  if (!expected) return expected.error();
  if (!crypto::equal_constant_time(*expected, message.proof)) {
    error_ =
        Error(ErrorCode::kRefused, fmt::format("the seed at {} does not know the secret of the token", link_->peer_address().to_string()));
    state_ = State::kRefused;
    leave("the seed does not know the secret");
    return {};
  }
  state_ = State::kAsking;
  if (!send(*link_, request_)) return Error(ErrorCode::kOverloaded, "there is no room for the request");
  return {};
}

Result<void> JoinConversation::add_part(const wire::JoinView& part) {
  const Result<bool> complete = add_view_part(view_, part);
  if (!complete) return complete.error();
  if (*complete) state_ = State::kComplete;
  return {};
}

void JoinConversation::on_goodbye(const wire::Goodbye& goodbye) {
  if (state_ != State::kComplete && state_ != State::kRefused) {
    error_ = Error(ErrorCode::kPeerLost, fmt::format("{} closed the link: {}", seed_.to_string(), goodbye.text));
    state_ = State::kEnded;
  }
  link_->abort("goodbye");
}

// What the handshake refuses, trying again does not mend.
void JoinConversation::on_end(const transport::LinkEnd& end) {
  link_ = nullptr;
  if (state_ == State::kComplete || state_ == State::kRefused || state_ == State::kEnded) return;
  error_ = end.error;
  const bool in_handshake = state_ == State::kConnecting;
  state_ = in_handshake && end.kind == transport::LinkEnd::Kind::kRefused ? State::kRefused : State::kEnded;
}

}  // namespace nexar::cluster
