// `nexar bench p2p`: two nodes, latency by size and bandwidth one way and both ways.
//
// The two nodes are processes, started as `nexar run` does, here or on two hosts; or threads of this process, on loopback or in two network
// namespaces. Each has a core of its own. Shapes and columns are those of bench/peers/tcp_exchange, so that the two can be set beside each
// other.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/row.h"
#include "bench/sizes.h"
#include "commands.h"
#include "io/thread.h"
#include "launch/launch.h"
#include "nexar/node.h"
#include "words.h"

namespace nexar::tool {
namespace {

using Clock = std::chrono::steady_clock;

// Tags 1 and 2 are those of the messages that are measured.
constexpr Tag kMeetTag = 3;
constexpr Tag kCountTag = 4;
constexpr Tag kLoadTag = 5;
constexpr std::size_t kLoadBytes = std::size_t{1} << 30;
constexpr std::size_t kPings = 2000;

struct Options {
  std::vector<std::string> modes = {"pingpong", "oneway", "exchange"};
  std::vector<std::string> bytes = {"8", "1K", "64K", "1M", "64M"};
  std::size_t iterations = 0;  // 0: chosen by size
  std::string wait = "spin";
  std::string json;
  std::string transport;  // empty: as the environment says
  std::vector<std::string> namespaces;
  std::vector<std::string> addresses;
  bool ping = false;
  bool pin = true;
  bool in_process = false;
  bool worker = false;  // this process is one of the ranks
  launch::LaunchOptions launch;
};

struct Row {
  std::string op;
  std::size_t bytes = 0;
  double time_us = 0;
  double p99_us = 0;
  double bandwidth = 0;  // GB/s of one direction
  std::uint64_t wrong = 0;
  std::string transport{};  // that carried most of the bytes
};

// What rank sends in iteration i. Cheap to check and different everywhere.
void fill(std::vector<std::byte>& buffer, Rank rank, std::size_t iteration) {
  for (std::size_t i = 0; i < buffer.size(); ++i)
    buffer[i] = static_cast<std::byte>((i * 31 + static_cast<std::size_t>(rank) * 7 + iteration * 13) & 0xFF);
}

std::uint64_t count_wrong(const std::vector<std::byte>& buffer, Rank rank, std::size_t iteration) {
  std::vector<std::byte> expected(buffer.size());
  fill(expected, rank, iteration);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < buffer.size(); ++i) wrong += buffer[i] != expected[i];
  return wrong;
}

// One end of a measurement: buffers, and one iteration of each shape.
class End {
 public:
  End(const Node& node, std::size_t bytes) : group_(node.world()), peer_(1 - node.rank()), out_(bytes), in_(bytes) {
    fill(out_, group_.rank(), 0);
  }

  void once(const std::string& mode) {
    if (mode == "exchange") {
      group_.exchange(out_.data(), out_.size(), peer_, 1, in_.data(), in_.size(), peer_, 1).value();
    } else if (group_.rank() == 0) {
      group_.send(out_.data(), out_.size(), peer_, 1).value();
      group_.recv(in_.data(), mode == "oneway" ? 1 : in_.size(), peer_, 2).value();
    } else {
      group_.recv(in_.data(), in_.size(), peer_, 1).value();
      group_.send(out_.data(), mode == "oneway" ? std::min<std::size_t>(1, out_.size()) : out_.size(), peer_, 2).value();
    }
  }

  // Bytes that did not arrive as they were sent, after one more iteration with new content.
  std::uint64_t verify(const std::string& mode) {
    fill(out_, group_.rank(), 1);
    std::fill(in_.begin(), in_.end(), std::byte{0xEE});
    once(mode);
    if (mode == "oneway" && group_.rank() == 0) return 0;
    return count_wrong(in_, peer_, 1);
  }

