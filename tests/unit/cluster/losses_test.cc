#include "cluster/losses.h"

#include <gtest/gtest.h>

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
