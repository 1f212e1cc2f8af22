// Joins a world: finds the seed, proves itself, gets a certificate and the view, and tries again until the deadline.
//
//   auto client = JoinClient::open(options);
//   crypto::Identity identity = client->enroll();          // who this node is
//   ... open the endpoint ...
//   Joined joined = client->wait_view(candidates);          // who everybody is
//
// Blocks the calling thread, with a loop of its own. One key for all attempts, so that the seed knows the node again: a lost answer costs
// time and nothing else. Name servers are asked in between, which may take longer than the deadline leaves.
//
// Thread: its owner's. Destroying it leaves the seed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/host_port.h"
#include "cluster/join_conversation.h"
#include "cluster/token.h"
#include "cluster/view.h"
#include "crypto/identity.h"
#include "crypto/private_key.h"
#include "io/address.h"
#include "io/epoll_loop.h"
#include "nexar/config.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "transport/peer_verifier.h"
#include "transport/quic/endpoint.h"

namespace nexar::cluster {

// The seed counts from the first node's request, which comes a handshake and a few pauses after that node began to count: a node that waits
// as long as its seed does must not give up just before it is told who is missing.
inline constexpr base::Duration kVerdictGrace = std::chrono::seconds(3);

// Addresses of the seed's name that are tried, the first ones: more say that the name is of something else.
inline constexpr std::size_t kAddressesTried = 8;

class JoinClient {
 public:
  struct Options {
    std::string seed;  // HOST:PORT
    Token token;
    std::optional<Rank> rank;  // to ask for
    HostId host;
    Config config;
    std::uint16_t plan_version = 0;
    std::string name;     // for people: io::process_name()
    base::Time deadline;  // of io::real_clock()
    CoreSet cores{};      // io::own_cores()

    // Where the seed's name leads.
    std::function<Result<std::vector<io::Address>>(const std::string& host, std::uint16_t port)> resolve = io::resolve;
  };

  // kInvalidArgument for an address that can never be one.
  static Result<std::unique_ptr<JoinClient>> open(Options options);
  ~JoinClient();
  JoinClient(const JoinClient&) = delete;
  JoinClient& operator=(const JoinClient&) = delete;

  // Errors: kRefused for what trying again cannot mend: another key than the token's, a wrong secret, a version or configuration that is
  // not the world's, a rank that is taken, a world that is complete. kTimeout names the seed and the last thing that went wrong.
  Result<crypto::Identity> enroll();

  // Tells where this node listens and waits until the world is complete. kTimeout names who is missing, as far as the seed knows: at the
  // deadline it is asked. Where it is about to give up itself, its verdict is awaited, up to kVerdictGrace longer than the deadline.
  struct Joined {
    Rank rank = -1;
    View view;
  };
  Result<Joined> wait_view(const std::vector<io::Address>& candidates);

  // The address of this host towards the seed, with port 0; after enroll().
  Result<io::Address> own_address() const;

 private:
  // Accepts the one key that the token names.
  class Pin final : public transport::PeerVerifier {
   public:
    explicit Pin(const Token& token) : token_(token) {}
    Result<void> verify(const crypto::Certificate& certificate) override;

   private:
    const Token& token_;
  };

  // Links to the addresses of the seed, of which the first that stands is used.
  struct Attempt {
    std::unique_ptr<transport::quic::Endpoint> v4;
    std::unique_ptr<transport::quic::Endpoint> v6;
    std::vector<std::unique_ptr<JoinConversation>> conversations;
  };

  JoinClient(Options options, HostPort seed, crypto::PrivateKey key, std::unique_ptr<io::EpollLoop> loop, base::Time now);

  Result<void> enroll_once();
  Result<void> connect();
  Result<void> start(const io::Address& address);
  Result<void> accept_answer();
  void await_view();
  Result<void> give_up(const Error& last) const;
  void leave(std::string_view reason);
  void pause();

  // Runs the loop until `done` or `until`; the first never beyond the deadline.
  template <typename Done>
  void run(base::Time until, Done done);
  template <typename Done>
  void turn_until(base::Time until, Done done);

  Options options_;
  HostPort seed_;
  base::Time opened_;
  crypto::PrivateKey key_;
  wire::JoinRequest request_;
  std::unique_ptr<io::EpollLoop> loop_;
  Pin pin_;
  Attempt attempt_;
  JoinConversation* conversation_ = nullptr;  // of the attempt: the one that goes on
  io::Address seed_address_;                  // that it reached
  std::optional<crypto::Certificate> certificate_;
  std::optional<crypto::Certificate> authority_;
  base::Duration backoff_;
  int attempts_ = 0;
  bool refused_ = false;  // for good: trying again does not help
};

}  // namespace nexar::cluster
