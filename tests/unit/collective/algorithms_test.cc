// Every algorithm on real elements, over links that reorder and cut, against a serial oracle.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "collective/network.h"
#include "plan/cases.h"
#include "plan/plan.h"

namespace nexar::collective::test {
namespace {

using enum OperationId;
using plan::Shape;
using Value = std::uint32_t;

// x -> m x + c on 16 bits each: composition is associative and does not commute.
Value compose(Value first, Value then) {
  const Value m = (first >> 16) * (then >> 16) & 0xffff;
  const Value c = ((first & 0xffff) * (then >> 16) + (then & 0xffff)) & 0xffff;
  return m << 16 | c;
}

UserOp composition(bool commutes) {
  return user_op<Value>("compose", commutes, [](std::span<const Value> left, std::span<const Value> right, std::span<Value> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = compose(left[i], right[i]);
  });
}

Value value(Rank rank, std::uint64_t i) { return (static_cast<Value>(rank) + 3) * 0x10001u + static_cast<Value>(i) * 0x20007u; }

// What the caller of one rank has.
struct Caller {
  std::vector<Value> input;
  std::vector<Value> output;
  std::deque<std::vector<Value>> tensors;  // the output, in pieces
  std::vector<Piece> pieces;
  Call call;
  bool ended = false;
  Result<void> result;
};

class Serial {
 public:
  explicit Serial(const std::vector<Shape>& shapes) : shapes_(shapes) {}

  std::vector<Value> expected(Rank rank) const {
    const Shape& shape = at(rank);
    std::vector<Value> values;
    for (std::uint64_t i = 0; i < shape.output_count(); ++i) values.push_back(element(shape, i));
    return values;
  }

 private:
  const Shape& at(Rank rank) const { return shapes_[static_cast<std::size_t>(rank)]; }

  Value reduced(const Shape& shape, Rank first, Rank end, std::uint64_t i) const {
    Value sum = value(first, i);
    for (Rank rank = first + 1; rank < end; ++rank) sum = shape.ordered ? compose(sum, value(rank, i)) : sum + value(rank, i);
    return shape.average ? sum / static_cast<Value>(end - first) : sum;
  }

  // Which slot element i of the output lies in, and where in it.
  static std::pair<Rank, std::uint64_t> slot(const plan::Cut& cut, std::uint64_t i) {
    Rank rank = 0;
    while (i >= cut.piece(rank).end()) ++rank;
    return {rank, i - cut.piece(rank).first};
  }

  Value element(const Shape& shape, std::uint64_t i) const {
    switch (shape.operation) {
      case kAllReduce:
      case kReduce: return reduced(shape, 0, shape.size, i);
      case kScan: return reduced(shape, 0, shape.rank + 1, i);
      case kExclusiveScan: return shape.rank == 0 ? 0 : reduced(shape, 0, shape.rank, i);
      case kReduceScatter:
      case kReduceScatterV: return reduced(shape, 0, shape.size, shape.input_slots().piece(shape.rank).first + i);
      case kBroadcast: return value(shape.root, i);
      case kScatter:
      case kScatterV: return value(shape.root, at(shape.root).input_slots().piece(shape.rank).first + i);
      case kAllToAll:
      case kAllToAllV: {
        const auto [from, offset] = slot(shape.output_slots(), i);
        return value(from, at(from).input_slots().piece(shape.rank).first + offset);
      }
      default: {
        const auto [from, offset] = slot(shape.output_slots(), i);
        return value(from, offset);
      }
    }
  }

