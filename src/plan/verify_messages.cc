// What concerns two ranks: matching messages, and receives that are granted ahead.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/verify_parts.h"

namespace nexar::plan {
namespace {

// Messages of one rank to each other, or from each other, in program order.
std::vector<std::vector<std::uint32_t>> messages_of(const Plan& plan, bool sent) {
  std::vector<std::vector<std::uint32_t>> by_peer(static_cast<std::size_t>(plan.shape.size));
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
    const Step& step = plan.steps[number];
    if (sent ? step.sends() : step.receives()) by_peer[static_cast<std::size_t>(step.peer)].push_back(number);
  }
  return by_peer;
}

// Walks back from the moment when a message can be sent, over what must have happened before.
class Past {
 public:
  Past(std::span<const Plan> plans, const Matches& matches) : plans_(plans), matches_(matches) {
    for (const Plan& plan : plans) ended_.emplace_back(plan.steps.size(), 0);
  }

  // Whether every dependency of the receive `of` has happened when the other end begins to send. A send has happened when its receiver has
  // everything.
  bool holds_dependencies(StepOf of) {
    ++mark_;
    open_.clear();
    std::vector<StepOf> wanted;
    for (const std::uint32_t dependency : plan(of).dependencies.of(of.step)) {
      const StepOf step{of.rank, dependency};
      wanted.push_back(at(step).sends() ? match(step) : step);
    }
    enter_dependencies(match(of));
    std::size_t found = 0;
    while (found < wanted.size()) {
      while (found < wanted.size() && has_ended(wanted[found])) ++found;
      if (found == wanted.size()) return true;
      if (open_.empty()) return false;
      const StepOf step = open_.back();
      open_.pop_back();
      if (at(step).receives()) enter_dependencies(match(step));
      // Those of a receive that is itself granted ahead are not used: that would be a proof that rests on itself.
      if (!(at(step).receives() && at(step).ahead())) enter_dependencies(step);
    }
    return true;
  }

 private:
  const Plan& plan(StepOf of) const { return plans_[static_cast<std::size_t>(of.rank)]; }
  const Step& at(StepOf of) const { return plan(of).steps[of.step]; }
  StepOf match(StepOf of) const { return matches_[static_cast<std::size_t>(of.rank)][of.step]; }
  bool has_ended(StepOf of) const { return ended_[static_cast<std::size_t>(of.rank)][of.step] == mark_; }

  // The dependencies of a step had ended when it began.
  void enter_dependencies(StepOf of) {
    for (const std::uint32_t dependency : plan(of).dependencies.of(of.step)) {
      std::uint64_t& mark = ended_[static_cast<std::size_t>(of.rank)][dependency];
      if (mark == mark_) continue;
      mark = mark_;
      open_.push_back({of.rank, dependency});
    }
  }

  std::span<const Plan> plans_;
  const Matches& matches_;
  std::vector<std::vector<std::uint64_t>> ended_;
  std::vector<StepOf> open_;
  std::uint64_t mark_ = 0;
};

}  // namespace

Result<Matches> match_messages(std::span<const Plan> plans) {
  Matches matches;
  std::vector<std::vector<std::vector<std::uint32_t>>> received;
  for (const Plan& plan : plans) {
    matches.emplace_back(plan.steps.size());
    received.push_back(messages_of(plan, false));
  }
  for (const Plan& plan : plans) {
    const Rank rank = plan.shape.rank;
    const auto sent = messages_of(plan, true);
    for (Rank peer = 0; peer < plan.shape.size; ++peer) {
      const auto& sends = sent[static_cast<std::size_t>(peer)];
      const auto& receives = received[static_cast<std::size_t>(peer)][static_cast<std::size_t>(rank)];
      if (sends.size() != receives.size())
        return Error(ErrorCode::kInternal,
                     fmt::format("rank {} sends {} messages to rank {}, which receives {}", rank, sends.size(), peer, receives.size()));
      const Plan& other = plans[static_cast<std::size_t>(peer)];
      for (std::size_t part = 0; part < sends.size(); ++part) {
        const Step& send = plan.steps[sends[part]];
        const Step& receive = other.steps[receives[part]];
        const std::size_t number = first_part(plan.shape.phase) + part;
        if (send.part != number) return wrong(rank, sends[part], fmt::format("is message {} by order and {} by number", number, send.part));
        if (receive.part != number)
          return wrong(peer, receives[part], fmt::format("is message {} by order and {} by number", number, receive.part));
        if (send.count != receive.count || plan.bytes(send.from()) != other.bytes(receive.into()) || send.channel != receive.channel)
          return wrong(rank, sends[part], fmt::format("is another message than step {} of rank {} waits for", receives[part], peer));
        matches[static_cast<std::size_t>(rank)][sends[part]] = {peer, receives[part]};
        matches[static_cast<std::size_t>(peer)][receives[part]] = {rank, sends[part]};
      }
    }
  }
  return matches;
}

Result<void> check_ahead(std::span<const Plan> plans, const Matches& matches) {
  Past past(plans, matches);
  for (const Plan& plan : plans)
    for (std::uint32_t number = 0; number < plan.steps.size(); ++number)
      if (plan.steps[number].ahead() && !past.holds_dependencies({plan.shape.rank, number}))
        return wrong(plan.shape.rank, number, "is granted ahead of what nobody vouches for");
  return {};
}

}  // namespace nexar::plan
