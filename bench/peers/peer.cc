#include "peer.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "bench/row.h"

namespace nexar::bench {
namespace {

constexpr std::uint64_t kSeed = 7;

struct Options {
  std::vector<std::string> ops = {"all_reduce"};
  std::vector<std::string> bytes = {"8", "1K", "64K", "1M", "16M"};
  std::string time = "200ms";
  std::size_t iterations = 0;
  std::string transport;
  std::string json;
  bool check = false;
  bool out_of_place = false;
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("--op", options.ops, "Operations, by nexar's names")->delimiter(',');
  app.add_option("--bytes", options.bytes, "Sizes: 8,1K,64M")->delimiter(',');
  app.add_option("--iters", options.iterations, "Iterations of each; 0: as many as fit into --time");
  app.add_option("--time", options.time, "How long to measure each size");
  app.add_option("--transport", options.transport, "What the rows are to say about it");
  app.add_option("--json", options.json, "Write the rows to a file, or - for standard output");
  app.add_flag("--check", options.check, "Compare the results with a serial oracle");
  app.add_flag("--out-of-place", options.out_of_place, "Results apart from what is given");
}

std::uint64_t check(Peer& peer, const Prepared& prepared, Memory& memory) {
  memory.fill();
  if (prepared.load) prepared.load();
  prepared.once();
  if (prepared.store) prepared.store();
  const double own = static_cast<double>(memory.count_wrong());
  const std::vector<double> all = peer.gather({&own, 1});
  return static_cast<std::uint64_t>(std::accumulate(all.begin(), all.end(), 0.0));
}

std::optional<Row> measure_call(Peer& peer, const Call& call, const Pace& pace, const Options& options) {
  Memory memory(call, peer.rank(), kSeed);
  memory.fill();
  const Prepared prepared = peer.prepare(call, memory);
  if (!prepared.once) return std::nullopt;
  if (prepared.load) prepared.load();
  Row row = row_of(call, measure(peer, pace, call.bytes(), collective_of(call.operation).is_apart, prepared.once));
  if (options.check) row.wrong = check(peer, prepared, memory);
  row.transport = options.transport;
  row.algorithm = "-";
  row.peer = peer.name();
  return row;
}

std::vector<Row> measure_all(Peer& peer, const Options& options) {
  const Pace pace{options.iterations, base::parse_duration(options.time).value()};
  std::vector<Row> rows;
  for (const std::string& op : options.ops) {
    const Collective& collective = *find_collective(op);
    const bool has_size = collective.operation != OperationId::kBarrier;
    for (std::size_t i = 0; i < (has_size ? options.bytes.size() : 1); ++i) {
      Call call = call_of_bytes(collective, base::parse_size(options.bytes[i]).value(), peer.size(), DataType::kF32, ReduceOp::kSum);
      call.in_place = !options.out_of_place;
      if (std::optional<Row> row = measure_call(peer, call, pace, options)) rows.push_back(*std::move(row));
    }
  }
  return rows;
}

// What is wrong with the values of options; empty when nothing is.
std::string problem_of(const Options& options) {
  for (const std::string& op : options.ops)
    if (find_collective(op) == nullptr) return fmt::format("--op: there is no operation \"{}\"", op);
  for (const std::string& text : options.bytes)
    if (!base::parse_size(text)) return fmt::format("--bytes: \"{}\" is no size such as 8, 64K or 1MiB", text);
  if (!base::parse_duration(options.time)) return fmt::format("--time: \"{}\" is no duration such as 500ms", options.time);
  return "";
}

int report(const std::vector<Row>& rows, const Options& options) {
  if (options.json != "-") {
    fmt::print("{}", table_head());
    for (const Row& row : rows) fmt::print("{}", table_line(row));
  }
  if (!options.json.empty()) write_text(json_of(rows), options.json);
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong.value_or(0) != 0; }) ? 1 : 0;
}

}  // namespace

int run_peer(int argc, char** argv, const PeerProgram& program) {
  CLI::App app("Measures the collectives of a runtime that nexar is set beside.");
  Options options;
  add_options(app, options);
  if (program.add_options) program.add_options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const std::string problem = problem_of(options); !problem.empty()) {
    fmt::print(stderr, "{}\n", problem);
    return 2;
  }
  try {
    const std::unique_ptr<Peer> peer = program.start();
    const std::vector<Row> rows = measure_all(*peer, options);
    return peer->rank() == 0 ? report(rows, options) : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace nexar::bench
