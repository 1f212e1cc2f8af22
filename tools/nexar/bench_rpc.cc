// `nexar bench rpc`: calls between two nodes, beside messages on the same link in the same run.
//
// Rank 0 calls; rank 1 waits for a message that ends each measurement, so that its thread drives, as a rank does that waits for others.
// Latencies of message ping-pong, quick handlers and pool handlers are measured in turns, because machines drift; the columns compare
// medians.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "io/thread.h"
#include "launch/launch.h"
#include "nexar/node.h"
#include "nexar/rpc.h"
#include "words.h"

namespace nexar::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Tag kPingTag = 1;
constexpr Tag kEndTag = 2;
constexpr Tag kLoadTag = 3;
constexpr std::size_t kLoadBytes = std::size_t{1} << 30;
constexpr std::size_t kRounds = 10;
constexpr std::size_t kRateRounds = 7;
constexpr std::size_t kFlights[] = {1, 4, 16, 64};

struct Options {
  std::size_t iterations = 4000;
  std::size_t bytes = 8;
  std::string wait = "spin";
  std::string json;
  bool loaded = true;
  bool pin = true;
  bool in_process = false;
  bool worker = false;  // this process is one of the ranks
  launch::LaunchOptions launch;
};

struct Row {
  std::string op;
  std::size_t flight = 1;  // calls at once
  double time_us = 0;      // median of one, of those that are made one at a time
  double p99_us = 0;
  double rate = 0;   // a second
  double ratio = 0;  // to what the name says: latency to that of messages, rate to that of one at a time, loaded to idle
};

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

Row summary(std::string op, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  Row row{std::move(op), 1, times[times.size() / 2], times[times.size() * 99 / 100]};
  row.rate = 1e6 / row.time_us;
  return row;
}

// Rank 1's part of everything but ping-pong: to be there.
void attend(const Group& group) { group.recv(nullptr, 0, 0, kEndTag).value(); }
void dismiss(const Group& group) { group.send(nullptr, 0, 1, kEndTag).value(); }

void ping_pong(const Node& node, const Options& options, std::size_t iterations, std::vector<double>& times) {
  const Group group = node.world();
  std::vector<std::byte> buffer(options.bytes);
  for (std::size_t i = 0; i < iterations; ++i) {
    const Clock::time_point start = Clock::now();
    if (node.rank() == 0) group.send(buffer.data(), buffer.size(), 1, kPingTag).value();
    group.recv(buffer.data(), buffer.size(), 1 - node.rank(), kPingTag).value();
    if (node.rank() == 1) group.send(buffer.data(), buffer.size(), 0, kPingTag).value();
    times.push_back(microseconds(Clock::now() - start));
  }
}

void call_one_by_one(const Node& node, const char* function, const Options& options, std::size_t iterations, std::vector<double>& times) {
  if (node.rank() == 1) return attend(node.world());
  const std::vector<std::byte> arguments(options.bytes);
  const Rpc rpc = node.rpc();
  for (std::size_t i = 0; i < iterations; ++i) {
    const Clock::time_point start = Clock::now();
    rpc.call(1, function, arguments).value();
    times.push_back(microseconds(Clock::now() - start));
  }
  dismiss(node.world());
}

std::vector<Row> measure_latency(const Node& node, const Options& options) {
  std::vector<double> messages;
  std::vector<double> quick;
  std::vector<double> pool;
  const std::size_t each = std::max<std::size_t>(1, options.iterations / kRounds);
  for (std::size_t round = 0; round <= kRounds; ++round) {
    ping_pong(node, options, each, messages);
    call_one_by_one(node, "quick", options, each, quick);
    call_one_by_one(node, "pool", options, each, pool);
    if (round > 0) continue;  // warm now
    messages.clear();
    quick.clear();
    pool.clear();
  }
  if (node.rank() == 1) return {};
  std::vector<Row> rows = {summary("message", messages), summary("call_quick", quick), summary("call_pool", pool)};
  for (Row& row : rows) row.ratio = row.time_us / rows.front().time_us;
  return rows;
}

