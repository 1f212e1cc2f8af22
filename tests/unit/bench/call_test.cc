#include "bench/call.h"

#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::bench {
namespace {

Call call_of(OperationId operation, std::vector<std::uint64_t> counts, Rank root = 0) {
  Call call;
  call.operation = operation;
  call.counts = std::move(counts);
  call.root = root;
  return call;
}

std::uint64_t output_count(const Call& call, Rank rank) {
  std::uint64_t count = 0;
  for (const Piece& piece : call.output(rank)) count += piece.count;
  return count;
}

TEST(Call, TakesPiecesOnlyFromWhatItsRanksGive) {
  for (const Collective& collective : collectives()) {
    SCOPED_TRACE(to_string(collective.operation));
    for (int ranks = 1; ranks <= 9; ++ranks) {
      std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks), 5);
      if (collective.is_uneven) std::iota(counts.begin(), counts.end(), std::uint64_t{0});
      const Call call = call_of(collective.operation, counts, ranks - 1);
      for (Rank rank = 0; rank < ranks; ++rank)
        for (const Piece& piece : call.output(rank)) {
          if (piece.count == 0) continue;
          EXPECT_EQ(piece.reduced, collective.reduces);
          const std::uint64_t given = call.input_count(piece.reduced ? 0 : piece.from);
          EXPECT_LE(piece.first + piece.count, given);
        }
    }
  }
}

TEST(Call, GivesEverythingToSomebodyInExchangesAndScatters) {
  for (const OperationId operation : {OperationId::kAllToAll, OperationId::kAllToAllV, OperationId::kScatter, OperationId::kScatterV}) {
    SCOPED_TRACE(to_string(operation));
    const bool uneven = collective_of(operation).is_uneven;
    const Call call = call_of(operation, uneven ? std::vector<std::uint64_t>{3, 0, 4, 1, 5} : std::vector<std::uint64_t>(5, 3), 2);
    std::set<std::pair<Rank, std::uint64_t>> taken;
    std::uint64_t given = 0;
    for (Rank rank = 0; rank < 5; ++rank) {
      given += call.input_count(rank);
      for (const Piece& piece : call.output(rank))
        for (std::uint64_t i = 0; i < piece.count; ++i) EXPECT_TRUE(taken.insert({piece.from, piece.first + i}).second) << "taken twice";
    }
    EXPECT_EQ(taken.size(), given);
  }
}

TEST(Call, SendsInAllToAllVWhatTheOthersExpect) {
  const Call call = call_of(OperationId::kAllToAllV, {7, 1, 0, 4});
  bool differs = false;
  for (Rank from = 0; from < 4; ++from)
    for (Rank to = 0; to < 4; ++to) {
      const std::uint64_t sent = call.send_counts(from)[static_cast<std::size_t>(to)];
      EXPECT_EQ(sent, call.recv_counts(to)[static_cast<std::size_t>(from)]);
      differs = differs || sent != call.send_counts(to)[static_cast<std::size_t>(from)];
    }
  EXPECT_TRUE(differs) << "both directions carry the same";
}

TEST(Call, KeepsTheSlotOfARankInsideTheOtherBuffer) {
  for (const Collective& collective : collectives()) {
    SCOPED_TRACE(to_string(collective.operation));
    const Call call =
        call_of(collective.operation, collective.is_uneven ? std::vector<std::uint64_t>{2, 5, 3} : std::vector<std::uint64_t>(3, 4));
    for (Rank rank = 0; rank < 3; ++rank) {
      const std::uint64_t in = call.input_count(rank);
      const std::uint64_t out = output_count(call, rank);
      const std::uint64_t slot = call.slot(rank);
      EXPECT_TRUE(call.place(rank) != Place::kInputSlot || slot + in <= out);
      EXPECT_TRUE(call.place(rank) != Place::kOutputSlot || slot + out <= in);
    }
  }
}

TEST(Call, OfSomeBytesHasThemOrAnElementForEachPart) {
  for (const Collective& collective : collectives()) {
    SCOPED_TRACE(to_string(collective.operation));
    const Call large = call_of_bytes(collective, 4096, 4, DataType::kF32, ReduceOp::kSum);
    EXPECT_EQ(large.bytes(), collective.operation == OperationId::kBarrier ? 0u : 4096u);
    const Call small = call_of_bytes(collective, 1, 4, DataType::kF64, ReduceOp::kSum);
    EXPECT_EQ(small.count(), 1u);
    EXPECT_EQ(large.counts[0] != large.counts[1], collective.is_uneven);
  }
}

TEST(Collectives, AreFoundByTheirNames) {
  for (const Collective& collective : collectives()) EXPECT_EQ(find_collective(to_string(collective.operation)), &collective);
  EXPECT_EQ(find_collective("all_reduse"), nullptr);
}

TEST(Collectives, HaveTheFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(collective_of(OperationId::kAllReduce).factor(4), 1.5);
  EXPECT_DOUBLE_EQ(collective_of(OperationId::kReduceScatter).factor(4), 0.75);
  EXPECT_DOUBLE_EQ(collective_of(OperationId::kAllGather).factor(4), 0.75);
  EXPECT_DOUBLE_EQ(collective_of(OperationId::kAllToAll).factor(4), 0.75);
  EXPECT_DOUBLE_EQ(collective_of(OperationId::kBroadcast).factor(4), 1);
  EXPECT_DOUBLE_EQ(collective_of(OperationId::kReduce).factor(4), 1);
}

}  // namespace
}  // namespace nexar::bench
