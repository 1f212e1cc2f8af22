// Executes plans on symbols, on links that buffer nothing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/verify_parts.h"

namespace nexar::plan {
namespace {

using Runs = std::vector<SymbolRun>;

// Cuts operands so that all have runs of the same extents, and calls use(extent, symbols) for each.
template <typename Use>
Result<void> for_each_common_run(const std::vector<Runs>& operands, std::uint64_t count, Use use) {
  std::vector<std::size_t> at(operands.size(), 0);
  std::vector<Symbol> symbols(operands.size());
  for (std::uint64_t position = 0; position < count;) {
    std::uint64_t end = count;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      while (operands[i][at[i]].extent.end() <= position) ++at[i];
      const SymbolRun& run = operands[i][at[i]];
      end = std::min(end, run.extent.end());
      symbols[i] = run.symbol.after(position - run.extent.first);
    }
    if (auto used = use(Extent{position, end - position}, symbols); !used) return used;
    position = end;
  }
  return {};
}

// Goes in rounds, as time does: in each, at most one message moves from one rank to another, the one with the lowest number first, and what
// it makes possible comes in the next.
class Run {
 public:
  Run(std::span<const Plan> plans, const Matches& matches, Expressions& expressions, std::vector<SymbolMemory>& memories, Report& report)
      : plans_(plans), matches_(matches), expressions_(expressions), memories_(memories), report_(report) {}

  Result<void> execute() {
    start();
    while (!ready_.empty()) {
      std::vector<StepOf> now;
      std::swap(now, ready_);
      std::stable_sort(now.begin(), now.end(), [&](StepOf a, StepOf b) { return at(a).part < at(b).part; });
      ++round_;
      for (const StepOf step : now)
        if (auto done = advance(step); !done) return done;
    }
    for (const Plan& plan : plans_)
      for (std::size_t number = 0; number < plan.steps.size(); ++number)
        if (!rank(plan.shape.rank).done[number]) return wrong(plan.shape.rank, number, "never happens: a deadlock");
    return {};
  }

 private:
  struct RankState {
    std::vector<std::uint32_t> waiting;  // dependencies of each step that are not done
    std::vector<bool> open;              // sends that are ready, receives that are granted
    std::vector<bool> done;
    std::vector<std::uint32_t> granted;  // receives from each peer that are open and not done
    std::vector<std::uint32_t> left;     // messages from each peer that have not come
    std::vector<std::uint64_t> came;     // the round in which the last one from each peer came
  };

