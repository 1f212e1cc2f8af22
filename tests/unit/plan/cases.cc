#include "plan/cases.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace nexar::plan {
namespace {

using enum OperationId;

// What rank `from` sends to rank `to` in a v-form.
std::uint64_t uneven(std::uint64_t count, Rank from, Rank to) {
  const auto mixed = static_cast<std::uint64_t>(from) * 7 + static_cast<std::uint64_t>(to) * 3 + count;
  return mixed % 5 == 0 ? 0 : mixed * 11 % (2 * count + 1);
}

void set_counts(std::vector<Shape>& shapes) {
  const std::uint64_t count = shapes[0].count;
  for (Shape& shape : shapes) {
    const bool all = shape.operation == kAllGatherV || shape.operation == kReduceScatterV;
    const bool sends =
        shape.operation == kAllToAllV || shape.operation == kReduceScatterV || (shape.operation == kScatterV && shape.is_root());
    const bool receives =
        shape.operation == kAllToAllV || shape.operation == kAllGatherV || (shape.operation == kGatherV && shape.is_root());
    for (Rank other = 0; other < shape.size; ++other) {
      if (sends) shape.send_counts.push_back(uneven(count, all ? 0 : shape.rank, other));
      if (receives) shape.receive_counts.push_back(all ? uneven(count, 0, other) : uneven(count, other, shape.rank));
    }
    if (shape.operation == kGatherV && !shape.is_root()) shape.count = uneven(count, shape.rank, shape.root);
    if (shape.operation == kScatterV && !shape.is_root()) shape.count = uneven(count, shape.root, shape.rank);
    if (all || shape.operation == kAllToAllV) shape.count = 0;
  }
}

}  // namespace

std::string Call::to_text() const {
  Shape shape = shapes[0];
  return shape.to_text() + " by " + std::string(algorithm->name) + (shape.average ? ", averaged" : "");
}

std::vector<Plan> Call::plans() const {
  std::vector<Plan> plans;
  for (const Shape& shape : shapes) plans.push_back(make_plan(shape, *algorithm).value());
  return plans;
}

std::vector<std::uint64_t> counts_for(Rank size) {
  const auto n = static_cast<std::uint64_t>(size);
  const std::set<std::uint64_t> counts = {0, 1, n - 1, n, n + 1, 31, 1'000'003};
  return {counts.begin(), counts.end()};
}

Call make_call(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments, const Shape& variant) {
  Call call{&algorithm, std::vector<Shape>(static_cast<std::size_t>(size), variant)};
  // The largest transfer of the algorithm is cut into that many.
  const bool chunks = algorithm.operation == kAllReduce && (algorithm.name.find("ring") != std::string_view::npos ||
                                                            algorithm.name == "rank_ordered" || algorithm.name == "two_level");
  const std::uint64_t transfer = chunks ? count / static_cast<std::uint64_t>(size) : count;
  const auto pieces = static_cast<std::uint64_t>(segments);
  for (Rank rank = 0; rank < size; ++rank) {
    Shape& shape = call.shapes[static_cast<std::size_t>(rank)];
    shape.operation = algorithm.operation;
    shape.rank = rank;
    shape.size = size;
    shape.count = algorithm.operation == kBarrier ? 0 : count;
    shape.segment = segments == 1 ? 0 : std::max<std::uint64_t>(1, (transfer + pieces - 1) / pieces);
  }
  set_counts(call.shapes);
  return call;
}

Hosts hosts_of_sizes(std::span<const int> sizes) {
  std::vector<int> hosts;
  for (std::size_t host = 0; host < sizes.size(); ++host)
    hosts.insert(hosts.end(), static_cast<std::size_t>(sizes[host]), static_cast<int>(host));
  return Hosts(hosts);
}

std::vector<Hosts> layouts_for(Rank size) {
  const auto placed = [&](auto host) {
    std::vector<int> hosts;
    for (Rank rank = 0; rank < size; ++rank) hosts.push_back(host(rank));
    return Hosts(hosts);
  };
  std::vector<Hosts> all = {placed([&](Rank rank) { return rank / 4 * 3 + (rank % 4 + 1) / 2; }),  // 1 + 2 + 1 + 1 + 2 + 1 ...
                            placed([&](Rank rank) { return rank % std::max(3, size / 4); })};      // in turn
  // More ranks take long, and have all of these within them.
  if (size <= 17) {
    all.push_back(placed([&](Rank rank) { return 2 * rank / size; }));      // two halves
    all.push_back(placed([&](Rank rank) { return rank == 0 ? 1 : 0; }));    // one by itself
    all.push_back(placed([&](Rank rank) { return rank / 3; }));             // 3 + 3 + ... + what is left
    all.push_back(placed([&](Rank rank) { return rank * rank * 7 % 5; }));  // anyhow
  }
  std::vector<Hosts> found;
  for (const Hosts& hosts : all)
    if (hosts.has_levels() && std::find(found.begin(), found.end(), hosts) == found.end()) found.push_back(hosts);
  return found;
}

std::vector<Call> calls_of(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments) {
  if (!algorithm.has(kTwoLevel)) return calls_of(algorithm, size, count, segments, Hosts());
  std::vector<Call> calls;
  for (const Hosts& hosts : layouts_for(size)) {
    std::vector<Call> more = calls_of(algorithm, size, count, segments, hosts);
    calls.insert(calls.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return calls;
}

std::vector<Call> calls_of(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments, const Hosts& hosts) {
  std::vector<Call> calls;
  std::set<Rank> roots = {0};
  if (has_root(algorithm.operation)) roots.insert({size / 2, size - 1});
  for (const Rank root : roots) {
    for (const bool in_place : {false, true}) {
      for (const unsigned trait : {unsigned{kPlain}, unsigned{kOrdered}, unsigned{kReproducible}}) {
        Shape variant;
        variant.root = root;
        variant.in_place = in_place;
        variant.hosts = hosts;
        variant.ordered = trait == kOrdered;
        variant.reproducible = trait == kReproducible;
        variant.average = reduces(algorithm.operation) && (count % 2 == 1) != in_place;
        Call call = make_call(algorithm, size, count, segments, variant);
        if (call.shapes[0].check() && algorithm.legal(call.shapes[0])) calls.push_back(std::move(call));
      }
    }
  }
  return calls;
}

std::vector<Call> calls_in_turn(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments, std::uint64_t turn) {
  const std::vector<Hosts> layouts = algorithm.has(kTwoLevel) ? layouts_for(size) : std::vector<Hosts>();
  return calls_of(algorithm, size, count, segments, layouts.empty() ? Hosts() : layouts[turn % layouts.size()]);
}

std::vector<const Algorithm*> every_algorithm() {
  std::vector<const Algorithm*> all;
  for (std::uint8_t id = 1; id <= kOperationIdMax; ++id)
    for (const Algorithm& algorithm : algorithms_of(static_cast<OperationId>(id))) all.push_back(&algorithm);
  return all;
}

}  // namespace nexar::plan
