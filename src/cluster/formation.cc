#include "cluster/formation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/units.h"

namespace nexar::cluster {

using mesh::Greeting;

Formation::Formation(Environment environment, const wire::Hello& ours, Events events)
    : environment_(std::move(environment)), ours_(ours), events_(std::move(events)), timer_(environment_.loop, [this] { tick(); }) {}

Formation::~Formation() = default;

transport::LinkHandler* Formation::accept(transport::Link& link) {
  const NodeId node = link.peer_certificate()->node();
  const auto is_callee = [](const auto& attempt) { return !attempt->gone && attempt->greeting.side() == Greeting::Side::kCallee; };
  const auto all = std::count_if(attempts_.begin(), attempts_.end(), is_callee);
  const auto of_node = std::count_if(attempts_.begin(), attempts_.end(), [&](const auto& attempt) {
    return is_callee(attempt) && attempt->greeting.link()->peer_certificate()->node() == node;
  });
  if (stopped_ || static_cast<std::size_t>(all) >= kGreetingsMax || static_cast<std::size_t>(of_node) >= kGreetingsPerMember)
    return nullptr;
  attempts_.push_back(std::make_unique<Attempt>(
      Attempt{Greeting(Greeting::Side::kCallee, *this), std::nullopt, 0, environment_.loop.now() + kGreetingTimeout}));
  Greeting& greeting = attempts_.back()->greeting;
  greeting.attach(link);
  somebody_answered();
  set_timer();
  return &greeting;
}

void Formation::begin(Rank self, const View& view) {
  self_ = self;
  view_ = &view;
  targets_.resize(view.members.size());
  target(self).state = Target::State::kLinked;
  begun_ = environment_.loop.refresh();
  const base::Duration stagger = kCandidateStagger + kStaggerPerPeer * (view.size() - 1);
  for (Rank rank = self + 1; rank < view.size(); ++rank) target(rank).calls.emplace(view.member(rank).addresses.size(), begun_, stagger);
  tick();
}

void Formation::confirmed(Rank rank) {
  target(rank).state = Target::State::kLinked;
  target(rank).link = nullptr;
}

void Formation::unlinked(Rank rank) {
  Target& one = target(rank);
  if (one.state != Target::State::kUnconfirmed) return;
  one.state = Target::State::kMissing;
  one.link = nullptr;
  one.cause = "its link ended before it was used";
}

void Formation::stop(std::string_view reason) {
  stopped_ = true;
  for (const auto& attempt : attempts_)
    if (!attempt->gone && attempt->greeting.link() != nullptr) attempt->greeting.link()->abort(reason);
  timer_.cancel();
}

std::vector<Rank> Formation::missing() const {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < targets_.size(); ++rank)
    if (targets_[rank].state != Target::State::kLinked) ranks.push_back(static_cast<Rank>(rank));
  return ranks;
}

std::string Formation::explain(Rank rank) const {
  const Target& one = targets_[static_cast<std::size_t>(rank)];
  std::vector<std::string> tried;
  for (const std::size_t candidate : one.tried) tried.push_back(view_->member(rank).addresses[candidate].to_string());
  const std::string_view nothing = one.calls ? "no answer yet" : "nothing came";
  return fmt::format("rank {} ({}: {})", rank, tried.empty() ? "has to call us" : fmt::format("called at {}", fmt::join(tried, ", ")),
                     one.cause.empty() ? nothing : one.cause);
}

Formation::Attempt& Formation::attempt_of(const Greeting& greeting) {
  const auto found = std::find_if(attempts_.begin(), attempts_.end(), [&](const auto& attempt) { return &attempt->greeting == &greeting; });
  NEXAR_ASSERT(found != attempts_.end(), "a greeting is kept until its link has ended");
  return **found;
}

double Formation::jitter() {
  return static_cast<double>(environment_.random.number<std::uint32_t>()) / static_cast<double>(std::numeric_limits<std::uint32_t>::max());
}

