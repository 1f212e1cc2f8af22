// `nexar bench join`: how long processes, or nodes of one process, take to become a world through one seed.
//
// Each rank notes by the wall clock, which all processes of a host share, when it began to join and when it had joined, and tells rank 0,
// which reports. The time is from the first beginning to the last end; the whole also counts what comes before: the seed, and the start of
// processes.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/row.h"
#include "commands.h"
#include "launch/launch.h"
#include "nexar/node.h"
#include "nexar/seed.h"
#include "words.h"

namespace nexar::tool {
namespace {

constexpr Tag kTimesTag = 1;
constexpr int kWorldDefault = 16;

struct Options {
  std::string json;
  bool in_process = false;
  bool worker = false;       // this process is one of the ranks
  std::int64_t started = 0;  // when the launcher was, for a worker
  launch::LaunchOptions launch;
};

std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// One rank's join.
struct Times {
  std::int64_t began = 0;
  std::int64_t ended = 0;
};

struct Row {
  std::string op;
  std::size_t ranks = 0;
  double time_us = 0;    // from the first beginning to the last end
  double median_us = 0;  // of what each rank took
  double max_us = 0;
  double whole_us = 0;
};

Row row_of(const std::string& op, const std::vector<Times>& all, std::int64_t started) {
  std::vector<double> each;
  std::int64_t first = all.front().began;
  std::int64_t last = all.front().ended;
  for (const Times& one : all) {
    each.push_back(static_cast<double>(one.ended - one.began) / 1e3);
    first = std::min(first, one.began);
    last = std::max(last, one.ended);
  }
  std::sort(each.begin(), each.end());
  return {op,
          all.size(),
          static_cast<double>(last - first) / 1e3,
          each[each.size() / 2],
          each.back(),
          static_cast<double>(last - started) / 1e3};
}

int report(const Row& row, const std::string& json) {
  if (json != "-") {
    fmt::print("{:<16}{:>8}{:>14}{:>14}{:>14}{:>14}\n", "op", "ranks", "time (us)", "median (us)", "max (us)", "whole (us)");
    fmt::print("{:<16}{:>8}{:>14.0f}{:>14.0f}{:>14.0f}{:>14.0f}\n", row.op, row.ranks, row.time_us, row.median_us, row.max_us,
               row.whole_us);
  }
  if (json.empty()) return 0;
  const nlohmann::ordered_json array = {{{"op", row.op},
                                         {"ranks", row.ranks},
                                         {"transport", "quic"},
                                         {"time_us", row.time_us},
                                         {"median_us", row.median_us},
                                         {"max_us", row.max_us},
                                         {"whole_us", row.whole_us}}};
  bench::write_text(array.dump(1) + "\n", json);
  return 0;
}

// Rank 0 has everybody's times; the others have sent theirs.
std::vector<Times> collect(const Node& node, const Times& own) {
  const Group world = node.world();
  if (node.rank() != 0) {
    world.send(&own, sizeof own, 0, kTimesTag).value();
    return {};
  }
  std::vector<Times> all(static_cast<std::size_t>(node.size()), own);
  for (Rank rank = 1; rank < node.size(); ++rank) world.recv(&all[static_cast<std::size_t>(rank)], sizeof(Times), rank, kTimesTag).value();
  return all;
}

int run_worker(const Options& options) {
  Times own{wall_ns(), 0};
  Node node = Node::from_env().value();
  own.ended = wall_ns();
  const std::vector<Times> all = collect(node, own);
  node.close().value();
  return all.empty() ? 0 : report(row_of("join", all, options.started), options.json);
}

// Starts this program again, as all ranks; rank 0 reports.
int run_processes(const Options& options) {
  std::vector<std::string> words = {"bench", "join", "--worker", "--started", std::to_string(wall_ns())};
  if (!options.json.empty()) words.insert(words.end(), {"--json", options.json});
  return launch_self(options.launch, "nexar bench join", kWorldDefault, words);
}

// A thread for each node, which joins as a process would.
int run_in_process(const Options& options) {
  const std::int64_t started = wall_ns();
  const int world = options.launch.world == 0 ? kWorldDefault : options.launch.world;
  SeedCredentials credentials = SeedCredentials::make().value();
  JoinOptions join;
  join.config = Config::from_env().value();
  join.token = credentials.token();
  const Seed seed = Seed::start({.listen = "127.0.0.1:0", .world = world, .credentials = std::move(credentials)}).value();
  join.seed = seed.address();

  const auto count = static_cast<std::size_t>(world);
  std::vector<Times> times(count);
  std::vector<std::optional<Result<Node>>> nodes(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      times[i].began = wall_ns();
      nodes[i].emplace(Node::join(join));
      times[i].ended = wall_ns();
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& node : nodes) static_cast<void>(node->value());

  // All at once, because each waits for the others' acknowledgements.
  std::vector<Result<void>> closed(count);
  threads.clear();
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&, i] { closed[i] = (**nodes[i]).close(); });
  for (std::thread& thread : threads) thread.join();
  for (const Result<void>& one : closed) one.value();
  return report(row_of("join_in_process", times, started), options.json);
}

int run(const Options& options) {
  if (options.worker) return run_worker(options);
  return options.in_process ? run_in_process(options) : run_processes(options);
}

}  // namespace

void add_bench_join(CLI::App& bench, Action& action) {
  auto* join = bench.add_subcommand("join", "How long processes take to become a world; 16 unless -n says otherwise");
  auto options = std::make_shared<Options>();
  add_launch_options(*join, options->launch);
  join->add_flag("--in-process", options->in_process, "All nodes in one process");
  join->add_flag("--worker", options->worker)->group("");
  join->add_option("--started", options->started)->group("");
  join->add_option("--json", options->json, "Write the row to a file, or - for standard output");
  add_examples(*join, {"nexar bench join -n 16                 processes of this host",
                       "nexar bench join -n 16 --in-process    nodes of one process"});
  join->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace nexar::tool
