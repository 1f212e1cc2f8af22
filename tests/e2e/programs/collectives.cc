// A rank of a world for tests: every collective, over every type and reduction, compared with a serial oracle.
//
//   collectives small SEED [TIMES]    each once, with counts, roots, algorithms, places and ways of waiting drawn from the seed
//   collectives large SEED            f32 and bf16 over more than 8 MiB that divide nothing, with every algorithm
//   collectives brief SEED            the same of one type each, with the algorithm that the planner chooses
//
// All ranks draw the same. Says what was wrong, and ends with status 1 then.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/call.h"
#include "bench/group_call.h"
#include "bench/memory.h"
#include "nexar/node.h"
#include "plan/algorithms.h"
#include "plan/shape.h"

namespace {

using nexar::OperationId;
using nexar::bench::Call;
using nexar::bench::Collective;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool coin() { return below(2) == 0; }

 private:
  std::mt19937_64 random_;
};

// A call with its memory.
struct Case {
  Case(const nexar::Group& group, const Call& asked, std::string by, std::uint64_t seed)
      : call(asked),
        algorithm(std::move(by)),
        memory(call, group.rank(), seed),
        group_call(group, call, memory, nexar::CallOptions{std::nullopt, algorithm}) {
    memory.fill();
  }

  Call call;
  std::string algorithm;
  nexar::bench::Memory memory;
  nexar::bench::GroupCall group_call;
  nexar::Operation operation;
};

std::string text_of(const Case& one) {
  std::string counts;
  for (const std::uint64_t count : one.call.counts) counts += (counts.empty() ? "" : ",") + std::to_string(count);
  return std::string(to_string(one.call.operation)) + " of " + std::string(to_string(one.call.type)) + " by " +
         std::string(to_string(one.call.op)) + ", counts " + counts + ", root " + std::to_string(one.call.root) +
         (one.call.in_place ? ", in place" : "") + ", algorithm " + (one.algorithm.empty() ? "chosen" : one.algorithm);
}

// As the node's plans see them.
nexar::plan::Hosts hosts_of(const nexar::Node& node) {
  if (node.config().transport != nexar::Transport::kAuto && node.config().transport != nexar::Transport::kShm) return {};
  std::vector<int> hosts;
  for (nexar::Rank rank = 0; rank < node.size(); ++rank) hosts.push_back(node.host_index(rank));
  return nexar::plan::Hosts(hosts);
}

// Those of the table that the call may name. Operations of two phases have none of their own.
std::vector<std::string> algorithms_for(const Call& call, const nexar::plan::Hosts& hosts) {
  nexar::plan::Shape shape;
  shape.hosts = hosts;
  shape.operation = call.operation;
  shape.size = call.ranks();
  shape.count = call.count();
  shape.root = call.root;
  shape.element_bytes = static_cast<std::uint32_t>(size_of(call.type));
  shape.average = nexar::bench::collective_of(call.operation).reduces && call.op == nexar::ReduceOp::kAvg;
  std::vector<std::string> names;
  for (const nexar::plan::Algorithm& one : nexar::plan::algorithms_of(call.operation))
    if (one.legal(shape)) names.emplace_back(one.name);
  return names;
}

class Rank {
 public:
  Rank(const nexar::Group& group, std::uint64_t seed) : group_(group), draw_(seed), seed_(seed) {}

  // Adds a call, and makes those that were added once there are as many as the dice say.
  void add(const Call& call, const std::string& algorithm) {
    batch_.push_back(std::make_unique<Case>(group_, call, algorithm, seed_ + cases_++));
    if (batch_.size() < batch_size_) return;
    run();
    batch_size_ = 1 + draw_.below(4);
  }

  void run() {
    if (batch_.size() == 1) {
      require(*batch_[0], batch_[0]->group_call.once());
    } else {
      for (const auto& one : batch_) one->operation = one->group_call.start();
      if (draw_.coin()) std::reverse(batch_.begin(), batch_.end());
      for (const auto& one : batch_) {
        const nexar::Result<nexar::Status> ended = one->operation.wait();
        require(*one, ended ? nexar::Result<void>() : nexar::Result<void>(ended.error()));
        one->group_call.take(one->operation);
      }
    }
    for (const auto& one : batch_) {
      const std::uint64_t wrong = one->group_call.count_wrong();
      if (wrong != 0) throw std::runtime_error(text_of(*one) + ": " + std::to_string(wrong) + " elements are wrong");
    }
    batch_.clear();
  }

