#include "plan/executor.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace nexar::plan {
namespace {

constexpr Word kRubbish = 0xdeadbeefdeadbeef;

// A message on its way.
struct Transfer {
  std::size_t call;
  Rank from;
  Rank to;
  std::uint32_t send;     // step of the sender
  std::uint32_t receive;  // step of the receiver
  std::uint64_t moved = 0;
  std::vector<Word> copy{};  // of an eager message
};

class Executor {
 public:
  Executor(std::vector<RunningCall> calls, std::uint64_t seed) : calls_(std::move(calls)), random_(seed) {
    for (std::size_t call = 0; call < calls_.size(); ++call) {
      states_.emplace_back();
      for (const Plan& plan : calls_[call].plans) add_rank(call, plan);
    }
  }

  bool run() {
    for (std::size_t call = 0; call < calls_.size(); ++call)
      for (const Plan& plan : calls_[call].plans)
        for (std::uint32_t step = 0; step < plan.steps.size(); ++step)
          if (state(call, plan.shape.rank).waiting[step] == 0) start(call, plan.shape.rank, step);
    while (!actions_.empty() || !lanes_.empty()) {
      const std::size_t choices = actions_.size() + lanes_.size();
      const std::size_t choice = random_() % choices;
      if (choice < actions_.size()) {
        std::swap(actions_[choice], actions_.back());
        const std::function<void()> action = std::move(actions_.back());
        actions_.pop_back();
        action();
      } else {
        auto lane = lanes_.begin();
        std::advance(lane, static_cast<std::ptrdiff_t>(choice - actions_.size()));
        move_some(lane);
      }
    }
    return steps_left_ == 0;
  }

 private:
  struct RankState {
    const Plan* plan;
    std::vector<std::uint32_t> waiting;
    std::vector<Word> scratch;
    std::vector<Word> tokens;
    std::vector<bool> granted;                                     // receives
    std::vector<bool> sending;                                     // sends that are ready and not on their way
    std::map<std::pair<Rank, std::uint32_t>, std::uint32_t> to;    // (peer, part) -> send step
    std::map<std::pair<Rank, std::uint32_t>, std::uint32_t> from;  // (peer, part) -> receive step
  };
  using Lanes = std::map<std::pair<Rank, Rank>, std::deque<Transfer>>;

  RankState& state(std::size_t call, Rank rank) { return states_[call][static_cast<std::size_t>(rank)]; }

  void add_rank(std::size_t call, const Plan& plan) {
    RankState state;
    state.plan = &plan;
    state.scratch.assign(plan.scratch_count, kRubbish);
    state.tokens.assign(plan.token_count, 0);
    state.granted.assign(plan.steps.size(), false);
    state.sending.assign(plan.steps.size(), false);
    for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
      const Step& step = plan.steps[number];
      state.waiting.push_back(static_cast<std::uint32_t>(plan.dependencies.of(number).size()));
      if (step.sends()) state.to[{step.peer, step.part}] = number;
      if (step.receives()) state.from[{step.peer, step.part}] = number;
      if (step.receives() && step.ahead()) state.granted[number] = true;
    }
    steps_left_ += plan.steps.size();
    states_[call].push_back(std::move(state));
  }

  Word* memory(std::size_t call, Rank rank, Buffer buffer) {
    UserBuffers& user = (*calls_[call].buffers)[static_cast<std::size_t>(rank)];
    switch (buffer) {
      case Buffer::kInput: return user.input.data();
      case Buffer::kOutput: return user.output.data();
      case Buffer::kScratch: return state(call, rank).scratch.data();
      case Buffer::kToken: return state(call, rank).tokens.data();
    }
    return nullptr;
  }
  Word* at(std::size_t call, Rank rank, const Slice& slice) { return memory(call, rank, slice.buffer) + slice.first; }

  void start(std::size_t call, Rank rank, std::uint32_t number) {
    const Step& step = state(call, rank).plan->steps[number];
    if (step.sends()) {
      state(call, rank).sending[number] = true;
      actions_.push_back([=, this] { try_send(call, rank, number); });
    } else if (step.receives()) {
      if (state(call, rank).granted[number]) return;
      state(call, rank).granted[number] = true;
      const std::uint32_t send = state(call, step.peer).to.at({rank, step.part});
      if (state(call, step.peer).sending[send]) actions_.push_back([=, this, peer = step.peer] { try_send(call, peer, send); });
    } else {
      actions_.push_back([=, this] { compute(call, rank, number); });
    }
  }

  void try_send(std::size_t call, Rank rank, std::uint32_t number) {
    RankState& sender = state(call, rank);
    const Step& step = sender.plan->steps[number];
    if (!sender.sending[number]) return;
    const std::uint32_t receive = state(call, step.peer).from.at({rank, step.part});
    if (!state(call, step.peer).granted[receive]) return;  // the grant comes back to it
    sender.sending[number] = false;
    Transfer transfer{call, rank, step.peer, number, receive};
    if (random_() % 3 == 0) {
      const Word* source = at(call, rank, step.from());
      transfer.copy.assign(source, source + step.count);
      actions_.push_back([=, this] { done(call, rank, number); });
    }
    lanes_[{rank, step.peer}].push_back(std::move(transfer));
  }

