#include "plan/shape.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithms.h"

namespace nexar::plan {
namespace {

using enum OperationId;

TEST(Cut, MakesTheFirstChunksOneLarger) {
  const Cut cut = Cut::chunks(11, 4);
  EXPECT_EQ(cut.piece(0), (Extent{0, 3}));
  EXPECT_EQ(cut.piece(2), (Extent{6, 3}));
  EXPECT_EQ(cut.piece(3), (Extent{9, 2}));
  EXPECT_EQ(cut.total(), 11u);
  EXPECT_EQ(cut.largest(), 3u);
}

TEST(Cut, WrapsIndices) {
  const Cut cut = Cut::slots(5, 3);
  EXPECT_EQ(cut.piece(-1), cut.piece(2));
  EXPECT_EQ(cut.piece(7), cut.piece(1));
}

TEST(Cut, LaysUnevenPiecesOneAfterTheOther) {
  const std::uint64_t counts[] = {2, 0, 7};
  const Cut cut = Cut::uneven(counts);
  EXPECT_EQ(cut.piece(1), (Extent{2, 0}));
  EXPECT_EQ(cut.piece(2), (Extent{2, 7}));
  EXPECT_EQ(cut.pieces(0, 3), (Extent{0, 9}));
  EXPECT_EQ(cut.largest(), 7u);
}

TEST(Cut, KnowsThePieceOfEveryElement) {
  for (const Cut& cut : {Cut::chunks(11, 4), Cut::chunks(3, 5), Cut::chunks(12, 4), Cut::slots(5, 3)})
    for (std::uint64_t element = 0; element < cut.total(); ++element) {
      const Extent piece = cut.piece(cut.piece_at(element));
      EXPECT_TRUE(element >= piece.first && element < piece.end()) << element;
    }
}

TEST(Hosts, HaveLevelsWhenThereAreSeveralAndOneHasSeveralRanks) {
  EXPECT_FALSE(Hosts().has_levels());
  EXPECT_FALSE(Hosts(std::vector<int>{}).has_levels());
  EXPECT_FALSE(Hosts(std::vector{7}).has_levels());
  EXPECT_FALSE(Hosts(std::vector{7, 7, 7}).has_levels());
  EXPECT_FALSE(Hosts(std::vector{2, 0, 1}).has_levels());
  EXPECT_TRUE(Hosts(std::vector{2, 0, 2}).has_levels());
}

TEST(Hosts, AreNumberedByTheirLowestRanks) {
  const Hosts hosts(std::vector{9, 4, 4, 9, 4});
  ASSERT_EQ(hosts.count(), 2);
  EXPECT_EQ(hosts.size(), 5);
  EXPECT_EQ(std::vector<Rank>(hosts.ranks(0).begin(), hosts.ranks(0).end()), (std::vector<Rank>{0, 3}));
  EXPECT_EQ(hosts.host_of(4), 1);
  EXPECT_EQ(hosts.position(4), 2);
  EXPECT_EQ(hosts.fewest(), 2);
  EXPECT_EQ(hosts.most(), 3);
  EXPECT_EQ(hosts, Hosts(std::vector{0, 1, 1, 0, 1})) << "names of hosts do not matter";
  EXPECT_EQ(hosts.hash(), Hosts(std::vector{0, 1, 1, 0, 1}).hash());
  EXPECT_NE(hosts, Hosts(std::vector{0, 1, 1, 0, 0}));
  EXPECT_NE(hosts, Hosts());
}

TEST(Strips, AreThePiecesBetweenTheCutsOfAllHosts) {
  const Hosts hosts(std::vector{0, 0, 1, 1, 1});
  const Strips strips(hosts, 12);  // 6 + 6 and 4 + 4 + 4
  const std::vector<Extent> extents(strips.extents().begin(), strips.extents().end());
  EXPECT_EQ(extents, (std::vector<Extent>{{0, 4}, {4, 2}, {6, 2}, {8, 4}}));
  EXPECT_EQ(strips.owners(extents[1]), (std::vector<Rank>{0, 3}));
  EXPECT_EQ(strips.owners(extents[2]), (std::vector<Rank>{1, 3}));
  EXPECT_TRUE(Strips(hosts, 0).extents().empty());
  EXPECT_EQ(Strips(hosts, 1).extents().size(), 1u);
}

void expect_invalid(const Shape& shape) {
  const auto checked = shape.check();
  ASSERT_FALSE(checked) << shape.to_text();
  EXPECT_EQ(checked.error().code(), ErrorCode::kInvalidArgument) << checked.error().to_string();
  for (const Algorithm& algorithm : algorithms_of(shape.operation)) EXPECT_FALSE(make_plan(shape, algorithm));
}

TEST(Shape, RefusesWhatDoesNotFitBeforeAnythingIsMultiplied) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  expect_invalid({.operation = kAllGather, .size = 2, .count = kMost});
  expect_invalid({.operation = kAllGather, .size = 2, .count = kMost / 2 + 1, .element_bytes = 1});
  expect_invalid({.operation = kAllToAll, .size = 1000, .count = std::uint64_t{1} << 56});
  expect_invalid({.operation = kAllGatherV, .size = 2, .receive_counts = {kMost, 2}});
  expect_invalid({.operation = kReduceScatterV, .size = 2, .send_counts = {kShapeBytesMax / 4, 1}});
  EXPECT_TRUE((Shape{.operation = kReduceScatterV, .size = 2, .send_counts = {kShapeBytesMax / 4 - 1, 1}}.check()));
}

TEST(Shape, RefusesRanksRootsAndCountsThatAreNone) {
  expect_invalid({.operation = kAllReduce, .rank = 4, .size = 4});
  expect_invalid({.operation = kAllReduce, .rank = -1, .size = 4});
  expect_invalid({.operation = kAllReduce, .size = 0});
  expect_invalid({.operation = kAllReduce, .size = kShapeSizeMax + 1});
  expect_invalid({.operation = kBroadcast, .size = 4, .root = 4});
  expect_invalid({.operation = kAllReduce, .size = 4, .root = 1});
  expect_invalid({.operation = kAllGatherV, .size = 3, .receive_counts = {1, 2}});
  expect_invalid({.operation = kAllGather, .size = 2, .count = 1, .receive_counts = {1, 1}});
  expect_invalid({.operation = kAllToAll, .size = 2, .count = 1, .in_place = true});
  expect_invalid({.operation = kAllGather, .size = 2, .count = 1, .average = true});
  expect_invalid({.operation = kBarrier, .size = 2, .count = 1});
  expect_invalid({.operation = kAllReduce, .size = 4, .count = 1, .hosts = Hosts(std::vector{0, 0, 1})});
  expect_invalid({.operation = kAllReduce, .size = 2, .count = 1, .element_bytes = 0});
  expect_invalid({.operation = kAllReduce, .size = 2, .count = 1, .phase = kPhasesMax});
}

TEST(Shape, SaysThatSomeOperationsHaveNoPlanOfTheirOwn) {
  for (const OperationId operation :
       {kAllReduceBucketed, kAllReduceCompressed, kAllReduceRsAg, kGatherBytes, OperationId{0}, OperationId{99}}) {
    const auto checked = Shape{.operation = operation}.check();
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code(), ErrorCode::kUnsupported);
    EXPECT_TRUE(algorithms_of(operation).empty());
  }
}