  const std::vector<Shape>& shapes_;
};

void prepare(Caller& caller, const Shape& shape, std::string_view algorithm) {
  Call& call = caller.call;
  call.group = Network::kGroup;
  call.shape = shape;
  call.algorithm = algorithm;
  call.descriptor.operation = shape.operation;
  call.descriptor.count = shape.count;
  if (plan::reduces(shape.operation)) {
    const bool ours = !shape.ordered;
    if (ours) call.op = shape.average ? ReduceOp::kAvg : ReduceOp::kSum;
    call.reducer =
        ours ? reduce::Reducer::make(DataType::kU32, *call.op).value() : reduce::Reducer::make(DataType::kU32, composition(false)).value();
  }
  const plan::Slice input = plan::input_of(shape);
  caller.input.assign(shape.alias() == plan::Alias::kSame || shape.alias() == plan::Alias::kInputInOutput ? 0 : shape.input_count(), 99);
  caller.output.assign(shape.alias() == plan::Alias::kOutputInInput ? 0 : shape.output_count(), 77);
  std::vector<Value>& holder = input.buffer == plan::Buffer::kInput ? caller.input : caller.output;
  const bool gives = shape.operation != kBroadcast || shape.is_root();
  for (std::uint64_t i = 0; gives && i < input.count; ++i) holder[input.first + i] = value(shape.rank, i);
  call.input = caller.input.data();
  call.output = caller.output.data();
  call.done = [&caller](Result<void> result) {
    caller.ended = true;
    caller.result = std::move(result);
  };
}

// Cuts the buffer of a call in place into pieces of at most `longest` elements, each in memory of its own.
void cut(Caller& caller, std::uint64_t longest, std::mt19937_64& random) {
  for (std::size_t first = 0; first < caller.output.size(); first += caller.tensors.back().size()) {
    const auto begin = caller.output.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min<std::size_t>(1 + random() % longest, caller.output.size() - first);
    caller.tensors.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    caller.pieces.push_back({reinterpret_cast<std::byte*>(caller.tensors.back().data()), first});
  }
  caller.output.clear();
  caller.call.input = caller.call.output = nullptr;
  caller.call.pieces = caller.pieces;
}

std::vector<Value> result_of(const Caller& caller) {
  std::vector<Value> joined;
  for (const std::vector<Value>& tensor : caller.tensors) joined.insert(joined.end(), tensor.begin(), tensor.end());
  if (!joined.empty()) return joined;
  const plan::Slice output = plan::output_of(caller.call.shape);
  const std::vector<Value>& holder = output.buffer == plan::Buffer::kInput ? caller.input : caller.output;
  return {holder.begin() + static_cast<std::ptrdiff_t>(output.first),
          holder.begin() + static_cast<std::ptrdiff_t>(output.first + output.count)};
}

// Several calls in flight on one group, entered by the ranks at random times; over pieces of at most so many elements where it is not 0.
void expect_right(const std::vector<plan::Call>& calls, std::uint64_t seed, std::uint64_t longest_piece = 0) {
  const auto size = static_cast<Rank>(calls[0].shapes.size());
  plan::Hosts hosts;
  for (const plan::Call& call : calls)
    if (call.shapes[0].hosts.has_levels()) hosts = call.shapes[0].hosts;
  Network network(size, seed, seed % 3 == 0 ? 0 : seed % 3 == 1 ? 200 : 1u << 20, {}, hosts);
  std::vector<std::vector<Caller>> callers(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    callers[i] = std::vector<Caller>(static_cast<std::size_t>(size));
    for (Rank rank = 0; rank < size; ++rank)
      prepare(callers[i][static_cast<std::size_t>(rank)], calls[i].shapes[static_cast<std::size_t>(rank)], calls[i].algorithm->name);
    if (longest_piece > 0)
      for (Caller& caller : callers[i]) cut(caller, longest_piece, network.random());
  }
  std::vector<std::size_t> begun(static_cast<std::size_t>(size), 0);
  for (std::size_t left = calls.size() * begun.size(); left > 0;) {
    const std::size_t rank = network.random()() % begun.size();
    if (begun[rank] == calls.size()) continue;
    network.rank(static_cast<Rank>(rank)).begin(callers[begun[rank]++][rank].call);
    --left;
    int steps = static_cast<int>(network.random()() % 4);
    network.run([&] { return steps-- == 0; });
  }
  network.run();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Serial serial(calls[i].shapes);
    for (Rank rank = 0; rank < size; ++rank) {
      const Caller& caller = callers[i][static_cast<std::size_t>(rank)];
      ASSERT_TRUE(caller.ended) << calls[i].to_text() << " rank " << rank << " seed " << seed;
      ASSERT_TRUE(caller.result) << calls[i].to_text() << ": " << caller.result.error().to_string();
      EXPECT_EQ(result_of(caller), serial.expected(rank)) << calls[i].to_text() << " rank " << rank << " seed " << seed;
    }
  }
  for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(network.rank(rank).running(), 0u);
  EXPECT_EQ(network.pool->counters().in_use, 0u);
}

// A user op has no neutral element for rank 0 of an exclusive scan.
bool has_meaning(const plan::Call& call) { return !(call.shapes[0].operation == kExclusiveScan && call.shapes[0].ordered); }

// An average of a user op does not exist.
plan::Call with_our_op(plan::Call call) {
  for (Shape& shape : call.shapes)
    if (shape.ordered) shape.average = false;
  return call;
}

class Algorithms : public testing::TestWithParam<Rank> {};

TEST_P(Algorithms, GiveWhatASerialProgramGives) {
  const Rank size = GetParam();
  std::uint64_t seed = static_cast<std::uint64_t>(size) * 1000;
  std::uint64_t turn = 0;
  for (const plan::Algorithm* algorithm : plan::every_algorithm())
    for (const std::uint64_t count : {0, 1, static_cast<int>(size), 31})
      for (const int segments : {1, 3})
        for (const plan::Call& call : plan::calls_in_turn(*algorithm, size, count, segments, turn++)) {
          if (!has_meaning(call)) continue;
          expect_right({with_our_op(call)}, ++seed);
          if (HasFatalFailure()) return;
        }
}

// Each rank's buffer is cut otherwise: where pieces lie is nobody else's business.
TEST_P(Algorithms, GiveTheSameOverABufferInPieces) {
  const Rank size = GetParam();
  const bool is_large = size <= 3;
  std::uint64_t seed = static_cast<std::uint64_t>(size) * 1000;
  std::uint64_t turn = 0;
  for (const plan::Algorithm& algorithm : plan::algorithms_of(kAllReduce))
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{500}, static_cast<std::uint64_t>(size) * 16411})
      for (const std::uint64_t longest : {3, 200, 1500}) {
        if (count > 500 && !is_large) continue;  // messages that are granted
        for (const plan::Call& call : plan::calls_in_turn(algorithm, size, count, 1 + static_cast<int>(turn % 3), turn)) {
          if (!call.shapes[0].in_place) continue;
          expect_right({with_our_op(call)}, ++seed, longest);
          if (HasFatalFailure()) return;
        }
        ++turn;
      }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Algorithms, testing::Range<Rank>(1, 10));

TEST(Collectives, RunInFlightTogetherWithoutDisturbingEachOther) {
  std::mt19937_64 random(5);
  const std::vector<const plan::Algorithm*> all = plan::every_algorithm();
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto size = static_cast<Rank>(2 + random() % 5);
    const std::vector<plan::Hosts> layouts = plan::layouts_for(size);
    const plan::Hosts hosts = layouts.empty() ? plan::Hosts() : layouts[random() % layouts.size()];
    std::vector<plan::Call> calls;
    while (calls.size() < 16) {
      const auto variants = plan::calls_of(*all[random() % all.size()], size, random() % 100, 1 + static_cast<int>(random() % 3), hosts);
      if (variants.empty()) continue;
      const plan::Call call = with_our_op(variants[random() % variants.size()]);
      if (has_meaning(call)) calls.push_back(call);
    }
    expect_right(calls, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace nexar::collective::test