// Calls a second with `flight` of them under way all the time, from one thread.
double measure_rate(const Node& node, const char* function, std::size_t flight, const Options& options) {
  if (node.rank() == 1) {
    attend(node.world());
    return 0;
  }
  const std::vector<std::byte> arguments(options.bytes);
  const Rpc rpc = node.rpc();
  const std::size_t calls = std::max<std::size_t>(flight, options.iterations / 2 * std::min<std::size_t>(flight, 8));
  std::deque<Operation> under_way;
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < calls; ++i) {
    if (under_way.size() == flight) {
      under_way.front().wait().value();
      under_way.pop_front();
    }
    under_way.push_back(rpc.start_call(1, function, arguments));
  }
  for (Operation& call : under_way) call.wait().value();
  const double seconds = microseconds(Clock::now() - start) / 1e6;
  dismiss(node.world());
  return static_cast<double>(calls) / seconds;
}

// Medians over rounds in which each has its turn.
std::vector<Row> measure_rates(const Node& node, const Options& options) {
  std::vector<Row> rows;
  for (const char* function : {"quick", "pool"}) {
    std::array<std::vector<double>, std::size(kFlights)> rates;
    for (std::size_t round = 0; round < kRateRounds; ++round)
      for (std::size_t i = 0; i < std::size(kFlights); ++i) rates[i].push_back(measure_rate(node, function, kFlights[i], options));
    for (std::size_t i = 0; i < std::size(kFlights); ++i) {
      std::sort(rates[i].begin(), rates[i].end());
      Row row{fmt::format("rate_{}", function), kFlights[i]};
      row.rate = rates[i][kRateRounds / 2];
      row.ratio = row.rate / rates[0][kRateRounds / 2];
      rows.push_back(row);
    }
  }
  return rows;
}

// Quick calls while a gigabyte is sent, from when it flows until it has arrived; compared with calls just before.
Row measure_loaded(const Node& node, const Options& options) {
  std::vector<double> idle;
  call_one_by_one(node, "quick", options, std::max<std::size_t>(1, options.iterations / 4), idle);
  const Group group = node.world();
  std::vector<std::byte> load(kLoadBytes);  // in memory before the clock runs
  if (node.rank() == 1) {
    Operation receive = group.start_recv(load.data(), load.size(), 0, kLoadTag);
    group.send(nullptr, 0, 0, kPingTag).value();
    receive.wait().value();
    return {};
  }
  group.recv(nullptr, 0, 1, kPingTag).value();
  const std::vector<std::byte> arguments(options.bytes);
  std::vector<double> times;
  Operation send = group.start_send(load.data(), load.size(), 1, kLoadTag);
  while (times.empty() || !send.done()) {
    const Clock::time_point start = Clock::now();
    node.rpc().call(1, "quick", arguments).value();
    times.push_back(microseconds(Clock::now() - start));
  }
  send.wait().value();
  Row row = summary("call_loaded", times);
  row.ratio = row.time_us / summary("", idle).time_us;
  return row;
}

std::vector<Row> run_rank(const Node& node, const Options& options) {
  if (options.pin) io::pin_thread(static_cast<int>(node.rank()));
  const auto echo = [](const RpcContext&, std::span<const std::byte> bytes) -> Result<std::vector<std::byte>> {
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  if (node.rank() == 1) {
    node.rpc().serve("quick", echo, {.quick = true}).value();
    node.rpc().serve("pool", echo).value();
    node.world().send(nullptr, 0, 0, kPingTag).value();
  } else {
    node.world().recv(nullptr, 0, 1, kPingTag).value();  // there are functions to call now
  }
  std::vector<Row> rows = measure_latency(node, options);
  for (const Row& row : measure_rates(node, options)) rows.push_back(row);
  if (options.loaded) rows.push_back(measure_loaded(node, options));
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<12}{:>8}{:>14}{:>14}{:>14}{:>8}\n", "op", "flight", "time (us)", "p99 (us)", "calls/s", "ratio");
  for (const Row& row : rows)
    fmt::print("{:<12}{:>8}{:>14.2f}{:>14.2f}{:>14.0f}{:>8.2f}\n", row.op, row.flight, row.time_us, row.p99_us, row.rate, row.ratio);
}

