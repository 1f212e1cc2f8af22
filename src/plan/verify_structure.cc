// What can be seen from each plan alone: bounds, operands, dependencies, races.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plan/verify_parts.h"

namespace nexar::plan {
namespace {

Result<void> check_call(std::span<const Plan> plans) {
  if (plans.empty()) return Error(ErrorCode::kInternal, "no plans");
  const Shape& first = plans[0].shape;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Shape& shape = plans[i].shape;
    if (auto checked = shape.check(); !checked) return checked;
    if (shape.rank != static_cast<Rank>(i) || shape.size != static_cast<Rank>(plans.size()))
      return Error(ErrorCode::kInternal, fmt::format("plan {} of {} is of {}", i, plans.size(), shape.to_text()));
    if (shape.operation != first.operation || shape.root != first.root || shape.ordered != first.ordered ||
        shape.reproducible != first.reproducible || shape.phase != first.phase || shape.average != first.average ||
        shape.hosts != first.hosts || plans[i].algorithm != plans[0].algorithm)
      return Error(ErrorCode::kInternal, fmt::format("ranks 0 and {} have plans of different calls", i));
    if (plans[i].divisor != shape.divisor())
      return Error(ErrorCode::kInternal, fmt::format("the plan of rank {} divides by {}", i, plans[i].divisor));
  }
  return {};
}

Result<void> check_slice(const Plan& plan, std::size_t number, const Slice& slice) {
  const std::uint64_t extent = plan.extent_of(slice.buffer);
  if (slice.count > extent || slice.first > extent - slice.count)
    return wrong(plan.shape.rank, number, fmt::format("is outside its {}, which has {} elements", to_string(slice.buffer), extent));
  return {};
}

// What is read and what is written, one at most.
struct Accesses {
  std::vector<Slice> reads;
  std::vector<Slice> writes;
};

Accesses accesses_of(const Plan& plan, const Step& step) {
  Accesses accesses;
  if (step.reads_from()) accesses.reads.push_back(step.from());
  if (step.kind == StepKind::kFinish) accesses.reads.push_back(step.into());
  if (step.kind == StepKind::kReduce)
    for (const Place& place : plan.sources_of(step)) accesses.reads.push_back({place.buffer, place.first, step.count});
  if (step.writes()) accesses.writes.push_back(step.into());
  return accesses;
}

Result<void> check_operands(const Plan& plan, std::size_t number) {
  const Step& step = plan.steps[number];
  const Rank rank = plan.shape.rank;
  if (step.kind == StepKind::kSignal || step.kind == StepKind::kWait) return wrong(rank, number, "is for shared memory");
  if (step.count == 0) return wrong(rank, number, "does nothing");
  const bool message = step.sends() || step.receives();
  if (message && (step.peer < 0 || step.peer >= plan.shape.size || step.peer == rank)) return wrong(rank, number, "has no such peer");
  if (step.kind == StepKind::kReduce &&
      (step.source_count == 0 || step.source_first + std::size_t{step.source_count} > plan.sources.size()))
    return wrong(rank, number, "has no sources");
  const Accesses accesses = accesses_of(plan, step);
  for (const Slice& slice : accesses.reads)
    if (auto checked = check_slice(plan, number, slice); !checked) return checked;
  for (const Slice& slice : accesses.writes) {
    if (auto checked = check_slice(plan, number, slice); !checked) return checked;
    if (slice.buffer == Buffer::kInput && plan.shape.alias() != Alias::kOutputInInput)
      return wrong(rank, number, "writes the user's input");
  }
  if ((step.kind == StepKind::kCopy && step.into().overlaps(step.from())) ||
      (step.kind == StepKind::kReceiveReduce && step.into() != step.from() && step.into().overlaps(step.from())))
    return wrong(rank, number, "overlaps its own operand");
  // The rule of reduce::Reducer::combine_many for user ops.
  if (step.kind == StepKind::kReduce)
    for (std::size_t i = 0; i < accesses.reads.size(); ++i)
      if (accesses.reads[i].overlaps(step.into()) && (accesses.reads[i] != step.into() || (i > 0 && accesses.reads.size() > 2)))
        return wrong(rank, number, "overwrites a source that is not the first");
  if (step.divides() && step.kind != StepKind::kReduce) return wrong(rank, number, "cannot divide");
  if (step.ahead() && !step.receives()) return wrong(rank, number, "cannot be granted");
  return {};
}

Result<void> check_dependencies(const Plan& plan) {
  const std::size_t steps = plan.steps.size();
  for (const StepLists* lists : {&plan.dependencies, &plan.dependents})
    if (lists->offsets.size() != steps + 1 || lists->offsets.back() != lists->numbers.size())
      return wrong(plan.shape.rank, steps, "ends the plan, which has a wrong table");
  for (std::size_t number = 0; number < steps; ++number)
    for (const std::uint32_t dependency : plan.dependencies.of(number))
      if (dependency >= number) return wrong(plan.shape.rank, number, "depends on a later step");
  if (plan.dependents != reversed(plan.dependencies)) return wrong(plan.shape.rank, steps, "ends the plan, whose tables disagree");
  return {};
}

// Whether `later` waits for `earlier`, directly or not.
bool waits(const Plan& plan, std::uint32_t later, std::uint32_t earlier, std::vector<std::uint32_t>& seen, std::uint32_t mark) {
  std::vector<std::uint32_t> open = {later};
  while (!open.empty()) {
    const std::uint32_t number = open.back();
    open.pop_back();
    for (const std::uint32_t dependency : plan.dependencies.of(number)) {
      if (dependency == earlier) return true;
      if (dependency < earlier || seen[dependency] == mark) continue;
      seen[dependency] = mark;
      open.push_back(dependency);
    }
  }
  return false;
}

struct Access {
  Slice slice;
  std::uint32_t step;
  bool writes;
};

}  // namespace

Result<void> check_structure(std::span<const Plan> plans) {
  if (auto checked = check_call(plans); !checked) return checked;
  for (const Plan& plan : plans) {
    for (std::size_t number = 0; number < plan.steps.size(); ++number)
      if (auto checked = check_operands(plan, number); !checked) return checked;
    if (auto checked = check_dependencies(plan); !checked) return checked;
  }
  return {};
}

Result<void> check_races(const Plan& plan) {
  std::vector<Access> all;
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number) {
    const Accesses accesses = accesses_of(plan, plan.steps[number]);
    for (const Slice& slice : accesses.reads) all.push_back({slice, number, false});
    for (const Slice& slice : accesses.writes) all.push_back({slice, number, true});
  }
  std::sort(all.begin(), all.end(), [](const Access& a, const Access& b) {
    return a.slice.buffer != b.slice.buffer ? a.slice.buffer < b.slice.buffer : a.slice.first < b.slice.first;
  });
  std::vector<std::uint32_t> seen(plan.steps.size(), 0);
  std::uint32_t mark = 0;
  std::vector<Access> open;  // those that reach beyond where the current one begins
  for (const Access& access : all) {
    std::erase_if(
        open, [&](const Access& other) { return other.slice.buffer != access.slice.buffer || other.slice.end() <= access.slice.first; });
    for (const Access& other : open) {
      if (!(access.writes || other.writes) || other.step == access.step || !other.slice.overlaps(access.slice)) continue;
      const auto [earlier, later] = std::minmax(other.step, access.step);
      if (!waits(plan, later, earlier, seen, ++mark))
        return wrong(plan.shape.rank, later, fmt::format("touches what step {} uses and does not wait for it", earlier));
    }
    open.push_back(access);
  }
  return {};
}

}  // namespace nexar::plan
