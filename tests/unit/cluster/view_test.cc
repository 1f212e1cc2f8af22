#include "cluster/view.h"

#include <gtest/gtest.h>

namespace nexar::cluster {
namespace {

View view_of(std::initializer_list<int> hosts) {
  View view;
  for (const int host : hosts) {
    Member member;
    member.node.bytes[0] = static_cast<std::byte>(view.members.size() + 1);
    member.host.bytes[15] = static_cast<std::byte>(host);
    view.members.push_back(member);
  }
  return view;
}

TEST(Places, NumberHostsByTheirLowestRanks) {
  const Places places(view_of({7, 3, 7, 9, 3, 7}));
  EXPECT_EQ(places.hosts(), 3);
  const int hosts[] = {0, 1, 0, 2, 1, 0};
  const int local_ranks[] = {0, 0, 1, 0, 1, 2};
  const int local_sizes[] = {3, 2, 3, 1, 2, 3};
  for (Rank rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(places.host_index(rank), hosts[rank]);
    EXPECT_EQ(places.local_rank(rank), local_ranks[rank]);
    EXPECT_EQ(places.local_size(rank), local_sizes[rank]);
  }
}

TEST(View, KnowsTheRankOfANode) {
  const View view = view_of({1, 1, 1});
  EXPECT_EQ(view.rank_of(view.member(2).node), 2);
  EXPECT_EQ(view.rank_of(NodeId{}), std::nullopt);
}

}  // namespace
}  // namespace nexar::cluster
