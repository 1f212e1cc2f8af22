// The seed at work: takes callers, asks the rendezvous, does what it says.
//
// Strangers are bounded twice: by the endpoint's admission until their handshake is done, and by kStrangersMax until they have proved the
// secret; the oldest makes way. What comes after is bounded by the rendezvous.
//
// Thread: the one that runs its loop. Owned by Seed::Service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "cluster/observers.h"
#include "cluster/rendezvous.h"
#include "cluster/seed_client.h"
#include "cluster/seed_credentials.h"
#include "crypto/authority.h"
#include "io/address.h"
#include "io/clock.h"
#include "io/loop.h"
#include "io/random.h"
#include "io/timer.h"
#include "transport/quic/endpoint.h"

namespace nexar::cluster {

// Links whose caller has not proved anything. A node proves itself with the end of its handshake, so that even a storm has few of them at a
// time.
inline constexpr std::size_t kStrangersMax = 16;

struct SeedCounters {
  std::uint64_t wrong_proofs = 0;
  std::uint64_t strangers_dropped = 0;  // that made way for others
  std::uint64_t broken_links = 0;       // impossible frames, silence
  std::uint64_t refused = 0;            // nodes that may not join
  std::uint64_t dropped = 0;            // links that were ended without an answer: too slow, too many, or replaced by a newer one
};

class SeedService final : private transport::quic::LinkAcceptor, private SeedClient::Host {
 public:
  struct Options {
    io::Address listen;
    int world = 1;
    base::Duration formation = std::chrono::seconds(60);
    SeedCredentials::Content credentials;
    base::Logger log;
  };
  struct Environment {
    io::Loop& loop;
    io::Random& random;
    const io::Clock& clock;
  };

  // `decided` is called once, when the world is formed or it is clear that it will not be.
  static Result<std::unique_ptr<SeedService>> open(Environment environment, Options options, std::function<void(Result<void>)> decided);

  const io::Address& address() const { return endpoint_->local_address(); }

  // Tells everybody to go. The owner runs the loop a little longer, until is_empty().
  void stop();
  bool is_empty() const { return endpoint_->connections() == 0; }

  const SeedCounters& counters() const { return counters_; }
  const transport::quic::EndpointCounters& endpoint_counters() const { return endpoint_->counters(); }

 private:
  SeedService(Environment environment, Options options, crypto::Authority authority, std::function<void(Result<void>)> decided);

  transport::LinkHandler* on_link(transport::Link& link) override;
  bool takes_observers() const override { return true; }
  transport::LinkHandler* on_observer(transport::Link& link) override { return observers_.accept(link); }
  Result<Observers::Snapshot> snapshot() const;

  Result<crypto::Sha256> proof(bool seed, const transport::Link& link) const override;
  void on_proved(SeedClient& client) override;
  void on_wrong_proof(SeedClient& client) override;
  void on_request(SeedClient& client, const wire::JoinRequest& request, const crypto::CertificateRequest& certificate) override;
  void on_ready(SeedClient& client, std::vector<io::Address> addresses) override;
  void on_ask(SeedClient& client) override;
  void on_gone(SeedClient& client, const transport::LinkEnd& end) override;

  void carry_out(Rendezvous::Actions actions);
  void carry_out(const Rendezvous::Accept& action);
  void carry_out(const Rendezvous::Refuse& action);
  void carry_out(const Rendezvous::SendView& action);
  void carry_out(const Rendezvous::Close& action);
  SeedClient* find(ClientId id);
  void settle();

  Environment environment_;
  ClusterId cluster_;
  crypto::Secret secret_;
  crypto::Authority authority_;
  base::Logger log_;
  Rendezvous rendezvous_;
  std::function<void(Result<void>)> decided_;  // null once it was called
  io::Timer timer_;
  std::map<ClientId, std::unique_ptr<SeedClient>> clients_;
  std::set<ClientId> strangers_;
  ClientId next_id_ = 1;
  bool stopping_ = false;
  Observers observers_;
  SeedCounters counters_;
  std::unique_ptr<transport::quic::Endpoint> endpoint_;  // goes first: its links lead to clients
};

}  // namespace nexar::cluster
