// `nexar bench p2p`: two nodes, latency by size and bandwidth one way and both ways.
//
// The two nodes are threads of this process, each on a core of its own, linked over real QUIC on loopback or between two network
// namespaces. Shapes and columns are those of bench/peers/tcp_exchange, so that the two can be set beside each other.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "commands.h"
#include "io/thread.h"
#include "nexar/node.h"

namespace nexar::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> modes = {"pingpong", "oneway", "exchange"};
  std::vector<std::string> bytes = {"8", "1K", "64K", "1M", "64M"};
  std::size_t iterations = 0;  // 0: chosen by size
  std::string wait = "spin";
  std::string json;
  std::vector<std::string> namespaces;
  std::vector<std::string> addresses;
  bool ping = false;
  bool pin = true;
};

struct Row {
  std::string op;
  std::size_t bytes = 0;
  double time_us = 0;
  double p99_us = 0;
  double bandwidth = 0;  // GB/s of one direction
  std::uint64_t wrong = 0;
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

std::size_t iterations_for(std::size_t bytes, std::size_t asked) {
  if (asked != 0) return asked;
  constexpr std::size_t kBytesPerRun = 2ull << 30;
  return std::clamp<std::size_t>(kBytesPerRun / (bytes + 65536), 12, 10000);
}

Row measure(const std::vector<Node>& nodes, const std::string& mode, std::size_t bytes, const Options& options) {
  const std::size_t iterations = iterations_for(bytes, options.iterations);
  std::vector<double> times;
  times.reserve(iterations);
  std::uint64_t wrong[2] = {};
  std::barrier<> ready(2);
  const auto run = [&](Rank rank) {
    if (options.pin) io::pin_thread(static_cast<int>(rank));
    End end(nodes[static_cast<std::size_t>(rank)], bytes);
    ready.arrive_and_wait();
    for (std::size_t i = 0; i < iterations / 10 + 2; ++i) end.once(mode);
    for (std::size_t i = 0; i < iterations; ++i) {
      const Clock::time_point start = Clock::now();
      end.once(mode);
      if (rank == 0) times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    wrong[rank] = end.verify(mode);
  };
  std::thread other(run, 1);
  run(0);
  other.join();

  std::sort(times.begin(), times.end());
  Row row{mode, bytes, times[times.size() / 2], times[times.size() * 99 / 100], 0, wrong[0] + wrong[1]};
  const double ways = mode == "pingpong" ? 2 : 1;
  row.bandwidth = ways * static_cast<double>(bytes) / row.time_us / 1e3;
  return row;
}

// Pings on the control lane while nothing else happens, and while a gigabyte is sent.
Row measure_ping(const std::vector<Node>& nodes, bool loaded, std::size_t count) {
  std::vector<double> times;
  std::optional<Operation> send;
  std::optional<Operation> receive;
  std::vector<std::byte> out;
  std::vector<std::byte> in;
  for (std::size_t i = 0; i < count; ++i) {
    if (loaded && (!send || send->done())) {
      out.resize(1u << 30);
      in.resize(1u << 30);
      receive.emplace(nodes[1].world().start_recv(in.data(), in.size(), 0, 5));
      send.emplace(nodes[0].world().start_send(out.data(), out.size(), 1, 5));
    }
    times.push_back(std::chrono::duration<double, std::micro>(nodes[0].ping(1).value()).count());
  }
  if (send) send->wait().value();
  if (receive) receive->wait().value();
  std::sort(times.begin(), times.end());
  return {loaded ? "ping_loaded" : "ping_idle", 0, times[times.size() / 2], times[times.size() * 99 / 100], 0, 0};
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<12}{:>12}{:>14}{:>14}{:>16}{:>8}\n", "op", "bytes", "time (us)", "p99 (us)", "algbw (GB/s)", "#wrong");
  for (const Row& row : rows)
    fmt::print("{:<12}{:>12}{:>14.2f}{:>14.2f}{:>16.3f}{:>8}\n", row.op, row.bytes, row.time_us, row.p99_us, row.bandwidth, row.wrong);
}

void write_json(const std::vector<Row>& rows, const std::string& file) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    array.push_back({{"op", row.op},
                     {"ranks", 2},
                     {"bytes", row.bytes},
                     {"transport", "quic"},
                     {"time_us", row.time_us},
                     {"p99_us", row.p99_us},
                     {"algbw_GBps", row.bandwidth},
                     {"wrong", row.wrong}});
  if (file == "-") {
    fmt::print("{}\n", array.dump(1));
    return;
  }
  std::ofstream out(file);
  out << array.dump(1) << "\n";
  if (!out) throw std::runtime_error("cannot write " + file);
}

int run(const Options& options) {
  LocalOptions local;
  local.config = Config::from_env().value();
  if (options.wait == "block") local.config.spin = {};
  for (std::size_t i = 0; i < options.addresses.size(); ++i)
    local.places.push_back({i < options.namespaces.size() ? "/run/netns/" + options.namespaces[i] : "", options.addresses[i]});
  const std::vector<Node> nodes = Node::local(2, local).value();

  std::vector<Row> rows;
  for (const std::string& mode : options.modes)
    for (const std::string& size : options.bytes) {
      const std::optional<std::uint64_t> bytes = base::parse_size(size);
      if (!bytes || *bytes == 0) throw std::runtime_error(fmt::format("--bytes: \"{}\" is no size such as 8, 64K or 1MiB", size));
      rows.push_back(measure(nodes, mode, static_cast<std::size_t>(*bytes), options));
    }
  if (options.ping) {
    rows.push_back(measure_ping(nodes, false, 2000));
    rows.push_back(measure_ping(nodes, true, 2000));
  }
  if (options.json != "-") print_table(rows);
  if (!options.json.empty()) write_json(rows, options.json);
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong != 0; }) ? 1 : 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* bench = app.add_subcommand("bench", "Measures what this machine and network give");
  bench->require_subcommand(1);
  auto* p2p = bench->add_subcommand("p2p", "Messages between two nodes: latency by size, bandwidth one way and both ways");
  auto options = std::make_shared<Options>();
  p2p->add_option("--mode", options->modes, "pingpong, oneway, exchange")
      ->delimiter(',')
      ->check(CLI::IsMember({"pingpong", "oneway", "exchange"}));
  p2p->add_option("--bytes", options->bytes, "Sizes: 8,1K,64M")->delimiter(',');
  p2p->add_option("--iters", options->iterations, "Iterations of each; 0 chooses by size");
  p2p->add_option("--wait", options->wait, "How threads wait")->check(CLI::IsMember({"spin", "block"}));
  p2p->add_option("--netns", options->namespaces, "Network namespaces of the two nodes, by name")->delimiter(',');
  p2p->add_option("--address", options->addresses, "Addresses of the two nodes")->delimiter(',')->expected(2);
  p2p->add_flag("--ping", options->ping, "Also ping the control lane, idle and while a gigabyte is sent");
  p2p->add_flag("!--no-pin", options->pin, "Leave the threads to the scheduler");
  p2p->add_option("--json", options->json, "Write the rows to a file, or - for standard output");
  p2p->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace nexar::tool