 private:
  Group group_;
  Rank peer_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

std::vector<std::size_t> sizes_of(const Options& options) { return bench::parse_sizes(options.bytes); }

std::size_t iterations_for(std::size_t bytes, std::size_t asked) {
  if (asked != 0) return asked;
  constexpr std::size_t kBytesPerRun = 2ull << 30;
  return std::clamp<std::size_t>(kBytesPerRun / (bytes + 65536), 12, 10000);
}

// Returns when the other rank is here too.
void meet(const Group& group) {
  const Rank peer = 1 - group.rank();
  group.exchange(nullptr, 0, peer, kMeetTag, nullptr, 0, peer, kMeetTag).value();
}

// The sum of both ranks' counts, at both.
std::uint64_t add_up(const Group& group, std::uint64_t count) {
  const Rank peer = 1 - group.rank();
  std::uint64_t other = 0;
  group.exchange(&count, sizeof count, peer, kCountTag, &other, sizeof other, peer, kCountTag).value();
  return count + other;
}

// What a rank has sent to the other until now, by each way.
struct Sent {
  std::string home;  // shm or quic
  std::uint64_t by_home = 0;
  std::uint64_t by_tcp = 0;
};

Sent sent_by(const Node& node) {
  const PeerCounters counters = node.counters().value().peers[static_cast<std::size_t>(1 - node.rank())];
  return {counters.transport, counters.traffic.bytes_sent[2] + counters.traffic.bytes_sent[3], counters.bulk.tcp_bytes_sent};
}

// Eager messages are never bulk, whatever carries that.
void check_transport(const Row& row, const Options& options) {
  constexpr std::size_t kEagerBytes = 64u << 10;
  const bool other = ((options.transport == "quic" || options.transport == "shm") && row.transport != options.transport) ||
                     (options.transport == "net" && row.transport == "shm") ||
                     (options.transport == "tcp" && row.bytes > kEagerBytes && row.transport != "tcp");
  if (other)
    throw std::runtime_error(
        fmt::format("{} of {} bytes went by {}, and {} was asked for", row.op, row.bytes, row.transport, options.transport));
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }
double late(const std::vector<double>& sorted) { return sorted[sorted.size() * 99 / 100]; }

// Both ranks call it; the times are rank 0's.
Row measure(const Node& node, const std::string& mode, std::size_t bytes, const Options& options) {
  const std::size_t iterations = iterations_for(bytes, options.iterations);
  std::vector<double> times;
  times.reserve(iterations);
  End end(node, bytes);
  meet(node.world());
  for (std::size_t i = 0; i < iterations / 10 + 2; ++i) end.once(mode);
  const Sent before = sent_by(node);
  for (std::size_t i = 0; i < iterations; ++i) {
    const Clock::time_point start = Clock::now();
    end.once(mode);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  const Sent after = sent_by(node);
  const std::uint64_t wrong = add_up(node.world(), end.verify(mode));

  std::sort(times.begin(), times.end());
  Row row{mode,
          bytes,
          median(times),
          late(times),
          0,
          wrong,
          after.by_tcp - before.by_tcp > after.by_home - before.by_home ? "tcp" : after.home};
  check_transport(row, options);
  const double ways = mode == "pingpong" ? 2 : 1;
  row.bandwidth = ways * static_cast<double>(bytes) / row.time_us / 1e3;
  return row;
}

// Pings on the control lane while nothing else happens, and while a gigabyte is sent: from when its receive is posted until it has arrived.
// Both ranks call it; the times are rank 0's.
Row measure_ping(const Node& node, bool loaded) {
  const Group group = node.world();
  std::vector<std::byte> load(loaded ? kLoadBytes : 0);  // in memory before the clock runs
  Row row{loaded ? "ping_loaded" : "ping_idle", 0, 0, 0, 0, 0, sent_by(node).home};
  if (node.rank() == 1) {
    Operation receive = group.start_recv(load.data(), load.size(), 0, kLoadTag);
    meet(group);
    receive.wait().value();
    return row;
  }
  meet(group);
  std::vector<double> times;
  const auto ping = [&] { times.push_back(std::chrono::duration<double, std::micro>(node.ping(1).value()).count()); };
  for (std::size_t i = 0; i < kPings && !loaded; ++i) ping();
  Operation send = group.start_send(load.data(), load.size(), 1, kLoadTag);
  while (loaded && (times.empty() || !send.done())) ping();
  send.wait().value();
  std::sort(times.begin(), times.end());
  row.time_us = median(times);
  row.p99_us = late(times);
  return row;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<12}{:>12}{:>14}{:>14}{:>16}{:>8}  {}\n", "op", "bytes", "time (us)", "p99 (us)", "algbw (GB/s)", "#wrong", "transport");
  for (const Row& row : rows)
    fmt::print("{:<12}{:>12}{:>14.2f}{:>14.2f}{:>16.3f}{:>8}  {}\n", row.op, row.bytes, row.time_us, row.p99_us, row.bandwidth, row.wrong,
               row.transport);
}

void write_json(const std::vector<Row>& rows, const std::string& file) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    array.push_back({{"op", row.op},
                     {"ranks", 2},
                     {"bytes", row.bytes},
                     {"transport", row.transport},
                     {"time_us", row.time_us},
                     {"p99_us", row.p99_us},
                     {"algbw_GBps", row.bandwidth},
                     {"wrong", row.wrong}});
  bench::write_text(array.dump(1) + "\n", file);
}

// What each rank does, in whatever process it is.
std::vector<Row> run_rank(const Node& node, const Options& options) {
  if (options.pin) io::pin_thread(static_cast<int>(node.rank()));
  std::vector<Row> rows;
  for (const std::string& mode : options.modes)
    for (const std::size_t bytes : sizes_of(options)) rows.push_back(measure(node, mode, bytes, options));
  if (options.ping) {
    rows.push_back(measure_ping(node, false));
    rows.push_back(measure_ping(node, true));
  }
  return rows;
}

int report(const std::vector<Row>& rows, const Options& options) {
  if (options.json != "-") print_table(rows);
  if (!options.json.empty()) write_json(rows, options.json);
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong != 0; }) ? 1 : 0;
}