  std::uint64_t cases() const { return cases_; }
  Draw& draw() { return draw_; }

 private:
  static void require(const Case& one, const nexar::Result<void>& ended) {
    if (!ended) throw std::runtime_error(text_of(one) + ": " + ended.error().to_string());
  }

  nexar::Group group_;
  Draw draw_;
  std::uint64_t seed_;
  std::uint64_t cases_ = 0;
  std::size_t batch_size_ = 1;
  std::vector<std::unique_ptr<Case>> batch_;
};

std::uint64_t draw_count(Draw& draw, std::uint64_t ranks) {
  switch (draw.below(8)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return ranks - 1;
    case 3: return ranks;
    case 4: return ranks + 1;
    case 5: return 1009;
    default: return draw.below(3000);
  }
}

void run_small(Rank& rank, int ranks, const nexar::plan::Hosts& hosts) {
  const auto each = [&](const Collective& collective, nexar::DataType type, nexar::ReduceOp op) {
    Draw& draw = rank.draw();
    Call call;
    call.operation = collective.operation;
    call.type = type;
    call.op = op;
    call.root = static_cast<nexar::Rank>(draw.below(static_cast<std::uint64_t>(ranks)));
    call.in_place = draw.coin();
    call.counts.assign(static_cast<std::size_t>(ranks), draw_count(draw, static_cast<std::uint64_t>(ranks)));
    if (collective.is_uneven)
      for (std::uint64_t& count : call.counts) count = draw_count(draw, static_cast<std::uint64_t>(ranks));
    const std::vector<std::string> names = algorithms_for(call, hosts);
    const std::size_t chosen = draw.below(names.size() + 1);
    rank.add(call, chosen < names.size() ? names[chosen] : "");
  };
  for (const nexar::DataType type : nexar::kDataTypes)
    for (const nexar::ReduceOp op : nexar::kReduceOps)
      for (const Collective& collective : nexar::bench::collectives()) {
        if (collective.reduces ? !check_reducible(type, op) : op != nexar::ReduceOp::kSum) continue;
        each(collective, type, op);
      }
  rank.run();
}

// More than 8 MiB that neither the ranks nor segments divide.
Call large_call(const Collective& collective, int ranks, nexar::DataType type) {
  constexpr std::uint64_t kBytes = (std::uint64_t{8} << 20) + (256 << 10);
  Call call = call_of_bytes(collective, kBytes, ranks, type, nexar::ReduceOp::kSum);
  for (std::uint64_t& count : call.counts) count |= 1;
  if (!collective.is_uneven) std::fill(call.counts.begin(), call.counts.end(), call.counts[0] + (call.counts[0] % 3 == 0 ? 2 : 0));
  call.root = ranks / 2;
  return call;
}

void run_large(Rank& rank, int ranks, const nexar::plan::Hosts& hosts) {
  for (const nexar::DataType type : {nexar::DataType::kF32, nexar::DataType::kBf16})
    for (const Collective& collective : nexar::bench::collectives()) {
      Call call = large_call(collective, ranks, type);
      std::vector<std::string> names = algorithms_for(call, hosts);
      names.emplace_back();
      for (const std::string& name : names) {
        call.in_place = rank.draw().coin();
        rank.add(call, name);
      }
    }
  rank.run();
}

void run_brief(Rank& rank, int ranks) {
  for (const Collective& collective : nexar::bench::collectives()) {
    Call call = large_call(collective, ranks, rank.draw().coin() ? nexar::DataType::kF32 : nexar::DataType::kBf16);
    call.in_place = rank.draw().coin();
    rank.add(call, "");
  }
  rank.run();
}

int run(const std::string& what, std::uint64_t seed, std::uint64_t times) {
  nexar::Node node = nexar::Node::from_env().value();
  Rank rank(node.world(), seed);
  if (what == "small") {
    for (std::uint64_t i = 0; i < times; ++i) run_small(rank, node.size(), hosts_of(node));
  } else if (what == "large") {
    run_large(rank, node.size(), hosts_of(node));
  } else if (what == "brief") {
    run_brief(rank, node.size());
  } else {
    throw std::runtime_error("there is no " + what);
  }
  node.close().value();
  if (node.rank() == 0) std::printf("%llu calls are right\n", static_cast<unsigned long long>(rank.cases()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "small", argc > 2 ? std::stoull(argv[2]) : 1, argc > 3 ? std::stoull(argv[3]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collectives: %s\n", error.what());
    return 1;
  }
}