void Formation::tick() {
  if (stopped_) return;
  std::erase_if(attempts_, [](const auto& attempt) { return attempt->gone; });
  const base::Time now = environment_.loop.now();
  for (const auto& attempt : attempts_)
    if (attempt->deadline <= now && attempt->greeting.link() != nullptr) {
      attempt->deadline = base::Time::max();
      if (attempt->cause.empty()) attempt->cause = fmt::format("no hello within {}", base::format_duration(kGreetingTimeout));
      attempt->greeting.link()->abort(attempt->cause);
    }
  for (std::size_t rank = 0; rank < targets_.size(); ++rank) {
    Target& one = targets_[rank];
    if (one.state == Target::State::kUnconfirmed && one.confirm_by <= now) {
      one.confirm_by = base::Time::max();
      one.link->abort(fmt::format("nothing came after hello within {}", base::format_duration(kConfirmTimeout)));
    }
    if (!one.is_called()) continue;
    while (const std::optional<std::size_t> candidate = one.calls->take(now)) call(static_cast<Rank>(rank), *candidate);
  }
  set_timer();
}

void Formation::set_timer() {
  if (stopped_) return;
  base::Time next = base::Time::max();
  for (const auto& attempt : attempts_) next = std::min(next, attempt->gone ? environment_.loop.now() : attempt->deadline);
  for (const Target& one : targets_) {
    if (one.state == Target::State::kUnconfirmed) next = std::min(next, one.confirm_by);
    if (one.is_called()) next = std::min(next, one.calls->next());
  }
  if (next == base::Time::max())
    timer_.cancel();
  else
    timer_.set(next);
}

// The handshake has a limit of its own; the one here begins when it is done.
void Formation::call(Rank rank, std::size_t candidate) {
  auto attempt = std::make_unique<Attempt>(Attempt{Greeting(Greeting::Side::kCaller, *this), rank, candidate, base::Time::max()});
  Target& one = target(rank);
  if (std::find(one.tried.begin(), one.tried.end(), candidate) == one.tried.end()) one.tried.push_back(candidate);
  Result<transport::Link*> link = environment_.connect(view_->member(rank).addresses[candidate], attempt->greeting);
  if (!link) {
    one.calls->failed(candidate, false, environment_.loop.now(), jitter());
    one.cause = link.error().sentence();
    return;
  }
  attempt->greeting.attach(**link);
  attempts_.push_back(std::move(attempt));
}

// A handshake has ended well, whoever began it.
void Formation::somebody_answered() {
  const base::Time now = environment_.loop.now();
  for (Target& one : targets_)
    if (one.is_called()) one.calls->other_answered(now, now - begun_);
}

// Of a caller: whoever answers first is spoken to, if it is the member that was called.
void Formation::on_authenticated(Greeting& greeting) {
  if (greeting.side() == Greeting::Side::kCallee) return;
  Attempt& attempt = attempt_of(greeting);
  const NodeId there = greeting.link()->peer_certificate()->node();
  if (there != view_->member(*attempt.rank).node) {
    attempt.cause = fmt::format("at {} is node {}, another one", greeting.link()->peer_address().to_string(), to_string(there));
    return greeting.link()->abort("another node was called");
  }
  for (const auto& other : attempts_)
    if (other.get() != &attempt && other->rank == attempt.rank && !other->gone && other->greeting.link() != nullptr) {
      other->cause = "another address answered first";
      other->greeting.link()->abort(other->cause);
    }
  attempt.authenticated = true;
  attempt.deadline = environment_.loop.now() + kGreetingTimeout;
  target(*attempt.rank).calls->reached(attempt.candidate);
  somebody_answered();
  greeting.say_hello(ours_, view_->epoch);
  set_timer();
}

void Formation::on_hello(Greeting& greeting, Epoch epoch, const wire::Hello& hello) {
  Attempt& attempt = attempt_of(greeting);
  const NodeId certified = greeting.link()->peer_certificate()->node();
  if (stopped_) return greeting.link()->abort("this node goes");
  if (hello.node != certified)
    return decline(attempt, wire::GoodbyeReason::kRefused,
                   fmt::format("node {} says that it is node {}", to_string(certified), to_string(hello.node)));
  if (greeting.side() == Greeting::Side::kCallee) return answer(attempt, epoch, hello);

  const Rank rank = *attempt.rank;
  Result<void> compatible = wire::check_compatible(ours_, hello);
  if (compatible && epoch != view_->epoch)
    compatible = Error(ErrorCode::kRefused, fmt::format("it is in epoch {}, this node in {}", epoch, view_->epoch));
  if (!compatible) {
    decline(attempt, wire::GoodbyeReason::kRefused, compatible.error().sentence());
    return refuse(rank, fmt::format("rank {} does not fit: {}", rank, compatible.error().sentence()));
  }
  agreed(attempt, rank, hello);
  confirmed(rank);
  events_.may_send(rank);
}

