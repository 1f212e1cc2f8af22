// Where TCP lanes arrive: the node's port number, in TCP.
//
// Its owner announces a lane to the peer and registers its ticket here, with the keys. Who connects sends the ticket and a hello that only
// the keys can seal. Everybody else is closed without a word, and costs next to nothing meanwhile (admission.h).
//
// Thread: engine. Owned by the node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "base/time.h"
#include "io/address.h"
#include "io/loop.h"
#include "io/stream_socket.h"
#include "io/timer.h"
#include "nexar/result.h"
#include "transport/tcp/admission.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/record_keys.h"
#include "wire/lane_messages.h"

namespace nexar::transport::tcp {

// Takes lanes that peers opened.
class LaneAcceptor {
 public:
  virtual ~LaneAcceptor() = default;
  // The peer has shown the ticket and the keys. Call start() on it; a lane that is dropped is closed.
  virtual void on_lane(const wire::LaneTicket& ticket, std::unique_ptr<Lane> lane) = 0;
};

struct ListenerCounters {
  std::uint64_t accepted = 0;         // lanes
  std::uint64_t unknown_tickets = 0;  // never given out, used already, or forgotten
  std::uint64_t forged_hellos = 0;    // with a known ticket: the keys were not there
  std::uint64_t timed_out = 0;        // no whole hello in time
  std::uint64_t gone = 0;             // closed by themselves before that
  std::uint64_t made_way = 0;         // dropped for a newcomer
  std::uint64_t accept_errors = 0;    // no descriptor left, for example
};

class Listener final : private io::Watcher {
 public:
  // `options` are those of the lanes.
  static Result<std::unique_ptr<Listener>> open(io::Loop& loop, const io::Address& local, const LaneOptions& options = {});
  ~Listener() override;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const io::Address& local_address() const { return local_; }

  // A connection with this ticket becomes a lane, once. `acceptor` outlives that, or the ticket is forgotten. kOverloaded beyond
  // kExpectedMax; kInvalidArgument for a ticket that is expected already.
  Result<void> expect(const wire::LaneTicket& ticket, LaneKeys keys, LaneAcceptor& acceptor);
  void forget(const wire::LaneTicket& ticket) { expected_.erase(ticket); }

  std::size_t pending() const { return strangers_.size(); }
  std::size_t expected() const { return expected_.size(); }
  const ListenerCounters& counters() const { return counters_; }

 private:
  struct Expected {
    LaneKeys keys;
    LaneAcceptor* acceptor;
  };

  // A connection of which nothing is known yet.
  class Stranger final : public io::Watcher {
   public:
    Stranger(Listener& listener, io::StreamSocket socket, base::Time deadline);
    ~Stranger() override;
    Result<void> watch();
    void on_ready(io::Readiness ready) override;

    Listener& listener;
    io::StreamSocket socket;
    const base::Time deadline;
    std::list<Stranger>::iterator self;
    std::array<std::byte, kHelloBytes> hello{};
    std::size_t received = 0;
    bool watched = false;
  };
  static_assert(sizeof(Stranger) <= 512, "a stranger costs less than a kilobyte");

  Listener(io::Loop& loop, io::StreamListener socket, const LaneOptions& options);

  void on_ready(io::Readiness ready) override;
  void admit(io::StreamSocket socket);
  void read_hello(Stranger& stranger);
  void check_hello(Stranger& stranger);
  void drop(Stranger& stranger, std::uint64_t& count);
  void expire();
  void resume();
  void set_timer();

  io::Loop& loop_;
  io::StreamListener socket_;
  const io::Address local_;
  const LaneOptions options_;
  io::Timer timer_;                                // the oldest stranger's
  io::Timer pause_;                                // after which it accepts again
  std::list<Stranger> strangers_;                  // oldest first, at most kPendingMax
  std::map<wire::LaneTicket, Expected> expected_;  // at most kExpectedMax
  ListenerCounters counters_;
};

}  // namespace nexar::transport::tcp
