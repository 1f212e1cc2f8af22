#include "collective/scratch_pool.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::collective {
namespace {

TEST(ScratchPool, GivesAgainWhatItKeeps) {
  ScratchPool pool;
  EXPECT_EQ(pool.take(0)->bytes, 0u);
  ScratchPool::Block block = pool.take(40'000).value();
  const std::byte* memory = block.memory.get();
  pool.give(std::move(block));
  EXPECT_EQ(pool.kept_bytes(), 65'536u);
  EXPECT_NE(pool.take(10)->memory.get(), memory) << "a huge block is not taken for a small operation";
  EXPECT_EQ(pool.take(50'000)->memory.get(), memory);
  EXPECT_EQ(pool.kept_bytes(), 0u);
}

TEST(ScratchPool, KeepsABoundedNumberOfBytesTheSmallestFirst) {
  ScratchPool pool;
  std::vector<ScratchPool::Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(pool.take(kScratchKeptMax / 4).value());
  blocks.push_back(pool.take(1).value());
  for (ScratchPool::Block& block : blocks) {
    pool.give(std::move(block));
    EXPECT_LE(pool.kept_bytes(), kScratchKeptMax);
  }
  EXPECT_EQ(pool.kept_bytes(), kScratchKeptMax / 4 * 3 + 4096) << "the small one is kept, and large ones made way";
  pool.give(pool.take(kScratchKeptMax + 1).value());
  EXPECT_EQ(pool.kept_bytes(), kScratchKeptMax / 4 * 3 + 4096) << "what is larger than everything is not kept at all";
}

}  // namespace
}  // namespace nexar::collective