TEST(Shape, KnowsTheBuffersOfEveryRank) {
  Shape gather{.operation = kGather, .rank = 1, .size = 4, .root = 1, .count = 3};
  EXPECT_EQ(gather.input_count(), 3u);
  EXPECT_EQ(gather.output_count(), 12u);
  gather.rank = 0;
  EXPECT_EQ(gather.input_count(), 3u);
  EXPECT_EQ(gather.output_count(), 0u);
  Shape scatter{.operation = kScatterV, .rank = 0, .size = 2, .root = 0, .send_counts = {4, 5}};
  EXPECT_EQ(scatter.input_count(), 9u);
  EXPECT_EQ(scatter.output_count(), 4u);
}

TEST(Algorithms, AreRefusedWhereTheyAreNotLegal) {
  const Shape ordered{.operation = kAllReduce, .size = 4, .count = 8, .ordered = true};
  const auto plan = make_plan(ordered, *find_algorithm(kAllReduce, "ring"));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(make_plan(ordered, *find_algorithm(kAllReduce, "tree")));
  EXPECT_FALSE(make_plan({.operation = kAllGather, .size = 6, .count = 8}, *find_algorithm(kAllGather, "recursive_doubling")));
  EXPECT_EQ(find_algorithm(kAllReduce, "magic"), nullptr);
  EXPECT_FALSE(make_plan({.operation = kAllReduce, .size = 4, .count = 8}, *find_algorithm(kAllReduce, "two_level")));
}

TEST(Algorithms, CutTransfersOnlyWhereTheyGainFromIt) {
  const Shape shape{.operation = kAllReduce, .size = 2, .count = 100, .segment = 10};
  EXPECT_EQ(make_plan(shape, *find_algorithm(kAllReduce, "ring")).value().steps.size(), 4u);
  EXPECT_EQ(make_plan(shape, *find_algorithm(kAllReduce, "pipelined_ring")).value().steps.size(), 20u);
}

TEST(Algorithms, ExistForEveryOperationAndDemand) {
  for (std::uint8_t id = 1; id <= kOperationIdMax; ++id) {
    const auto operation = static_cast<OperationId>(id);
    if (algorithms_of(operation).empty()) continue;
    for (const bool ordered : {false, true}) {
      for (const bool reproducible : {false, true}) {
        if ((ordered || reproducible) && !reduces(operation)) continue;
        const Shape shape{.operation = operation, .size = 6, .ordered = ordered, .reproducible = reproducible};
        bool legal = false;
        for (const Algorithm& algorithm : algorithms_of(operation)) legal = legal || algorithm.legal(shape);
        EXPECT_TRUE(legal) << shape.to_text();
      }
    }
  }
}

}  // namespace
}  // namespace nexar::plan
