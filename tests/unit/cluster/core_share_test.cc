#include "cluster/core_share.h"

#include <initializer_list>

#include <gtest/gtest.h>

namespace nexar::cluster {
namespace {

constexpr CoreShare kAtEase{false, true};
constexpr CoreShare kCrowded{true, true};
constexpr CoreShare kCrowdedOnOne{true, false};

// Ranks of one host with these cores.
View host_of(std::initializer_list<CoreSet> ranks) {
  View view;
  for (const CoreSet& cores : ranks) view.members.emplace_back().cores = cores;
  return view;
}

// Of each rank on a host that runs so many cores; what a process finds by itself is not asked while all have told theirs.
void expect_all(const View& view, int online, const CoreShare& expected) {
  for (Rank rank = 0; rank < view.size(); ++rank)
    EXPECT_EQ(core_share(view, rank, {-1, online}), expected) << "rank " << rank << " of " << view.size();
}

TEST(CoreShare, RanksThatMayRunEverywhereAreCrowdedWhereTheyOutnumberTheCores) {
  expect_all(host_of({{0, 1}, {0, 1}}), 2, kAtEase);
  expect_all(host_of({{0, 1}, {0, 1}, {0, 1}}), 2, kCrowded);
}

TEST(CoreShare, RanksWithCoresOfTheirOwnAreNotCrowdedAndSpin) {
  expect_all(host_of({{0}, {1}}), 2, kAtEase);
  expect_all(host_of({{0}, {1}, {2}, {3}}), 4, kAtEase);
  expect_all(host_of({{0, 1}, {2, 3}}), 4, kAtEase);
}

TEST(CoreShare, RanksOfASocketShareItsCoresOnly) {
  expect_all(host_of({{0, 1}, {0, 1}, {2, 3}, {2, 3}}), 4, kAtEase);
  const View view = host_of({{0, 1}, {0, 1}, {0, 1}, {2, 3}});
  EXPECT_EQ(core_share(view, 0, {2, 4}), kCrowded);
  EXPECT_EQ(core_share(view, 3, {2, 4}), kAtEase);
}

TEST(CoreShare, RanksThatShareASingleCoreDoNotSpin) { expect_all(host_of({{5}, {5}}), 8, kCrowdedOnOne); }

TEST(CoreShare, ARankIsCrowdedByThoseThatMayRunOnOneOfItsCores) {
  const View view = host_of({{0, 1}, {1, 2}, {2, 3}, {3}});
  EXPECT_EQ(core_share(view, 0, {2, 4}), kAtEase);        // and rank 1, on two cores
  EXPECT_EQ(core_share(view, 1, {2, 4}), kCrowded);       // and ranks 0 and 2
  EXPECT_EQ(core_share(view, 2, {2, 4}), kCrowded);       // and ranks 1 and 3
  EXPECT_EQ(core_share(view, 3, {1, 4}), kCrowdedOnOne);  // and rank 2
}

TEST(CoreShare, ARankAloneSpinsOnASingleCoreUnlessThereIsNoOther) {
  expect_all(host_of({{0}}), 2, kAtEase);
  expect_all(host_of({{0}}), 1, {false, false});
}

TEST(CoreShare, RanksOfOtherHostsHaveOtherCores) {
  View view = host_of({{0}, {0}});
  view.members[1].host.bytes[0] = std::byte{1};
  expect_all(view, 2, kAtEase);
}

TEST(CoreShare, WhereCoresAreNotKnownAllRanksAreOnThoseOfThisProcess) {
  for (const View& view : {host_of({{}, {}}), host_of({{0}, {}}), host_of({{}, {1}})}) {
    for (Rank rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(core_share(view, rank, {2, 2}), kAtEase);
      EXPECT_EQ(core_share(view, rank, {1, 2}), kCrowdedOnOne);
    }
  }
  EXPECT_EQ(core_share(host_of({{}}), 0, {1, 2}), (CoreShare{false, false}));
}

}  // namespace
}  // namespace nexar::cluster
