// Brings shared memory up among the ranks of one host.
//
// The first local rank makes a segment and passes it to the others; each two of them agree whether they use it (host_pair.h). Where
// anything fails they use the network, and why is remembered; where memory was asked for by name, that is an error.
//
// Thread: engine. Owned by the node, from when it has a view until its end; links that are agreed on go to the mesh.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cluster/host_pair.h"
#include "cluster/view.h"
#include "io/loop.h"
#include "io/random.h"
#include "io/timer.h"
#include "nexar/config.h"
#include "transport/link.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/listener.h"
#include "transport/shm/loan.h"
#include "wire/host_messages.h"

namespace nexar::cluster {

// From the hello of two ranks until they know. It takes a millisecond; this is for a host on which hundreds of ranks start at once.
inline constexpr base::Duration kHostTimeout = std::chrono::seconds(15);

class HostFormation {
 public:
  struct Environment {
    io::Loop& loop;
    io::Random& random;
    const base::Logger& log;
    std::string network_namespace{};               // in which unix sockets are found; a path, empty: this one
    transport::shm::LoanHandler* loans = nullptr;  // who hears of memory that peers lend; null: nobody
  };
  struct Events {
    std::function<transport::LinkHandler&(Rank)> handler{};                    // of the link that is agreed on
    std::function<void(Rank, transport::Link&, const wire::Hello&)> attach{};  // that link
    std::function<void(Rank)> may_send{};                                      // after `attach`, of a callee
    std::function<void(Rank, const transport::LinkEnd&)> lost{};               // the link ended before they agreed
    std::function<void(Rank)> unlinked{};                                      // the same, and the peer may come again
    std::function<void(const Error&)> impossible{};                            // memory was asked for by name
  };

  // `view` and `places` outlive it.
  HostFormation(Environment environment, Rank self, const View& view, const Places& places, const Config& config, Events events);
  ~HostFormation();

  // Opens what is needed. Called once, when every event can be taken.
  void begin();

  // Whether that rank is to be reached by memory, if it can be; then its link goes through here.
  bool covers(Rank rank) const { return pair(rank) != nullptr; }
  transport::LinkHandler& greeted(Rank rank, transport::Link& link, const wire::Hello& hello);
  void caller_may_send(Rank rank) { pair(rank)->offer(); }

  // The home link of a peer is gone.
  void ended(Rank rank);
  void stop(std::string_view reason);

  // Reads everything that has come through memory.
  void drain() {
    if (endpoint_ != nullptr) endpoint_->drain();
  }

  bool uses_memory(Rank rank) const { return pair(rank) != nullptr && pair(rank)->state() == HostPair::State::kMemory; }
  bool is_whole_world() const;  // all peers are reached by memory
  bool is_undecided(Rank rank) const { return pair(rank) != nullptr && pair(rank)->state() == HostPair::State::kUndecided; }
  std::string why_not(Rank rank) const { return pair(rank) != nullptr ? pair(rank)->why() : std::string(); }

  // The segment of this host and epoch; null while there is none.
  std::shared_ptr<transport::shm::HostSegment> segment() const { return endpoint_ == nullptr ? nullptr : endpoint_->segment(); }
  std::shared_ptr<transport::shm::Bells> bells() const { return endpoint_ == nullptr ? nullptr : endpoint_->bells(); }

  // Tells a local rank of memory that is lent. False when it is not reached by memory, or too much waits to be told.
  bool tell(int local, transport::shm::SentLoan loan) { return endpoint_ != nullptr && endpoint_->tell(local, std::move(loan)); }

 private:
  friend class HostPair;

  HostPair* pair(Rank rank) const { return pairs_[static_cast<std::size_t>(rank)].get(); }
  Result<void> open();
  void fail(const Error& error);
  void tick();
  void set_timer();
  void go_on();

  // For pairs.
  io::Loop& loop() { return environment_.loop; }
  Epoch epoch() const { return view_.epoch; }
  int local() const { return places_.local_rank(self_); }
  const std::string& network_namespace() const { return environment_.network_namespace; }
  const std::optional<std::string>& failure() const { return failure_; }
  transport::shm::Endpoint& endpoint() { return *endpoint_; }
  const wire::HostName& listener_name() const { return listener_->name(); }
  wire::HostNonce expect(std::function<void(transport::shm::Channel)> arrived);
  void forget(const wire::HostNonce& nonce) {
    if (listener_ != nullptr) listener_->forget(nonce);
  }
  bool passes_segment() const { return local() == 0; }
  void take_segment(io::FileDescriptor fd, std::uint64_t bytes, int from);
  transport::LinkHandler& handler(Rank rank) { return events_.handler(rank); }
  void attach(Rank rank, transport::Link& link, const wire::Hello& hello) { events_.attach(rank, link, hello); }
  void may_send(Rank rank) { events_.may_send(rank); }
  void lost(Rank rank, const transport::LinkEnd& end) { events_.lost(rank, end); }
  void unlinked(Rank rank) { events_.unlinked(rank); }
  void not_by_memory(Rank rank, const std::string& why);

  Environment environment_;
  const Rank self_;
  const View& view_;
  const Places& places_;
  const Config& config_;
  Events events_;
  io::Timer timer_;
  std::optional<std::string> failure_;  // of this process: no pair can use memory
  std::unique_ptr<transport::shm::Endpoint> endpoint_;
  std::unique_ptr<transport::shm::Listener> listener_;
  std::vector<std::unique_ptr<HostPair>> pairs_;  // by rank; null for those that are elsewhere
};

}  // namespace nexar::cluster
