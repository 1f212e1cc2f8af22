// A lot of traffic through one link: memory stays flat and every byte is right.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string_view>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

#include "nexar/node.h"

namespace nexar::test {
namespace {

// Sanitizers are slow, so they get a tenth of everything; and they keep what was freed, so resident memory says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr std::size_t kShare = kSanitized ? 10 : 1;

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Over shared memory, or over what NEXAR_TRANSPORT names.
std::vector<Node> local_world(int size) {
  LocalOptions options;
  options.config = Config::from_env().value();
  return Node::local(size, options).value();
}

void stream(const std::vector<Node>& nodes, std::uint64_t count) {
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(nodes[0].world().send(&i, sizeof i, 1, 1));
  });
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t got = 0;
    ASSERT_TRUE(nodes[1].world().recv(&got, sizeof got, 0, 1));
    ASSERT_EQ(got, i);
  }
  sender.join();
}

void expect_flat_memory(std::uint64_t messages) {
  const std::vector<Node> nodes = local_world(2);
  stream(nodes, messages / 2);
  const std::size_t before = resident_bytes();
  stream(nodes, messages / 2);
  const std::size_t after = resident_bytes();
  EXPECT_TRUE(kSanitized || after <= before + (8u << 20)) << "resident memory grew over the second half from " << before << " to " << after;
}

TEST(Volume, SmallMessagesKeepMemoryFlat) { expect_flat_memory(100'000 / kShare); }
TEST(VolumeLong, AMillionSmallMessagesKeepMemoryFlat) { expect_flat_memory(1'000'000 / kShare); }

// Reductions of one element, and every hundredth time one that is large enough to be granted.
void reduce_often(const std::vector<Node>& nodes, int count) {
  const auto calls = [count](const Group& world) {
    std::vector<std::int64_t> large(20'000);
    for (int i = 0; i < count; ++i) {
      std::int64_t x = world.rank() + i;
      ASSERT_TRUE(world.all_reduce(&x, &x, 1, DataType::kI64, ReduceOp::kSum));
      ASSERT_EQ(x, 2 * i + 1);
      if (i % 100 == 0) {
        ASSERT_TRUE(world.all_reduce(large.data(), large.data(), large.size(), DataType::kI64, ReduceOp::kSum));
      }
    }
  };
  std::thread other([&] { calls(nodes[1].world()); });
  calls(nodes[0].world());
  other.join();
}

void expect_flat_memory_of_collectives(int count) {
  const std::vector<Node> nodes = Node::local(2).value();
  reduce_often(nodes, count / 2);
  const std::size_t before = resident_bytes();
  reduce_often(nodes, count / 2);
  const std::size_t after = resident_bytes();
  EXPECT_TRUE(kSanitized || after <= before + (8u << 20)) << "resident memory grew over the second half from " << before << " to " << after;
}

TEST(Volume, SmallCollectivesKeepMemoryFlat) { expect_flat_memory_of_collectives(10'000 / static_cast<int>(kShare)); }
TEST(VolumeLong, ManySmallCollectivesKeepMemoryFlat) { expect_flat_memory_of_collectives(100'000 / static_cast<int>(kShare)); }

// Whole buffers back and forth, each different from the last, compared by value.
void move(std::uint64_t total) {
  constexpr std::size_t kBytes = 64u << 20;
  const std::vector<Node> nodes = local_world(2);
  std::vector<std::uint64_t> out(kBytes / 8);
  std::vector<std::uint64_t> in(kBytes / 8);
  for (std::uint64_t round = 0; round * kBytes < total; ++round) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = round * 0x9E3779B97F4A7C15u + i;
    Operation receive = nodes[1].world().start_recv(in.data(), kBytes, 0, round);
    std::thread reader([&] { ASSERT_TRUE(receive.wait()); });
    const Result<void> sent = nodes[0].world().send(out.data(), kBytes, 1, round);
    reader.join();
    ASSERT_TRUE(sent) << sent.error().to_string();
    ASSERT_TRUE(in == out) << "round " << round;
  }
  const PeerCounters peer = nodes[0].counters().value().peers[1];
  const char* forced = std::getenv("NEXAR_TRANSPORT");
  if (peer.transport == "shm" || (forced != nullptr && std::string_view(forced) == "quic")) return;  // run with others as well
  const BulkCounters bulk = peer.bulk;
  EXPECT_GE(bulk.tcp_bytes_sent + 2 * kBytes, total) << "all but the first went by TCP lanes: " << bulk.reason;
}

TEST(Volume, AGigabyteArrivesWhole) { move((1ull << 30) / kShare); }
TEST(VolumeLong, SixteenGigabytesArriveWhole) { move((16ull << 30) / kShare); }

// What a connection costs that does nothing: links are cheap enough for a mesh of hundreds.
TEST(Volume, AnIdleConnectionIsSmall) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  constexpr int kNodes = 24;
  const std::vector<Node> small = local_world(2);  // what is allocated once
  const std::size_t before = resident_bytes();
  const std::vector<Node> nodes = local_world(kNodes);
  const std::size_t ends = static_cast<std::size_t>(kNodes) * (kNodes - 1);  // both ends of every link are here
  const std::size_t each = (resident_bytes() - before) / ends;
  RecordProperty("bytes_per_connection", static_cast<int>(each));
  EXPECT_LE(each, 200u << 10) << "threads, loops and sockets of the nodes included";
}

TEST(Volume, AGigabyteThatNobodyReceivesDelaysNothing) {
  const std::vector<Node> nodes = local_world(2);
  constexpr std::size_t kGigabyte = std::size_t{1} << 30;
  const std::unique_ptr<std::byte[]> unread(new std::byte[kGigabyte]);  // never touched: nothing of it is sent
  Operation stuck = nodes[0].world().start_send(unread.get(), kGigabyte, 1, 1);
  for (int i = 0; i < 300; ++i) {
    int got = -1;
    ASSERT_TRUE(nodes[0].world().send(&i, sizeof i, 1, 2));
    ASSERT_TRUE(nodes[1].world().recv(&got, sizeof got, 0, 2));
    ASSERT_EQ(got, i);
    ASSERT_TRUE(nodes[0].ping(1));
  }
  EXPECT_FALSE(stuck.done());
  EXPECT_EQ(nodes[0].counters().value().peers[1].traffic.bytes_sent[3], 0u) << "bulk flows only when somebody can take it";
}

TEST(Volume, AThousandMessagesOfEveryTagInRandomOrder) {
  const std::vector<Node> nodes = local_world(2);
  std::vector<std::uint64_t> tags(1000);
  for (std::size_t i = 0; i < tags.size(); ++i) tags[i] = i;
  std::shuffle(tags.begin(), tags.end(), std::mt19937(1));
  std::thread sender([&] {
    for (std::uint64_t tag = 0; tag < tags.size(); ++tag) {
      OperationGroup sends;
      sends.add(nodes[0].world().start_send(&tag, sizeof tag, 1, tag));
      ASSERT_TRUE(sends.wait_all());
    }
  });
  std::vector<std::uint64_t> got(tags.size());
  OperationGroup receives;
  for (const std::uint64_t tag : tags) receives.add(nodes[1].world().start_recv(&got[tag], sizeof got[tag], 0, tag));
  ASSERT_TRUE(receives.wait_all());
  sender.join();
  for (std::uint64_t tag = 0; tag < tags.size(); ++tag) EXPECT_EQ(got[tag], tag);
}

}  // namespace
}  // namespace nexar::test
