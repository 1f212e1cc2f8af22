// What planning costs.
//
//   cached      the plan of a shape that was asked for before: plain, of ranks on several hosts, with a count for each rank
//   choose      choosing by cost among all candidates
//   build       a ring all-reduce on n ranks with so many segments in the buffer, or in each chunk
//   verify      all plans of a group together
#include <vector>

#include <benchmark/benchmark.h>

#include "plan/planner.h"
#include "plan/verify.h"

namespace nexar::bench {
namespace {

using plan::Shape;

Shape all_reduce(Rank size, std::uint64_t count) {
  return {.operation = OperationId::kAllReduce, .rank = size / 2, .size = size, .count = count};
}

void cached(benchmark::State& state) {
  plan::Planner planner(plan::Chooser({}, plan::LinkModel{}));
  const Shape shape = all_reduce(static_cast<Rank>(state.range(0)), 1 << 20);
  for (Rank i = 0; i < 64; ++i) planner.plan(all_reduce(i + 2, 1000)).value();
  planner.plan(shape).value();
  for (auto _ : state) benchmark::DoNotOptimize(planner.plan(shape).value());
}

// Ranks on hosts of eight, so that the shape has levels.
void cached_levels(benchmark::State& state) {
  plan::Planner planner;
  Shape shape = all_reduce(static_cast<Rank>(state.range(0)), 1 << 20);
  std::vector<int> hosts;
  for (Rank rank = 0; rank < shape.size; ++rank) hosts.push_back(rank / 8);
  shape.hosts = plan::Hosts(hosts);
  planner.plan(shape).value();
  for (auto _ : state) benchmark::DoNotOptimize(planner.plan(shape).value());
}

// A v-form, whose shape has a count for each rank.
void cached_counts(benchmark::State& state) {
  plan::Planner planner;
  Shape shape{.operation = OperationId::kAllGatherV, .size = static_cast<Rank>(state.range(0))};
  for (Rank rank = 0; rank < shape.size; ++rank) shape.receive_counts.push_back(static_cast<std::uint64_t>(rank) % 7);
  planner.plan(shape).value();
  for (auto _ : state) benchmark::DoNotOptimize(planner.plan(shape).value());
}

void choose(benchmark::State& state) {
  const plan::Chooser chooser({}, plan::LinkModel{});
  const Shape shape = all_reduce(1000, 1 << 20);
  for (auto _ : state) benchmark::DoNotOptimize(chooser.choose(shape).value());
}

void build(benchmark::State& state, const char* algorithm) {
  const auto size = static_cast<Rank>(state.range(0));
  const auto segments = static_cast<std::uint64_t>(state.range(1));
  const bool each_chunk = state.range(2) != 0;
  Shape shape = all_reduce(size, std::uint64_t{64} << 20);
  shape.segment = shape.count / (each_chunk ? segments * static_cast<std::uint64_t>(size) : segments);
  std::size_t steps = 0;
  for (auto _ : state) {
    const plan::Plan made = plan::make_plan(shape, *plan::find_algorithm(shape.operation, algorithm)).value();
    steps = made.steps.size();
  }
  state.counters["steps"] = static_cast<double>(steps);
}

void build_ring(benchmark::State& state) { build(state, "pipelined_ring"); }
void build_ordered(benchmark::State& state) { build(state, "rank_ordered"); }

void verify(benchmark::State& state) {
  std::vector<plan::Plan> plans;
  for (Rank rank = 0; rank < state.range(0); ++rank) {
    Shape shape = all_reduce(static_cast<Rank>(state.range(0)), 1 << 20);
    shape.rank = rank;
    plans.push_back(plan::make_plan(shape, *plan::find_algorithm(shape.operation, "pipelined_ring")).value());
  }
  for (auto _ : state) benchmark::DoNotOptimize(plan::verify(plans).value());
}

BENCHMARK(cached)->Arg(4)->Arg(1000);
BENCHMARK(cached_levels)->Arg(1000);
BENCHMARK(cached_counts)->Arg(4)->Arg(1000);
BENCHMARK(choose);
BENCHMARK(build_ring)
    ->ArgNames({"ranks", "segments", "each_chunk"})
    ->Args({1000, 64, 0})
    ->Args({1000, 64, 1})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(build_ordered)->ArgNames({"ranks", "segments", "each_chunk"})->Args({1000, 64, 0})->Unit(benchmark::kMillisecond);
BENCHMARK(verify)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nexar::bench

BENCHMARK_MAIN();
