#include "transport/quic/send_queue.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::transport::quic {
namespace {

std::vector<std::byte> counted(std::size_t size, std::size_t from = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((from + i) % 251);
  return bytes;
}

TEST(SendQueue, GivesBackWhatWasQueuedInOrderInAtMostTwoPieces) {
  BlockPool pool(16, 4);
  SendQueue queue(pool, 100);
  queue.append(counted(40));
  std::vector<std::byte> got;
  while (queue.has_unsent()) {
    const auto pieces = queue.unsent();
    EXPECT_FALSE(pieces[0].empty());
    got.insert(got.end(), pieces[0].begin(), pieces[0].end());
    got.insert(got.end(), pieces[1].begin(), pieces[1].end());
    queue.mark_sent(pieces[0].size() + pieces[1].size());
  }
  EXPECT_EQ(got, counted(40));
  EXPECT_TRUE(queue.unsent()[0].empty());
}

TEST(SendQueue, HoldsNoMoreThanItsLimitUntilThePeerAcknowledges) {
  BlockPool pool(16, 4);
  SendQueue queue(pool, 50);
  queue.append(counted(50));
  EXPECT_EQ(queue.room(), 0u);
  queue.mark_sent(50);
  EXPECT_EQ(queue.room(), 0u);
  queue.acknowledge(20);
  EXPECT_EQ(queue.room(), 20u);
  queue.acknowledge(10);  // late and already known
  EXPECT_EQ(queue.room(), 20u);
  queue.acknowledge(50);
  EXPECT_EQ(queue.held(), 0u);
}

// What ngtcp2 may send again must stay where it is, whatever is queued and acknowledged around it.
TEST(SendQueue, BytesInFlightNeitherMoveNorChange) {
  BlockPool pool(64, 2);
  SendQueue queue(pool, 1000);
  std::mt19937 random(1);
  struct InFlight {
    base::ByteView view;
    std::size_t from;
  };
  std::vector<InFlight> flight;
  std::size_t queued = 0;
  std::size_t sent = 0;
  std::size_t acknowledged = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::size_t size = std::min<std::size_t>(random() % 200, queue.room());
    queue.append(counted(size, queued));
    queued += size;
    const base::ByteView next = queue.unsent()[0];
    const std::size_t taken = next.empty() ? 0 : random() % (next.size() + 1);
    flight.push_back({next.first(taken), sent});
    queue.mark_sent(taken);
    sent += taken;
    for (const InFlight& one : flight)
      for (std::size_t i = 0; i < one.view.size(); ++i) ASSERT_EQ(one.view[i], static_cast<std::byte>((one.from + i) % 251));
    acknowledged += random() % (sent - acknowledged + 1);
    queue.acknowledge(acknowledged);
    std::erase_if(flight, [&](const InFlight& one) { return one.from < acknowledged; });
  }
}

TEST(BlockPool, KeepsOnlyAsManyBlocksAsItMay) {
  BlockPool pool(16, 1);
  Block a = pool.take();
  Block b = pool.take();
  const std::byte* kept = a.get();
  pool.give(std::move(a));
  pool.give(std::move(b));
  EXPECT_EQ(pool.take().get(), kept);
}

}  // namespace
}  // namespace nexar::transport::quic