int run_in_process(const Options& options) {
  LocalOptions local;
  local.config = Config::from_env().value();
  if (options.wait == "block") local.config.spin = {};
  for (std::size_t i = 0; i < options.addresses.size(); ++i)
    local.places.push_back({i < options.namespaces.size() ? "/run/netns/" + options.namespaces[i] : "", options.addresses[i]});
  const std::vector<Node> nodes = Node::local(2, local).value();

  std::thread other([&] { run_rank(nodes[1], options); });
  const std::vector<Row> rows = run_rank(nodes[0], options);
  other.join();
  return report(rows, options);
}

int run_worker(const Options& options) {
  Node node = Node::from_env().value();
  if (node.size() != 2) throw std::runtime_error(fmt::format("bench p2p is for 2 ranks, not {}", node.size()));
  const std::vector<Row> rows = run_rank(node, options);
  node.close().value();
  return node.rank() == 0 ? report(rows, options) : 0;
}

// Starts this program again, as both ranks; rank 0 reports.
int run_processes(const Options& options) {
  launch::LaunchOptions launched = options.launch;
  launched.name = "nexar bench p2p";
  launched.prefix = false;
  if (launched.world == 0 && launched.hosts.empty()) launched.world = 2;
  launched.program = {std::filesystem::read_symlink("/proc/self/exe").string(),
                      "bench",
                      "p2p",
                      "--worker",
                      "--mode",
                      fmt::format("{}", fmt::join(options.modes, ",")),
                      "--bytes",
                      fmt::format("{}", fmt::join(options.bytes, ",")),
                      "--iters",
                      std::to_string(options.iterations)};
  if (!options.json.empty()) launched.program.insert(launched.program.end(), {"--json", options.json});
  if (!options.transport.empty()) launched.program.insert(launched.program.end(), {"--transport", options.transport});
  if (options.ping) launched.program.push_back("--ping");
  if (!options.pin) launched.program.push_back("--no-pin");
  if (options.wait == "block") setenv("NEXAR_SPIN", "0", 1);
  return launch::launch(launched);
}

int run(const Options& options) {
  if (!options.transport.empty()) setenv("NEXAR_TRANSPORT", options.transport.c_str(), 1);
  static_cast<void>(sizes_of(options));  // what is wrong with them is said before anything starts
  if (options.worker) return run_worker(options);
  return options.in_process || !options.addresses.empty() ? run_in_process(options) : run_processes(options);
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* bench = app.add_subcommand("bench", "Measures what this machine and network give");
  bench->require_subcommand(1);
  add_bench_collectives(*bench, action);
  add_bench_join(*bench, action);
  add_bench_rpc(*bench, action);
  auto* p2p = bench->add_subcommand("p2p", "Messages between two nodes: latency by size, bandwidth one way and both ways");
  auto options = std::make_shared<Options>();
  p2p->add_option("--mode", options->modes, "pingpong, oneway, exchange")
      ->delimiter(',')
      ->check(CLI::IsMember({"pingpong", "oneway", "exchange"}));
  p2p->add_option("--bytes", options->bytes, "Sizes: 8,1K,64M, or a range: 8-64M, 8-64M*4")->delimiter(',')->check(is_size_or_range());
  p2p->add_option("--iters", options->iterations, "Iterations of each; 0 chooses by size");
  p2p->add_option("--transport", options->transport, "What must carry the bytes; another is a failure")
      ->check(CLI::IsMember({"auto", "shm", "net", "quic", "tcp"}));
  p2p->add_option("--wait", options->wait, "How threads wait")->check(CLI::IsMember({"spin", "block"}));
  add_launch_options(*p2p, options->launch);
  p2p->add_flag("--in-process", options->in_process, "Both ranks in one process; also meant by --address");
  p2p->add_flag("--worker", options->worker)->group("");
  p2p->add_option("--netns", options->namespaces, "With --address: network namespaces of the two nodes, by name")->delimiter(',');
  p2p->add_option("--address", options->addresses, "Addresses of the two nodes")->delimiter(',')->expected(2);
  p2p->add_flag("--ping", options->ping, "Also ping the control lane, idle and while a gigabyte is sent");
  p2p->add_flag("!--no-pin", options->pin, "Leave the threads to the scheduler");
  p2p->add_option("--json", options->json, "Write the rows to a file, or - for standard output");
  add_examples(*bench, {"nexar bench p2p     latency and bandwidth of messages", "nexar bench join    how long a world takes to form"});
  add_examples(*p2p, {"nexar bench p2p --bytes 8,64K,16M          three sizes, two processes of this host",
                      "nexar bench p2p --hosts a,b --json -       between two hosts, for a script"});
  p2p->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace nexar::tool
