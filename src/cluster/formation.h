// Brings up the links of a view.
//
// Lower ranks call higher ones, at their candidate addresses (call_schedule.h); what higher ranks get is held until it has said hello,
// within bounds. Before there is a view everybody who calls is told to come again.
//
// Thread: engine. Owned by the node, from before it has a view until its end; links that are agreed on go to the mesh.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "cluster/call_schedule.h"
#include "cluster/view.h"
#include "io/loop.h"
#include "io/random.h"
#include "io/timer.h"
#include "mesh/greeting.h"
#include "transport/link.h"
#include "wire/link_messages.h"

namespace nexar::cluster {

// From the handshake to the hello. Who gets so far has a certificate of the cluster, so this is for hosts that are very busy.
inline constexpr base::Duration kGreetingTimeout = std::chrono::seconds(5);

// From there to the first frame. The caller takes the link for good by then, and giving it up would make it a loss.
inline constexpr base::Duration kConfirmTimeout = std::chrono::seconds(30);

// Links without a hello that one member may have: the one that counts, and one that it has just given up.
inline constexpr std::size_t kGreetingsPerMember = 2;

// Of all callers together. A world that forms has one for each member; beyond that they are nodes that are in no view.
inline constexpr std::size_t kGreetingsMax = 1024;

class Formation final : private mesh::Greeting::Owner {
 public:
  struct Environment {
    io::Loop& loop;
    io::Random& random;
    const base::Logger& log;
    std::function<Result<transport::Link*>(const io::Address&, transport::LinkHandler&)> connect;
  };
  struct Events {
    // Both have said hello. Takes the link: from here on it is another handler's. A caller may send now, a callee after the first frame.
    std::function<transport::LinkHandler&(Rank, transport::Link&, const wire::Hello&)> greeted;
    std::function<void(Rank)> may_send;  // after `greeted`, of a caller
    std::function<void(const Error&)> refused;
  };

  // `ours` is what this node says of itself.
  Formation(Environment environment, const wire::Hello& ours, Events events);
  ~Formation() override;

  // The handler of a link that somebody opened; null when there are too many.
  transport::LinkHandler* accept(transport::Link& link);

  // This node is `self` in `view`, which outlives the formation: calls everybody of higher rank.
  void begin(Rank self, const View& view);

  // The peer uses its link; or the link has ended before it did, and the peer may come again.
  void confirmed(Rank rank);
  void unlinked(Rank rank);

  // Ends everything that has not become a link, for good.
  void stop(std::string_view reason);

  // Who has no link yet, and why as far as it is known: `rank 3: called at 10.0.0.3:4000; no answer`.
  std::vector<Rank> missing() const;
  std::string explain(Rank rank) const;

 private:
  struct Attempt {
    mesh::Greeting greeting;
    std::optional<Rank> rank;   // whom we call, or who has said hello
    std::size_t candidate = 0;  // of a caller
    base::Time deadline;
    bool authenticated = false;
    bool gone = false;
    std::string cause{};  // why we ended it
  };
  struct Target {
    enum class State : std::uint8_t { kMissing, kUnconfirmed, kLinked } state = State::kMissing;
    std::optional<CallSchedule> calls{};  // of those that we call
    base::Time confirm_by{};              // of kUnconfirmed
    transport::Link* link = nullptr;      // of kUnconfirmed
    std::vector<std::size_t> tried{};     // candidates
    std::string cause{};                  // of the last attempt
    bool refused = false;                 // it is not to be a peer

    bool is_called() const { return state == State::kMissing && calls && !refused; }
  };

  void on_authenticated(mesh::Greeting& greeting) override;
  void on_hello(mesh::Greeting& greeting, Epoch epoch, const wire::Hello& hello) override;
  void on_goodbye(mesh::Greeting& greeting, const wire::Goodbye& goodbye) override;
  void on_gone(mesh::Greeting& greeting, const transport::LinkEnd& end) override;

  void tick();
  void set_timer();
  void call(Rank rank, std::size_t candidate);
  void somebody_answered();
  void call_failed(Attempt& attempt, const std::string& cause);
  void answer(Attempt& attempt, Epoch epoch, const wire::Hello& hello);
  void agreed(Attempt& attempt, Rank rank, const wire::Hello& hello);
  void decline(Attempt& attempt, wire::GoodbyeReason reason, const std::string& text);
  void refuse(Rank rank, std::string sentence);
  double jitter();
  Attempt& attempt_of(const mesh::Greeting& greeting);
  Target& target(Rank rank) { return targets_[static_cast<std::size_t>(rank)]; }

  Environment environment_;
  wire::Hello ours_;
  Events events_;
  io::Timer timer_;
  Rank self_ = -1;
  const View* view_ = nullptr;
  base::Time begun_;  // when the view came
  bool stopped_ = false;
  std::vector<Target> targets_;                     // by rank
  std::vector<std::unique_ptr<Attempt>> attempts_;  // those that are gone are removed by the next tick
};

}  // namespace nexar::cluster
