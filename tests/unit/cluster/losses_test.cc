#include "cluster/losses.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "wire/limits.h"

namespace nexar::cluster {
namespace {

TEST(Losses, NameTheRankAndWhy) {
  Losses losses;
  EXPECT_TRUE(losses.add(3, "it has not answered for 5s"));
  EXPECT_FALSE(losses.add(3, "rank 1 says so")) << "the first reason counts";
  const Error error = losses.error(0, 7);
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_EQ(error.sentence(), "rank 3 is lost: it has not answered for 5s");
  EXPECT_EQ(error.epoch(), 7u);
  ASSERT_EQ(error.ranks().size(), 1u);
  EXPECT_EQ(error.ranks()[0], 3);
}

TEST(Losses, ListAllWhenThereAreSeveral) {
  Losses losses;
  EXPECT_TRUE(losses.add(5, "a"));
  EXPECT_TRUE(losses.add(2, "b"));
  const Error error = losses.error(0, 1);
  EXPECT_EQ(error.sentence(), "ranks 2, 5 are lost (rank 2: b; rank 5: a)");
  EXPECT_EQ(std::vector<Rank>(error.ranks().begin(), error.ranks().end()), (std::vector<Rank>{2, 5}));
}

TEST(Losses, AreToldInAsManyFramesAsItTakes) {
  View view;
  view.members.resize(2 * wire::kLostNodesMax + 2);
  for (std::size_t i = 0; i < view.members.size(); ++i) base::store_le(view.members[i].node.bytes.data(), i);
  Losses losses;
  EXPECT_TRUE(losses.revokes(view).empty());
  for (Rank rank = 1; rank < static_cast<Rank>(view.members.size()); ++rank) losses.add(rank, "a");
  const std::vector<wire::Revoke> revokes = losses.revokes(view);
  ASSERT_EQ(revokes.size(), 3u);
  std::size_t next = 1;
  for (const wire::Revoke& revoke : revokes) {
    EXPECT_EQ(revoke.fault(), nullptr);
    for (const NodeId& lost : revoke.lost) EXPECT_EQ(lost, view.members[next++].node);
  }
  EXPECT_EQ(next, view.members.size());
  EXPECT_EQ(revokes.back().lost.size(), 1u);
}

TEST(Losses, OfThisRankNameItAlone) {
  Losses losses;
  EXPECT_TRUE(losses.add(5, "a"));
  EXPECT_TRUE(losses.add(0, "by rank 4"));
  const Error error = losses.error(0, 1);
  EXPECT_EQ(error.sentence(), "this rank, 0, was declared lost by rank 4");
  EXPECT_EQ(std::vector<Rank>(error.ranks().begin(), error.ranks().end()), (std::vector<Rank>{0}));
}

}  // namespace
}  // namespace nexar::cluster