  const Plan& plan(Rank rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  const Step& at(StepOf of) const { return plan(of.rank).steps[of.step]; }
  RankState& rank(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  SymbolMemory& memory(Rank rank) { return memories_[static_cast<std::size_t>(rank)]; }

  void start() {
    for (const Plan& plan : plans_) {
      RankState state;
      state.open.assign(plan.steps.size(), false);
      state.done.assign(plan.steps.size(), false);
      state.granted.assign(plans_.size(), 0);
      state.left.assign(plans_.size(), 0);
      state.came.assign(plans_.size(), 0);
      for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
        const Step& step = plan.steps[number];
        state.waiting.push_back(static_cast<std::uint32_t>(plan.dependencies.of(number).size()));
        if (step.receives()) ++state.left[static_cast<std::size_t>(step.peer)];
        if (state.waiting.back() == 0 || step.ahead()) make_ready(state, {plan.shape.rank, number}, step);
      }
      report_.steps += plan.steps.size();
      ranks_.push_back(std::move(state));
    }
  }

  // Grants count from here, before anything else happens at this moment.
  void make_ready(RankState& state, StepOf of, const Step& step) {
    if (state.open[of.step]) return;
    state.open[of.step] = true;
    if (step.receives()) ++state.granted[static_cast<std::size_t>(step.peer)];
    ready_.push_back(of);
  }

  Result<void> advance(StepOf of) {
    const Step& step = at(of);
    if (rank(of.rank).done[of.step]) return {};
    if (!step.sends() && !step.receives()) {
      if (auto done = compute(of); !done) return done;
      finish(of);
      return {};
    }
    const StepOf other = matches_[static_cast<std::size_t>(of.rank)][of.step];
    if (!rank(other.rank).open[other.step]) return {};  // the other end comes back to it
    return step.sends() ? transfer(of, other) : transfer(other, of);
  }

  Result<void> transfer(StepOf send, StepOf receive) {
    RankState& receiver = rank(receive.rank);
    const auto from = static_cast<std::size_t>(send.rank);
    if (std::exchange(receiver.came[from], round_) == round_) {
      ready_.push_back(send);
      return {};
    }
    if (--receiver.left[from] > 0) report_.grants_ahead = std::min(report_.grants_ahead, receiver.granted[from]);
    --receiver.granted[from];
    ++report_.messages;
    const Runs came = memory(send.rank).read(at(send).from());
    const Step& step = at(receive);
    if (step.kind == StepKind::kReceive) {
      if (auto stored = store(receive, came); !stored) return stored;
    } else {
      Runs own = memory(receive.rank).read(step.from());
      std::vector<Runs> operands = {std::move(own), came};
      if (step.received_first()) std::swap(operands[0], operands[1]);
      if (auto reduced = reduce(receive, operands, false); !reduced) return reduced;
    }
    finish(receive);
    finish(send);
    return {};
  }

  Result<void> compute(StepOf of) {
    const Step& step = at(of);
    SymbolMemory& here = memory(of.rank);
    switch (step.kind) {
      case StepKind::kCopy: return store(of, here.read(step.from()));
      case StepKind::kFillIdentity: return store(of, {{{0, step.count}, {kIdentity, 0}}});
      case StepKind::kFinish: return divide(of);
      case StepKind::kReduce: {
        std::vector<Runs> operands;
        for (const Place& place : plan(of.rank).sources_of(step)) operands.push_back(here.read({place.buffer, place.first, step.count}));
        if (auto reduced = reduce(of, operands, true); !reduced) return reduced;
        return step.divides() ? divide(of) : Result<void>{};
      }
      default: return wrong(of.rank, of.step, "is of a kind that cannot be executed");
    }
  }

  Result<void> store(StepOf of, const Runs& runs) {
    for (const SymbolRun& run : runs)
      if (run.symbol.expression == kUndefined) return wrong(of.rank, of.step, "moves what nobody has written");
    memory(of.rank).write(at(of).into(), runs);
    return {};
  }

  Result<void> divide(StepOf of) {
    Runs runs = memory(of.rank).read(at(of).into());
    for (SymbolRun& run : runs) {
      if (!expressions_.reducible(run.symbol.expression)) return wrong(of.rank, of.step, "divides what cannot be, or twice");
      run.symbol.expression = expressions_.divide(run.symbol.expression);
    }
    memory(of.rank).write(at(of).into(), runs);
    return {};
  }

  Result<void> reduce(StepOf of, const std::vector<Runs>& operands, bool once) {
    Runs result;
    auto reduced = for_each_common_run(operands, at(of).count, [&](Extent extent, const std::vector<Symbol>& symbols) -> Result<void> {
      std::vector<ExpressionId> ids;
      for (const Symbol& symbol : symbols) {
        if (!expressions_.reducible(symbol.expression)) return wrong(of.rank, of.step, "reduces what is not written, or divided already");
        if (symbol.base != symbols[0].base) return wrong(of.rank, of.step, "reduces different elements");
        ids.push_back(symbol.expression);
      }
      const ExpressionId id = once ? expressions_.accumulate(std::move(ids)) : expressions_.combine(ids[0], ids[1]);
      result.push_back({extent, {id, symbols[0].base}});
      return {};
    });
    if (!reduced) return reduced;
    memory(of.rank).write(at(of).into(), result);
    return {};
  }

  void finish(StepOf of) {
    RankState& state = rank(of.rank);
    state.done[of.step] = true;
    for (const std::uint32_t dependent : plan(of.rank).dependents.of(of.step))
      if (--state.waiting[dependent] == 0) make_ready(state, {of.rank, dependent}, plan(of.rank).steps[dependent]);
  }

  std::span<const Plan> plans_;
  const Matches& matches_;
  Expressions& expressions_;
  std::vector<SymbolMemory>& memories_;
  Report& report_;
  std::vector<RankState> ranks_;
  std::vector<StepOf> ready_;
  std::uint64_t round_ = 0;
};

}  // namespace

SymbolMemory::SymbolMemory(const Plan& plan) {
  for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput, Buffer::kScratch, Buffer::kToken})
    buffers.emplace_back(plan.extent_of(buffer));
  const Shape& shape = plan.shape;
  const Symbol own{2 + static_cast<ExpressionId>(shape.rank), 0};
  if (shape.operation == OperationId::kBarrier) {
    // The first token is that this rank has entered.
    if (plan.token_count > 0) write({Buffer::kToken, 0, 1}, {{{0, 1}, own}});
    return;
  }
  if (shape.operation == OperationId::kBroadcast && !shape.is_root()) return;
  const Slice input = plan.input();
  if (!input.empty()) write(input, {{{0, input.count}, own}});
}

Result<void> run_symbols(std::span<const Plan> plans, const Matches& matches, Expressions& expressions, std::vector<SymbolMemory>& memories,
                         Report& report) {
  return Run(plans, matches, expressions, memories, report).execute();
}

}  // namespace nexar::plan
