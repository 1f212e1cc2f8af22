// What a node says to the seed on one link, until it has the view or the link has ended.
//
// A machine over a link: its owner runs the loop, looks at it after every turn, and says when to go on.
//
// Thread: that of its loop. Owned by JoinClient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/join_link.h"
#include "cluster/token.h"
#include "cluster/view.h"
#include "io/address.h"
#include "nexar/error.h"
#include "transport/link.h"
#include "wire/join_messages.h"

namespace nexar::cluster {

class JoinConversation final : public JoinLink {
 public:
  enum class State : std::uint8_t {
    kConnecting,
    kConnected,  // nothing was said; begin() goes on
    kProving,
    kAsking,
    kAccepted,  // join_accept has come; tell() goes on
    kWaiting,
    kComplete,  // the view is here
    kRefused,   // the seed said no, for good; the reason is error()
    kEnded,     // the link is gone; why is error()
  };

  // `request` is sent when the seed has proved that it knows the secret. Both outlive the conversation.
  JoinConversation(const Token& token, const wire::JoinRequest& request) : token_(token), request_(request) {}

  void set_link(transport::Link& link) {
    link_ = &link;
    seed_ = link.peer_address();
  }

  void begin();
  void tell(const std::vector<io::Address>& addresses);

  // Asks who is missing, while it waits; the answer becomes news().
  void ask();

  // Ends the link, if there is one still.
  void leave(std::string_view reason);
  bool has_link() const { return link_ != nullptr; }

  const io::Address& seed() const { return seed_; }
  State state() const { return state_; }
  const std::optional<Error>& error() const { return error_; }
  const wire::JoinAccept& answer() const { return answer_; }
  View& view() { return view_; }
  const std::optional<wire::JoinState>& news() const { return news_; }

 private:
  bool expects(wire::FrameType type) const override;
  Result<void> on_message(const wire::Header& header, base::ByteView payload) override;
  void on_goodbye(const wire::Goodbye& goodbye) override;
  Result<void> check_proof(const wire::SeedProof& message);
  Result<void> add_part(const wire::JoinView& part);

  void on_ready() override;
  void on_room(wire::Lane) override {}
  void on_end(const transport::LinkEnd& end) override;

  const Token& token_;
  const wire::JoinRequest& request_;
  transport::Link* link_ = nullptr;
  io::Address seed_;
  State state_ = State::kConnecting;
  std::optional<Error> error_;
  wire::JoinAccept answer_;
  View view_;
  bool asked_ = false;
  std::optional<wire::JoinState> news_;
};

}  // namespace nexar::cluster
