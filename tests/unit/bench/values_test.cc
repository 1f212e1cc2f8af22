#include "bench/values.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/identity.h"
#include "reduce/reducer.h"

namespace nexar::bench {
namespace {

constexpr std::uint64_t kCount = 257;
constexpr std::uint64_t kFirst = 1000;

using Bytes = std::vector<std::byte>;

Bytes input_of(const Values& values, Rank rank) {
  Bytes bytes(kCount * size_of(values.type()));
  values.fill(rank, kFirst, kCount, bytes.data());
  return bytes;
}

Bytes reduced(const Values& values, int ranks) {
  Bytes bytes(kCount * size_of(values.type()));
  values.reduce(ranks, kFirst, kCount, bytes.data());
  return bytes;
}

template <typename F>
void for_every_reduction(const F& use) {
  for (const DataType type : kDataTypes)
    for (const ReduceOp op : kReduceOps) {
      if (!check_reducible(type, op)) continue;
      SCOPED_TRACE(std::string(to_string(type)) + " " + std::string(to_string(op)));
      use(type, op);
    }
}

TEST(Values, ReducedByTheLibraryInAnyOrderAreWhatTheOracleSays) {
  std::mt19937 random(1);
  for_every_reduction([&](DataType type, ReduceOp op) {
    const reduce::Reducer reducer = reduce::Reducer::make(type, op).value();
    for (const int ranks : {1, 2, 3, 9, 40}) {
      const Values values(type, op, ranks, 5);
      // Two of what is left become one, wherever they are, until one is left.
      std::vector<Bytes> parts;
      for (Rank rank = 0; rank < ranks; ++rank) parts.push_back(input_of(values, rank));
      while (parts.size() > 1) {
        std::shuffle(parts.begin(), parts.end(), random);
        Bytes last = std::move(parts.back());
        parts.pop_back();
        reducer.combine(parts.back().data(), last.data(), parts.back().data(), kCount).value();
      }
      reducer.finish(parts[0].data(), kCount, static_cast<std::uint64_t>(ranks)).value();
      EXPECT_EQ(parts[0], reduced(values, ranks)) << ranks << " ranks";
    }
  });
}

TEST(Values, ReducedAllAtOnceAreTheSame) {
  for_every_reduction([](DataType type, ReduceOp op) {
    const reduce::Reducer reducer = reduce::Reducer::make(type, op).value();
    const Values values(type, op, 9, 6);
    std::vector<Bytes> parts;
    std::vector<const void*> sources;
    for (Rank rank = 0; rank < 9; ++rank) parts.push_back(input_of(values, rank));
    for (const Bytes& part : parts) sources.push_back(part.data());
    Bytes result(parts[0].size());
    reducer.combine_many(sources, result.data(), kCount, 9).value();
    EXPECT_EQ(result, reduced(values, 9));
  });
}

TEST(Values, OfNoRanksReduceToTheNeutralElement) {
  for_every_reduction([](DataType type, ReduceOp op) {
    Bytes identity(kCount * size_of(type));
    reduce::fill_identity(type, op, identity.data(), kCount).value();
    EXPECT_EQ(reduced(Values(type, op, 4, 1), 0), identity);
  });
}

TEST(Values, AContributionThatIsMissingShows) {
  for_every_reduction([](DataType type, ReduceOp op) {
    constexpr int kRanks = 9;
    const Values values(type, op, kRanks, 7);
    const Bytes right = reduced(values, kRanks);
    EXPECT_NE(right, reduced(values, kRanks - 1));
  });
}

TEST(Values, DifferByRankByElementAndBySeed) {
  for (const DataType type : kDataTypes) {
    SCOPED_TRACE(to_string(type));
    const Values values(type, std::nullopt, 3, 1);
    EXPECT_NE(input_of(values, 0), input_of(values, 1));
    EXPECT_NE(input_of(values, 0), input_of(Values(type, std::nullopt, 3, 2), 0));
    Bytes shifted(kCount * size_of(type));
    values.fill(0, kFirst + 1, kCount, shifted.data());
    EXPECT_NE(input_of(values, 0), shifted);
    const Bytes whole = input_of(values, 0);
    EXPECT_EQ(std::memcmp(shifted.data(), whole.data() + size_of(type), shifted.size() - size_of(type)), 0);
  }
}

}  // namespace
}  // namespace nexar::bench
