// `nexar bench OPERATION`: how long a collective takes, and whether its results are right.
//
// The ranks are processes that are started here as `nexar run` does; or, when the environment names a seed and no number of ranks is given,
// this process is one rank of the world that it joins. bench/timing.h says how time is taken, bench/values.h how results are checked.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "bench/burst.h"
#include "bench/call.h"
#include "bench/node_world.h"
#include "bench/row.h"
#include "bench/sizes.h"
#include "bench/table.h"
#include "commands.h"
#include "io/thread.h"
#include "launch/launch.h"
#include "nexar/info.h"
#include "nexar/node.h"
#include "nexar/shared_buffer.h"
#include "words.h"

namespace nexar::tool {
namespace {

constexpr int kWorldDefault = 2;
constexpr std::uint64_t kSeed = 7;
const std::string kEverything = "all";

struct Options {
  std::string operation;  // a name, or all
  std::vector<std::string> bytes;
  std::vector<std::string> types;
  std::vector<std::string> ops = {"sum"};
  std::string transport;
  std::string algorithm;
  std::size_t iterations = 0;
  std::size_t in_flight = 1;
  std::size_t in_sequence = 1;
  std::chrono::nanoseconds time{};
  Rank root = 0;
  std::string json;
  bool check = false;
  bool out_of_place = false;
  bool shared = false;
  bool pin = true;
  bool worker = false;    // this process is one of the ranks
  bool progress = false;  // a worker's output is shown on a terminal
  launch::LaunchOptions launch;
};

// Everything that is measured, in order.
std::vector<bench::Call> calls_of(const Options& options, int ranks) {
  const bool all = options.operation == kEverything;
  std::vector<DataType> types;
  for (const std::string& name : options.types) {
    if (name != kEverything)
      types.push_back(data_type_from(name).value());
    else
      types.assign(kDataTypes.begin(), kDataTypes.end());
  }
  std::vector<ReduceOp> ops;
  for (const std::string& name : options.ops) {
    if (name != kEverything)
      ops.push_back(reduce_op_from(name).value());
    else
      ops.assign(kReduceOps.begin(), kReduceOps.end());
  }
  const bool any_pair = options.types == std::vector{kEverything} || options.ops == std::vector{kEverything};
  const std::vector<std::uint64_t> sizes = bench::parse_sizes(options.bytes);

  std::vector<bench::Call> calls;
  const auto add = [&](const bench::Collective& collective, DataType type, ReduceOp op) {
    for (const std::uint64_t bytes : sizes) {
      calls.push_back(bench::call_of_bytes(collective, bytes, ranks, type, op));
      calls.back().in_place = !options.out_of_place;
      calls.back().root = options.root;
      if (collective.operation == OperationId::kBarrier) return;  // has no size
    }
  };
  for (const bench::Collective& collective : bench::collectives()) {
    if (!all && to_string(collective.operation) != options.operation) continue;
    for (const DataType type : types) {
      for (const ReduceOp op : ops) {
        const Result<void> legal = check_reducible(type, op);
        if (collective.reduces && !legal && any_pair) continue;
        if (collective.reduces) legal.value();
        add(collective, type, op);
        if (!collective.reduces) break;
      }
      if (collective.operation == OperationId::kBarrier) break;
    }
  }
  return calls;
}

// What all ranks' counts add up to; rank 0 knows.
std::uint64_t add_up(bench::NodeWorld& world, std::uint64_t count) {
  const auto own = static_cast<double>(count);
  const std::vector<double> all = world.gather({&own, 1});
  return static_cast<std::uint64_t>(std::accumulate(all.begin(), all.end(), 0.0));
}

bench::Block from_shared(std::size_t bytes) {
  auto buffer = std::make_shared<SharedBuffer>(alloc_shared(bytes).value());
  return {{static_cast<std::byte*>(buffer->data()), bytes}, buffer};
}

bench::Row measure(const Node& node, bench::NodeWorld& world, const bench::Call& call, const Options& options) {
  const std::size_t count = std::max(options.in_flight, options.in_sequence);
  const auto order = options.in_flight > 1 ? bench::Burst::Order::kAtOnce : bench::Burst::Order::kInSequence;
  bench::Burst burst(node.world(), call, count, order, CallOptions{std::nullopt, options.algorithm}, kSeed,
                     options.shared ? from_shared : bench::from_heap);
  const bool apart = bench::collective_of(call.operation).is_apart;
  const bench::Carrier carrier(node);
  bench::Timing timing = bench::measure(world, {options.iterations, options.time}, call.bytes(), apart, [&] { burst.once(); });
  timing.median_us /= static_cast<double>(count);
  timing.p99_us /= static_cast<double>(count);
  bench::Row row = bench::row_of(call, timing);
  row.in_flight = options.in_flight;
  row.algorithm = burst.algorithm();
  row.transport = row.algorithm == "shared_memory" ? "shm" : carrier.name();
  bench::require_carrier(node.config().transport, row.transport, call.bytes() / static_cast<std::uint64_t>(node.size()));
  if (options.check) row.wrong = add_up(world, burst.check());
  return row;
}

int run_worker(const Options& options) {
  Node node = Node::from_env().value();
  if (options.root >= node.size()) throw std::runtime_error(fmt::format("--root: there is no rank {} among {}", options.root, node.size()));
  // By rank, not by local rank: hosts may be namespaces of one machine.
  if (const int cores = info().cores; options.pin && node.local_size() <= cores) io::pin_thread(node.rank() % cores);
  bench::NodeWorld world(node);
  const std::vector<bench::Call> calls = calls_of(options, node.size());
  bench::Table table(node.rank() == 0 && options.json != "-", options.progress || isatty(STDOUT_FILENO) == 1, calls.size());
  for (const bench::Call& call : calls) table.add(measure(node, world, call, options));
  const double status = world.from_first(bench::status_of(table.rows()));
  node.close().value();
  if (node.rank() == 0 && !options.json.empty()) bench::write_text(bench::json_of(table.rows()), options.json);
  return static_cast<int>(status);
}

// The words of a worker's command line that say the same as ours.
std::vector<std::string> worker_words(const Options& options) {
  std::vector<std::string> words = {"bench", options.operation, "--worker"};
  const auto add = [&](const std::string& name, const std::string& value) { words.insert(words.end(), {name, value}); };
  add("--bytes", fmt::format("{}", fmt::join(options.bytes, ",")));
  add("--dtype", fmt::format("{}", fmt::join(options.types, ",")));
  add("--op", fmt::format("{}", fmt::join(options.ops, ",")));
  add("--iters", std::to_string(options.iterations));
  if (options.in_flight > 1) add("--in-flight", std::to_string(options.in_flight));
  if (options.in_sequence > 1) add("--in-sequence", std::to_string(options.in_sequence));
  add("--time", base::format_duration(options.time));
  add("--root", std::to_string(options.root));
  if (!options.algorithm.empty()) add("--algorithm", options.algorithm);
  if (!options.json.empty()) add("--json", options.json);
  if (options.check) words.emplace_back("--check");
  if (options.out_of_place) words.emplace_back("--out-of-place");
  if (options.shared) words.emplace_back("--shared");
  if (!options.pin) words.emplace_back("--no-pin");
  if (isatty(STDOUT_FILENO) == 1) words.emplace_back("--progress");
  return words;
}

int run(const Options& options) {
  if (!options.transport.empty()) setenv("NEXAR_TRANSPORT", options.transport.c_str(), 1);
  const char* seed = std::getenv("NEXAR_SEED");
  const bool joins = seed != nullptr && *seed != '\0' && options.launch.world == 0 && options.launch.hosts.empty();
  if (options.worker || joins) return run_worker(options);
  return launch_self(options.launch, "nexar bench " + options.operation, kWorldDefault, worker_words(options));
}

void add_one(CLI::App& bench, Action& action, const std::string& name, const std::string& help) {
  auto* command = bench.add_subcommand(name, help)->group("Collectives");
  const bool all = name == kEverything;
  auto options = std::make_shared<Options>();
  options->operation = name;
  options->bytes = all ? std::vector<std::string>{"8", "64K", "4M"} : std::vector<std::string>{"8", "1K", "64K", "1M", "16M", "64M"};
  options->types = all ? std::vector<std::string>{"f32", "bf16", "i32"} : std::vector<std::string>{"f32"};
  options->time = std::chrono::milliseconds(all ? 50 : 200);
  add_launch_options(*command, options->launch);
  command
      ->add_option("--bytes", options->bytes,
                   "Sizes: 8,1K,64M, or a range: 8-64M, 8-64M*4; of all ranks' parts together where there are parts")
      ->delimiter(',')
      ->check(is_size_or_range())
      ->capture_default_str();
  command->add_option("--dtype", options->types, "Element types: f32,bf16,i32, or all")->delimiter(',')->capture_default_str();
  command->add_option("--op", options->ops, "Reductions: sum,max, or all that the type has")->delimiter(',')->capture_default_str();
  command->add_option("--transport", options->transport, "What ranks talk over; any other than this is an error")
      ->check(CLI::IsMember({"auto", "shm", "net", "quic", "tcp"}));
  command->add_option("--algorithm", options->algorithm,
                      "By name, see docs/collectives.md; without it the planner's choice. Rows say which it was");
  command->add_option("--iters", options->iterations, "Iterations of each; 0: as many as fit into --time");
  add_duration(*command, "--time", "How long each row is measured, within 12 to 5000 iterations; " + base::format_duration(options->time),
               [options](auto value) { options->time = value; });
  auto* in_flight = command
                        ->add_option("--in-flight", options->in_flight,
                                     "Calls that are started before the first is waited for; times are those of one of them")
                        ->check(CLI::Range(1, 1024));
  command
      ->add_option("--in-sequence", options->in_sequence,
                   "Calls that follow one another, each in memory of its own as those of --in-flight; times are those of one of them")
      ->check(CLI::Range(1, 1024))
      ->excludes(in_flight);
  command->add_option("--root", options->root, "Of operations that have one")->check(CLI::NonNegativeNumber);
  command->add_flag("--check", options->check,
                    "Compare results with a serial oracle; #wrong counts elements on all ranks, and the status is 1 if there are any");
  command->add_flag("--out-of-place", options->out_of_place, "Results apart from what is given, where the operation can be in place");
  command->add_flag("--shared", options->shared, "Memory from alloc_shared, which the ranks of a host read in place");
  command->add_flag("!--no-pin", options->pin, "Leave the threads to the scheduler; they are pinned where there is a core for each rank");
  command->add_option("--json", options->json, "Write the rows to a file, or - for standard output");
  command->add_flag("--worker", options->worker)->group("");
  command->add_flag("--progress", options->progress)->group("");
  add_examples(*command, {fmt::format("nexar bench {} -n 4 --check    four processes of this host, results compared", name),
                          fmt::format("nexar bench {} --transport net    as between hosts", name)});
  command->callback([options, &action] {
    try {
      static_cast<void>(calls_of(*options, 1));  // what is wrong with sizes, types and reductions is said before anything starts
    } catch (const std::exception& wrong) {
      throw CLI::ValidationError(wrong.what());
    }
    action = [options] { return run(*options); };
  });
}

}  // namespace

void add_bench_collectives(CLI::App& bench, Action& action) {
  add_one(bench, action, kEverything, "Every collective, over f32, bf16 and i32");
  for (const bench::Collective& collective : bench::collectives()) {
    const std::string name(to_string(collective.operation));
    add_one(bench, action, name, "How long " + name + " takes, among 2 ranks or -n; or as a rank of the world that NEXAR_SEED names");
  }
}

}  // namespace nexar::tool