int report(const std::vector<Row>& rows, const Options& options) {
  if (options.json != "-") print_table(rows);
  if (options.json.empty()) return 0;
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    array.push_back({{"op", row.op},
                     {"bytes", options.bytes},
                     {"flight", row.flight},
                     {"time_us", row.time_us},
                     {"p99_us", row.p99_us},
                     {"calls_per_s", row.rate},
                     {"ratio", row.ratio}});
  if (options.json == "-") {
    fmt::print("{}\n", array.dump(1));
    return 0;
  }
  std::ofstream out(options.json);
  out << array.dump(1) << "\n";
  if (!out) throw std::runtime_error("cannot write " + options.json);
  return 0;
}

int run_in_process(const Options& options) {
  LocalOptions local;
  local.config = Config::from_env().value();
  if (options.wait == "block") local.config.spin = {};
  const std::vector<Node> nodes = Node::local(2, local).value();
  std::thread other([&] { run_rank(nodes[1], options); });
  const std::vector<Row> rows = run_rank(nodes[0], options);
  other.join();
  return report(rows, options);
}

int run_worker(const Options& options) {
  Node node = Node::from_env().value();
  if (node.size() != 2) throw std::runtime_error(fmt::format("bench rpc is for 2 ranks, not {}", node.size()));
  const std::vector<Row> rows = run_rank(node, options);
  node.close().value();
  return node.rank() == 0 ? report(rows, options) : 0;
}

// Starts this program again, as both ranks; rank 0 reports.
int run_processes(const Options& options) {
  launch::LaunchOptions launched = options.launch;
  launched.name = "nexar bench rpc";
  launched.prefix = false;
  if (launched.world == 0 && launched.hosts.empty()) launched.world = 2;
  launched.program = {std::filesystem::read_symlink("/proc/self/exe").string(),
                      "bench",
                      "rpc",
                      "--worker",
                      "--iters",
                      std::to_string(options.iterations),
                      "--bytes",
                      std::to_string(options.bytes)};
  if (!options.json.empty()) launched.program.insert(launched.program.end(), {"--json", options.json});
  if (!options.loaded) launched.program.push_back("--no-load");
  if (!options.pin) launched.program.push_back("--no-pin");
  if (options.wait == "block") setenv("NEXAR_SPIN", "0", 1);
  return launch::launch(launched);
}

int run(const Options& options) {
  if (options.worker) return run_worker(options);
  return options.in_process ? run_in_process(options) : run_processes(options);
}

}  // namespace

void add_bench_rpc(CLI::App& bench, Action& action) {
  auto* rpc = bench.add_subcommand("rpc", "Calls between two nodes: latency beside messages, rate by calls in flight, latency under load");
  auto options = std::make_shared<Options>();
  rpc->add_option("--iters", options->iterations, "Calls of each kind")->check(CLI::Range(10, 10'000'000));
  rpc->add_option("--bytes", options->bytes, "Of arguments and result")->check(CLI::Range(0, 1 << 26));
  rpc->add_option("--wait", options->wait, "How threads wait")->check(CLI::IsMember({"spin", "block"}));
  add_launch_options(*rpc, options->launch);
  rpc->add_flag("--in-process", options->in_process, "Both ranks in one process");
  rpc->add_flag("--worker", options->worker)->group("");
  rpc->add_flag("!--no-load", options->loaded, "Leave out the calls during a gigabyte");
  rpc->add_flag("!--no-pin", options->pin, "Leave the threads to the scheduler");
  rpc->add_option("--json", options->json, "Write the rows to a file, or - for standard output");
  add_examples(*rpc, {"nexar bench rpc                    calls between two processes of this host",
                      "nexar bench rpc --wait block       with threads that sleep while they wait"});
  rpc->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace nexar::tool
