#include "launch/binding.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "io/host.h"
#include "io/thread.h"

namespace nexar::launch {
namespace {

// A host that is only told about: "package:2 core:4 pu:2".
struct Synthetic {
  explicit Synthetic(const std::string& description) {
    EXPECT_EQ(hwloc_topology_init(&topology), 0);
    EXPECT_EQ(hwloc_topology_set_synthetic(topology, description.c_str()), 0) << description;
    EXPECT_EQ(hwloc_topology_load(topology), 0);
  }
  ~Synthetic() { hwloc_topology_destroy(topology); }
  Synthetic(const Synthetic&) = delete;
  Synthetic& operator=(const Synthetic&) = delete;

  void restrict_to(const Cores& cores) const {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (const int core : cores) hwloc_bitmap_set(set, static_cast<unsigned>(core));
    EXPECT_EQ(hwloc_topology_restrict(topology, set, 0), 0);
    hwloc_bitmap_free(set);
  }

  std::vector<Cores> shares(int ranks) const { return share_cores(topology, ranks).value(); }

  hwloc_topology_t topology = nullptr;
};

Cores range(int first, int end) {
  Cores cores(static_cast<std::size_t>(end - first));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

TEST(Binding, SharesAreDisjointEqualAndLeaveNothing) {
  for (const char* host : {"package:1 core:1 pu:1", "package:2 core:4 pu:1", "package:2 numanode:2 core:3 pu:1", "core:7 pu:1"}) {
    const Synthetic synthetic(host);
    const int cores = hwloc_get_nbobjs_by_type(synthetic.topology, HWLOC_OBJ_CORE);
    for (int ranks = 1; ranks <= cores; ++ranks) {
      Cores all;
      std::size_t fewest = SIZE_MAX;
      std::size_t most = 0;
      for (const Cores& share : synthetic.shares(ranks)) {
        fewest = std::min(fewest, share.size());
        most = std::max(most, share.size());
        all.insert(all.end(), share.begin(), share.end());
      }
      EXPECT_EQ(all, range(0, cores)) << host << ", " << ranks << " ranks";  // in this order: whoever is next to a rank is near it
      EXPECT_LE(most - fewest, 1u) << host << ", " << ranks << " ranks";
    }
  }
}

TEST(Binding, NeighboursAreNear) {
  // The kernel numbers cores of the two packages in turn.
  const Synthetic synthetic("package:2 core:4 pu:1(indexes=package)");
  EXPECT_EQ(synthetic.shares(2), (std::vector<Cores>{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(synthetic.shares(4), (std::vector<Cores>{{0, 2}, {4, 6}, {1, 3}, {5, 7}}));
}

TEST(Binding, ThreadsOfACoreStayTogether) {
  const Synthetic synthetic("package:2 core:4 pu:2");
  EXPECT_EQ(synthetic.shares(2), (std::vector<Cores>{range(0, 8), range(8, 16)}));
  EXPECT_EQ(synthetic.shares(3), (std::vector<Cores>{range(0, 4), range(4, 10), range(10, 16)}));
  EXPECT_EQ(synthetic.shares(8)[7], range(14, 16));
}

TEST(Binding, RanksThatOutnumberTheCoresShareThem) {
  const Synthetic synthetic("package:1 core:2 pu:2");
  EXPECT_EQ(synthetic.shares(3), (std::vector<Cores>{{0, 1}, {0, 1}, {2, 3}}));
  const std::vector<Cores> many = synthetic.shares(100);
  EXPECT_EQ(std::count(many.begin(), many.end(), Cores{0, 1}), 50);
  EXPECT_EQ(std::count(many.begin(), many.end(), Cores{2, 3}), 50);
}

TEST(Binding, OnlyWhatMayBeUsedIsShared) {
  const Synthetic synthetic("package:2 core:4 pu:2");
  synthetic.restrict_to({3, 6, 7, 10, 11, 15});
  EXPECT_EQ(synthetic.shares(2), (std::vector<Cores>{{3, 6, 7}, {10, 11, 15}}));
  EXPECT_EQ(synthetic.shares(4), (std::vector<Cores>{{3}, {6, 7}, {10, 11}, {15}}));
}

TEST(Binding, ThisHostIsSharedAsFarAsThisProcessMayUseIt) {
  const CoreSet own = io::own_cores();
  const auto one = share_cores_here(1);
  ASSERT_TRUE(one) << one.error().to_string();
  ASSERT_EQ(one->size(), 1u);
  CoreSet all;
  for (const int core : one->front()) all.add(core);
  EXPECT_EQ(all, own);
  std::thread([&] {
    io::pin_thread(0);
    const auto shares = share_cores_here(2);
    ASSERT_TRUE(shares) << shares.error().to_string();
    EXPECT_EQ(*shares, (std::vector<Cores>{{one->front().front()}, {one->front().front()}}));
  }).join();
}

TEST(Binding, CoresAreWrittenAsRanges) {
  EXPECT_EQ(to_string(Cores{}), "");
  EXPECT_EQ(to_string(Cores{3}), "3");
  EXPECT_EQ(to_string(Cores{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

}  // namespace
}  // namespace nexar::launch
