#include "bench/timing.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/memory.h"
#include "bench/row.h"
#include "bench/sizes.h"

namespace nexar::bench {
namespace {

using namespace std::chrono_literals;

// Two ranks, of which the other takes a given time for every iteration.
class TwoRanks : public World {
 public:
  explicit TwoRanks(double other_us) : other_us_(other_us) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void barrier() override { ++barriers; }
  std::vector<double> gather(std::span<const double> own) override {
    std::vector<double> all(own.begin(), own.end());
    all.resize(2 * own.size(), other_us_);
    return all;
  }
  double from_first(double value) override { return value; }

  int barriers = 0;

 private:
  double other_us_;
};

TEST(Timing, RunsAsManyIterationsAsAskedFor) {
  TwoRanks world(1e6);
  std::size_t calls = 0;
  const Timing timing = measure(world, {100, 1s}, 8, false, [&] { ++calls; });
  EXPECT_EQ(timing.iterations, 100u);
  EXPECT_GT(calls, 100u);  // and some to warm up
  EXPECT_EQ(world.barriers, 2);
}

TEST(Timing, StaysWithinTheBoundsOfIterations) {
  TwoRanks world(1);
  EXPECT_EQ(measure(world, {0, 1ns}, 1 << 30, false, [] {}).iterations, Pace::kIterationsMin);
  EXPECT_EQ(measure(world, {0, 1h}, 1 << 30, false, [] {}).iterations, Pace::kIterationsMax);
}

TEST(Timing, IsTheMeanOfRanksThatWaitForEachOtherAndElseTheSlowest) {
  TwoRanks world(1e6);
  EXPECT_NEAR(measure(world, {20, 1s}, 8, false, [] {}).median_us, 5e5, 1e5);
  EXPECT_DOUBLE_EQ(measure(world, {20, 1s}, 8, true, [] {}).median_us, 1e6);
}

TEST(Timing, PutsABarrierBeforeEachIterationThatIsKeptApart) {
  TwoRanks world(1);
  std::size_t calls = 0;
  measure(world, {50, 1s}, 8, true, [&] { ++calls; });
  EXPECT_EQ(static_cast<std::size_t>(world.barriers), calls + 2);
}

TEST(Row, HasTheBandwidthsOfNcclTests) {
  const Call call = call_of_bytes(collective_of(OperationId::kAllReduce), 1 << 20, 4, DataType::kBf16, ReduceOp::kMax);
  const Row row = row_of(call, {1000, 2000, 12});
  EXPECT_EQ(row.count, 1u << 19);
  EXPECT_NEAR(row.algbw, 1.048576, 1e-9);
  EXPECT_NEAR(row.busbw, 1.572864, 1e-9);
  EXPECT_EQ(row.type, "bf16");
  EXPECT_EQ(row.redop, "max");
  EXPECT_NE(json_of({row}).find("\"wrong\": null"), std::string::npos) << "it was not checked";
}

TEST(Rows, ThatAreWrongMakeTheStatusOne) {
  const auto rows = [](const std::vector<std::optional<std::uint64_t>>& wrong) {
    std::vector<Row> made(wrong.size());
    for (std::size_t i = 0; i < wrong.size(); ++i) made[i].wrong = wrong[i];
    return made;
  };
  EXPECT_EQ(status_of({}), 0);
  EXPECT_EQ(status_of(rows({std::nullopt, std::nullopt})), 0) << "nothing was checked";
  EXPECT_EQ(status_of(rows({0, std::nullopt, 0})), 0);
  EXPECT_EQ(status_of(rows({0, 1, 0})), 1);
  EXPECT_EQ(status_of(rows({std::nullopt, 0, UINT64_MAX})), 1);
  EXPECT_EQ(status_of(rows({std::uint64_t{1} << 32})), 1) << "not its lower half";
}

// The way from memory that is not what it must be to the status: what --check does, with a result that somebody spoiled.
TEST(Rows, OfMemoryThatWasSpoiledMakeTheStatusOne) {
  const Call call = call_of_bytes(collective_of(OperationId::kBroadcast), 1024, 2, DataType::kI32, ReduceOp::kSum);
  Memory memory(call, 0, 1);
  memory.fill();
  Row row = row_of(call, {1, 1, 1});
  row.wrong = memory.count_wrong();
  EXPECT_EQ(status_of({row}), 0) << "the root has what it sends";
  memory.output()[17] ^= std::byte{1};
  row.wrong = memory.count_wrong();
  EXPECT_EQ(*row.wrong, 1u);
  EXPECT_EQ(status_of({row}), 1);
}

TEST(Sizes, AreListsAndRanges) {
  EXPECT_EQ(parse_sizes({"8", "1K", "2MiB"}), (std::vector<std::uint64_t>{8, 1024, 2 << 20}));
  EXPECT_EQ(parse_sizes({"8-64"}), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  EXPECT_EQ(parse_sizes({"1K-100K*4", "3"}), (std::vector<std::uint64_t>{1024, 4096, 16384, 65536, 3}));
  EXPECT_EQ(parse_sizes({"1-16777215TiB*1000000000000"}).size(), 2u);  // the next one would not fit
}

TEST(Sizes, ThatAreNoneAreNamed) {
  for (const char* text : {"", "x", "0", "64K-8", "8-", "-8", "8-64*1", "8-64*", "8-64*x"}) {
    try {
      parse_sizes({text});
      ADD_FAILURE() << text << " was taken";
    } catch (const std::runtime_error& refused) {
      EXPECT_NE(std::string(refused.what()).find('"' + std::string(text) + '"'), std::string::npos) << refused.what();
    }
  }
}

}  // namespace
}  // namespace nexar::bench
