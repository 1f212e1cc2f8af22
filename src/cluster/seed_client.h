// A caller of the seed: a stranger until it has proved the secret, then a client of the rendezvous.
//
// Thread: the service's. Owned by the service, which destroys it when its link has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "cluster/join_link.h"
#include "cluster/rendezvous.h"
#include "cluster/view.h"
#include "crypto/authority.h"
#include "io/loop.h"
#include "io/timer.h"
#include "transport/link.h"
#include "wire/join_messages.h"

namespace nexar::cluster {

// How long a stranger may take to prove that it is none; the proof comes with the end of its handshake.
inline constexpr base::Duration kProofTimeout = std::chrono::seconds(3);

// How long a client that was told to go may take to acknowledge it.
inline constexpr base::Duration kFarewellTimeout = std::chrono::seconds(2);

class SeedClient final : public JoinLink {
 public:
  // What a client brings about. Called from the event loop.
  class Host {
   public:
    // The proof that the client owes, and ours.
    virtual Result<crypto::Sha256> proof(bool seed, const transport::Link& link) const = 0;
    virtual void on_proved(SeedClient& client) = 0;
    virtual void on_wrong_proof(SeedClient& client) = 0;
    virtual void on_request(SeedClient& client, const wire::JoinRequest& request, const crypto::CertificateRequest& certificate) = 0;
    virtual void on_ready(SeedClient& client, std::vector<io::Address> addresses) = 0;
    virtual void on_ask(SeedClient& client) = 0;
    virtual void on_gone(SeedClient& client, const transport::LinkEnd& end) = 0;  // destroys it

   protected:
    ~Host() = default;
  };

  SeedClient(Host& host, io::Loop& loop, ClientId id, transport::Link& link);

  ClientId id() const { return id_; }
  bool is_stranger() const { return state_ == State::kStranger; }
  const io::Address& address() const { return link_.peer_address(); }

  // The request that accept() answers; between on_request and accept.
  const crypto::CertificateRequest& certificate_request() const { return *request_; }

  void accept(Rank rank, const crypto::Certificate& certificate, const crypto::Certificate& authority);
  void refuse(const Error& error);
  void send_view(std::shared_ptr<const View> view);
  void send_state(const Error& missing, base::Duration left);

  // Ends the link once what was sent has arrived.
  void finish(std::string_view reason);

 private:
  enum class State : std::uint8_t {
    kStranger,
    kProved,    // may ask
    kAsked,     // waits for the answer
    kAccepted,  // may say where it listens
    kReady,     // waits for the view, or has it; may ask who is missing
    kInformed,  // the same, and has asked
    kLeaving,
  };

  bool expects(wire::FrameType type) const override;
  Result<void> on_message(const wire::Header& header, base::ByteView payload) override;
  void on_goodbye(const wire::Goodbye&) override { link_.abort("goodbye"); }
  Result<void> check_proof(const wire::JoinProof& message);
  Result<void> take_request(const wire::JoinRequest& message);
  void send_parts();

  void on_ready() override {}
  void on_room(wire::Lane) override { send_parts(); }
  void on_end(const transport::LinkEnd& end) override { host_.on_gone(*this, end); }

  Host& host_;
  io::Loop& loop_;
  ClientId id_;
  transport::Link& link_;
  io::Timer timer_;  // of a stranger, and of one that leaves
  State state_ = State::kStranger;
  std::optional<crypto::CertificateRequest> request_;
  std::shared_ptr<const View> view_;
  std::size_t next_member_ = 0;  // of the view, to be sent
};

}  // namespace nexar::cluster