  void move_some(Lanes::iterator lane) {
    Transfer& transfer = lane->second.front();
    const Step& send = state(transfer.call, transfer.from).plan->steps[transfer.send];
    const Step& receive = state(transfer.call, transfer.to).plan->steps[transfer.receive];
    const std::uint64_t left = receive.count - transfer.moved;
    const std::uint64_t count = random_() % 2 == 0 ? left : std::min(left, 1 + random_() % left);
    const bool eager = !transfer.copy.empty();
    const Word* source = (eager ? transfer.copy.data() : at(transfer.call, transfer.from, send.from())) + transfer.moved;
    Word* target = at(transfer.call, transfer.to, receive.into()) + transfer.moved;
    const Word* own = receive.reads_from() ? at(transfer.call, transfer.to, receive.from()) + transfer.moved : nullptr;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (own == nullptr) {
        target[i] = source[i];
      } else if (receive.into_buffer != Buffer::kToken) {
        const auto& combine = calls_[transfer.call].arithmetic->combine;
        target[i] = receive.received_first() ? combine(source[i], own[i]) : combine(own[i], source[i]);
      }
    }
    transfer.moved += count;
    if (transfer.moved < receive.count) return;
    const Transfer ended = std::move(transfer);
    lane->second.pop_front();
    if (lane->second.empty()) lanes_.erase(lane);
    done(ended.call, ended.to, ended.receive);
    if (!eager) actions_.push_back([=, this] { done(ended.call, ended.from, ended.send); });
  }

  void compute(std::size_t call, Rank rank, std::uint32_t number) {
    const Plan& plan = *state(call, rank).plan;
    const Step& step = plan.steps[number];
    const Arithmetic& arithmetic = *calls_[call].arithmetic;
    Word* into = at(call, rank, step.into());
    for (std::uint64_t i = 0; i < step.count; ++i) {
      if (step.kind == StepKind::kCopy) into[i] = at(call, rank, step.from())[i];
      if (step.kind == StepKind::kFillIdentity) into[i] = arithmetic.identity;
      if (step.kind == StepKind::kFinish) into[i] = arithmetic.divide(into[i], plan.divisor);
      if (step.kind != StepKind::kReduce) continue;
      const auto sources = plan.sources_of(step);
      Word sum = memory(call, rank, sources[0].buffer)[sources[0].first + i];
      for (std::size_t s = 1; s < sources.size(); ++s)
        sum = arithmetic.combine(sum, memory(call, rank, sources[s].buffer)[sources[s].first + i]);
      into[i] = step.divides() ? arithmetic.divide(sum, plan.divisor) : sum;
    }
    done(call, rank, number);
  }

  void done(std::size_t call, Rank rank, std::uint32_t number) {
    --steps_left_;
    RankState& here = state(call, rank);
    for (const std::uint32_t dependent : here.plan->dependents.of(number))
      if (--here.waiting[dependent] == 0) start(call, rank, dependent);
  }

  std::vector<RunningCall> calls_;
  std::vector<std::vector<RankState>> states_;
  std::vector<std::function<void()>> actions_;
  Lanes lanes_;
  std::mt19937_64 random_;
  std::size_t steps_left_ = 0;
};

}  // namespace

std::vector<UserBuffers> buffers_for(std::span<const Plan> plans, const std::function<Word(Rank, std::uint64_t)>& value) {
  std::vector<UserBuffers> all;
  for (const Plan& plan : plans) {
    UserBuffers buffers;
    buffers.input.assign(plan.extent_of(Buffer::kInput), kRubbish);
    buffers.output.assign(plan.extent_of(Buffer::kOutput), kRubbish);
    const Slice input = plan.input();
    std::vector<Word>& holder = input.buffer == Buffer::kInput ? buffers.input : buffers.output;
    const bool gives = plan.shape.operation != OperationId::kBroadcast || plan.shape.is_root();
    for (std::uint64_t i = 0; gives && i < input.count; ++i) holder[input.first + i] = value(plan.shape.rank, i);
    all.push_back(std::move(buffers));
  }
  return all;
}

std::span<const Word> result_of(const Plan& plan, const UserBuffers& buffers) {
  const Slice output = plan.output();
  const std::vector<Word>& holder = output.buffer == Buffer::kInput ? buffers.input : buffers.output;
  return std::span(holder).subspan(output.first, output.count);
}

bool execute(std::vector<RunningCall> calls, std::uint64_t seed) { return Executor(std::move(calls), seed).run(); }

}  // namespace nexar::plan
