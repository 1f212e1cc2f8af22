// Where processes of this host arrive: a unix socket with a random name.
//
// The name and a nonce for each peer are told over its authenticated link. Who connects is of the same user and shows a nonce that was
// given out, once; everybody else is closed without a word.
//
// Thread: engine. Owned by whoever brings shared memory up.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "io/loop.h"
#include "io/random.h"
#include "io/stream_socket.h"
#include "nexar/result.h"
#include "transport/shm/channel.h"
#include "wire/host_messages.h"

namespace nexar::transport::shm {

// Connections that have not greeted. Only processes of this user get so far; the oldest makes way.
inline constexpr std::size_t kPendingMax = 64;

struct ListenerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t other_users = 0;
  std::uint64_t unknown_nonces = 0;
  std::uint64_t made_way = 0;
};

class Listener final : private io::Watcher {
 public:
  static Result<std::unique_ptr<Listener>> open(io::Loop& loop, io::Random& random);
  ~Listener() override;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const wire::HostName& name() const { return name_; }

  // A connection that greets with this nonce is handed to `arrived`, once, from the event loop.
  void expect(const wire::HostNonce& nonce, std::function<void(Channel)> arrived) { expected_[nonce] = std::move(arrived); }
  void forget(const wire::HostNonce& nonce) { expected_.erase(nonce); }

  const ListenerCounters& counters() const { return counters_; }

 private:
  // A connection that has not greeted yet.
  struct Stranger final : io::Watcher {
    Stranger(Listener& owner, Channel connection) : listener(owner), channel(std::move(connection)) {}
    void on_ready(io::Readiness) override { listener.read(*this); }

    Listener& listener;
    Channel channel;
    std::list<Stranger>::iterator self;
  };

  Listener(io::Loop& loop, io::StreamListener socket, const wire::HostName& name) : loop_(loop), socket_(std::move(socket)), name_(name) {}

  void on_ready(io::Readiness ready) override;
  void admit(io::StreamSocket socket);
  void read(Stranger& stranger);
  Channel drop(Stranger& stranger);

  io::Loop& loop_;
  io::StreamListener socket_;
  const wire::HostName name_;
  bool watched_ = false;
  std::list<Stranger> strangers_;                                     // oldest first, at most kPendingMax
  std::map<wire::HostNonce, std::function<void(Channel)>> expected_;  // one for each peer of the host
  ListenerCounters counters_;
};

}  // namespace nexar::transport::shm