// Of a callee: who may be a peer now, who later, and who never.
void Formation::answer(Attempt& attempt, Epoch epoch, const wire::Hello& hello) {
  using Reason = wire::GoodbyeReason;
  if (view_ == nullptr) return decline(attempt, Reason::kNotYet, "this node has no view yet");
  const std::optional<Rank> rank = view_->rank_of(hello.node);
  if (!rank) return decline(attempt, Reason::kNotYet, fmt::format("node {} is not in the view of rank {}", to_string(hello.node), self_));
  const auto never = [&](std::string_view why) {
    target(*rank).cause = why;
    environment_.log.warning("cluster", "a member was refused", {{"peer", *rank}, {"why", why}});
    decline(attempt, Reason::kRefused, fmt::format("rank {} refuses rank {}: {}", self_, *rank, why));
  };
  if (auto compatible = wire::check_compatible(ours_, hello); !compatible) return never(compatible.error().sentence());
  if (epoch > view_->epoch) return decline(attempt, Reason::kNotYet, fmt::format("rank {} is still in epoch {}", self_, view_->epoch));
  if (epoch < view_->epoch) return never(fmt::format("its epoch {} is over, this node is in {}", epoch, view_->epoch));
  if (*rank >= self_) return never("higher ranks are called and do not call");
  if (target(*rank).state == Target::State::kLinked)
    return decline(attempt, Reason::kDuplicate, fmt::format("rank {} has a link to rank {} already", self_, *rank));
  if (target(*rank).state == Target::State::kUnconfirmed)
    return decline(attempt, Reason::kNotYet, fmt::format("an earlier link of rank {} has not ended yet", *rank));

  attempt.greeting.say_hello(ours_, view_->epoch);
  Target& one = target(*rank);
  one.state = Target::State::kUnconfirmed;
  one.confirm_by = environment_.loop.now() + kConfirmTimeout;
  one.link = attempt.greeting.link();
  agreed(attempt, *rank, hello);
}

void Formation::agreed(Attempt& attempt, Rank rank, const wire::Hello& hello) {
  attempt.greeting.release(events_.greeted(rank, *attempt.greeting.link(), hello));
  attempt.gone = true;
  set_timer();
}

void Formation::decline(Attempt& attempt, wire::GoodbyeReason reason, const std::string& text) {
  attempt.cause = text;
  attempt.greeting.link()->close(reason, text);
}

// For good: that member is not called again.
void Formation::refuse(Rank rank, std::string sentence) {
  target(rank).cause = sentence;
  target(rank).refused = true;
  environment_.log.warning("cluster", "the world cannot form", {{"peer", rank}, {"why", sentence}});
  events_.refused(Error(ErrorCode::kRefused, std::move(sentence)).with_rank(rank));
}

void Formation::on_goodbye(Greeting& greeting, const wire::Goodbye& goodbye) {
  Attempt& attempt = attempt_of(greeting);
  attempt.cause = goodbye.text;
  greeting.link()->abort("goodbye");
  if (greeting.side() == Greeting::Side::kCallee || stopped_) return;
  switch (goodbye.reason) {
    case wire::GoodbyeReason::kNotYet:
    case wire::GoodbyeReason::kDuplicate: return;  // called again when the link has ended
    case wire::GoodbyeReason::kLeaving: return refuse(*attempt.rank, fmt::format("rank {} has left", *attempt.rank));
    case wire::GoodbyeReason::kRefused:
    case wire::GoodbyeReason::kProtocol: return refuse(*attempt.rank, goodbye.text);
  }
}

void Formation::on_gone(Greeting& greeting, const transport::LinkEnd& end) {
  Attempt& attempt = attempt_of(greeting);
  attempt.gone = true;
  set_timer();
  if (greeting.side() == Greeting::Side::kCallee || stopped_) return;
  const bool told = attempt.authenticated && end.kind == transport::LinkEnd::Kind::kRefused;
  call_failed(attempt, attempt.cause.empty() ? end.error.sentence() : attempt.cause);
  if (told) refuse(*attempt.rank, fmt::format("rank {} refused this node: {}", *attempt.rank, end.error.sentence()));
}

void Formation::call_failed(Attempt& attempt, const std::string& cause) {
  Target& one = target(*attempt.rank);
  one.calls->failed(attempt.candidate, attempt.authenticated, environment_.loop.now(), jitter());
  if (one.state == Target::State::kMissing) one.cause = cause;
  set_timer();
}

}  // namespace nexar::cluster
