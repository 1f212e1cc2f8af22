// A rank of a world for tests: reductions of numbers that round, whose results depend on the order of operands.
//
//   same_bits SEED    all ranks must have the same bits, twice; where the world is configured as reproducible, they must be those of the
//                     serial reduction in rank order, with every algorithm that may then be used
//
// Says what was wrong, and ends with status 1 then.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "nexar/node.h"
#include "plan/algorithms.h"
#include "plan/shape.h"
#include "reduce/identity.h"
#include "reduce/reducer.h"

namespace {

using nexar::DataType;
using nexar::OperationId;
using nexar::ReduceOp;
using Bytes = std::vector<std::byte>;

template <typename T>
void put(Bytes& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

// What a rank gives: numbers between -1 and 1, with as many digits as the type has.
Bytes input_of(DataType type, std::size_t count, int rank, std::uint64_t seed) {
  std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(rank));
  Bytes bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63;
    const auto narrow = static_cast<float>(value);
    switch (type) {
      case DataType::kF64: put(bytes, i, value); break;
      case DataType::kF32: put(bytes, i, narrow); break;
      case DataType::kF16: put(bytes, i, nexar::f16(narrow)); break;
      case DataType::kBf16: put(bytes, i, nexar::bf16(narrow)); break;
      case DataType::kF8e4m3: put(bytes, i, nexar::f8e4m3(narrow)); break;
      default: put(bytes, i, nexar::f8e5m2(narrow)); break;
    }
  }
  return bytes;
}

struct Case {
  OperationId operation;
  DataType type;
  ReduceOp op;
  std::size_t count;  // of the result
  std::string algorithm;

  std::string text() const {
    return std::string(to_string(operation)) + " of " + std::to_string(count) + " " + std::string(to_string(type)) + " by " +
           std::string(to_string(op)) + ", algorithm " + (algorithm.empty() ? "chosen" : algorithm);
  }
};

[[noreturn]] void fail(const Case& one, const std::string& what) { throw std::runtime_error(one.text() + ": " + what); }

// The elements of the input that a rank's result is made of begin here.
std::size_t first_of(const Case& one, int rank) {
  return one.operation == OperationId::kReduceScatter ? one.count * static_cast<std::size_t>(rank) : 0;
}

std::size_t input_count(const Case& one, int ranks) {
  return one.operation == OperationId::kReduceScatter ? one.count * static_cast<std::size_t>(ranks) : one.count;
}

Bytes reduce(const nexar::Group& group, const Case& one, const Bytes& input) {
  Bytes result(one.count * size_of(one.type));
  const nexar::CallOptions options{std::nullopt, one.algorithm};
  nexar::Result<void> ended;
  switch (one.operation) {
    case OperationId::kAllReduce: ended = group.all_reduce(input.data(), result.data(), one.count, one.type, one.op, options); break;
    case OperationId::kReduceScatter:
      ended = group.reduce_scatter(input.data(), result.data(), one.count, one.type, one.op, options);
      break;
    case OperationId::kReduce: ended = group.reduce(input.data(), result.data(), one.count, one.type, one.op, 0, options); break;
    case OperationId::kScan: ended = group.scan(input.data(), result.data(), one.count, one.type, one.op, options); break;
    case OperationId::kExclusiveScan:
      ended = group.exclusive_scan(input.data(), result.data(), one.count, one.type, one.op, options);
      break;
    default:
      result = input;
      ended = group.all_reduce_rs_ag(
          result.data(), one.count, one.type, one.op, [](void*, std::uint64_t, std::uint64_t) {}, options);
  }
  if (!ended) fail(one, ended.error().to_string());
  return result;
}

// How many ranks the result of one covers.
int covered(const Case& one, int rank, int ranks) {
  if (one.operation == OperationId::kScan) return rank + 1;
  return one.operation == OperationId::kExclusiveScan ? rank : ranks;
}

Bytes in_rank_order(const Case& one, int rank, int ranks, std::uint64_t seed) {
  Bytes result(one.count * size_of(one.type));
  const int among = covered(one, rank, ranks);
  if (among == 0) {
    nexar::reduce::fill_identity(one.type, one.op, result.data(), one.count).value();
    return result;
  }
  std::vector<Bytes> inputs;
  std::vector<const void*> sources;
  for (int from = 0; from < among; ++from) inputs.push_back(input_of(one.type, input_count(one, ranks), from, seed));
  for (const Bytes& input : inputs) sources.push_back(input.data() + first_of(one, rank) * size_of(one.type));
  const auto reducer = nexar::reduce::Reducer::make(one.type, one.op).value();
  reducer.combine_many(sources, result.data(), one.count, static_cast<std::uint64_t>(among)).value();
  return result;
}

void require_same_everywhere(const nexar::Group& group, const Case& one, const Bytes& result) {
  std::vector<std::byte> theirs(result.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(result.data(), theirs.data(), result.size(), DataType::kU8).value();
  for (int rank = 0; rank < group.size(); ++rank)
    if (std::memcmp(theirs.data() + static_cast<std::size_t>(rank) * result.size(), result.data(), result.size()) != 0)
      fail(one, "rank " + std::to_string(rank) + " has other bits");
}

void run_case(const nexar::Node& node, const Case& one, std::uint64_t seed) {
  const nexar::Group group = node.world();
  const Bytes input = input_of(one.type, input_count(one, node.size()), node.rank(), seed);
  const Bytes result = reduce(group, one, input);
  if (reduce(group, one, input) != result) fail(one, "the second time gave other bits");
  if (one.operation == OperationId::kAllReduce || one.operation == OperationId::kAllReduceRsAg) require_same_everywhere(group, one, result);
  const bool is_here = one.operation != OperationId::kReduce || node.rank() == 0;
  if (node.config().reproducible && is_here && result != in_rank_order(one, node.rank(), node.size(), seed))
    fail(one, "not the bits of the reduction in rank order");
}

std::vector<std::string> algorithms_for(OperationId operation, const nexar::Node& node) {
  nexar::plan::Shape shape;
  shape.operation = operation;
  shape.size = node.size();
  shape.reproducible = node.config().reproducible;
  std::vector<std::string> names = {""};
  for (const nexar::plan::Algorithm& one : nexar::plan::algorithms_of(operation))
    if (one.legal(shape)) names.emplace_back(one.name);
  return names;
}

int run(std::uint64_t seed) {
  nexar::Node node = nexar::Node::from_env().value();
  std::uint64_t cases = 0;
  for (const OperationId operation : {OperationId::kAllReduce, OperationId::kAllReduceRsAg, OperationId::kReduceScatter,
                                      OperationId::kReduce, OperationId::kScan, OperationId::kExclusiveScan})
    for (const std::string& algorithm : algorithms_for(operation, node))
      for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBf16, DataType::kF8e4m3, DataType::kF8e5m2})
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProd})
          for (const std::size_t count : {std::size_t{7}, std::size_t{20011}}) {
            if (count > 7 && op != ReduceOp::kSum) continue;
            run_case(node, {operation, type, op, count, algorithm}, seed + cases++);
          }
  node.close().value();
  if (node.rank() == 0) std::printf("%llu reductions have the bits they must\n", static_cast<unsigned long long>(cases));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::stoull(argv[1]) : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "same_bits: %s\n", error.what());
    return 1;
  }
}
