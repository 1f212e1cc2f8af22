// Whole nodes: threads, links and messages as a program sees them.
#include "nexar/node.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include <poll.h>

#include <gtest/gtest.h>

#include "nexar/info.h"

namespace nexar {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Over shared memory, or over what NEXAR_TRANSPORT names.
std::vector<Node> world(int n) {
  LocalOptions options;
  options.config = Config::from_env().value();
  return Node::local(n, options).value();
}

TEST(Node, AWorldOfOneSendsToItself) {
  const std::vector<Node> nodes = world(1);
  const Group group = nodes[0].world();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  int value = 5;
  int got = 0;
  EXPECT_EQ(group.exchange(&value, sizeof value, 0, 1, &got, sizeof got, 0, 1).value(), (Status{4, 0, 1}));
  EXPECT_EQ(got, 5);
}

TEST(Node, EveryRankReachesEveryOther) {
  const std::vector<Node> nodes = world(5);
  std::vector<std::thread> threads;
  for (const Node& node : nodes)
    threads.emplace_back([&node] {
      const Group group = node.world();
      for (Rank peer = 0; peer < group.size(); ++peer) {
        const int mine = group.rank() * 100 + peer;
        int theirs = -1;
        ASSERT_TRUE(group.exchange(&mine, sizeof mine, peer, 7, &theirs, sizeof theirs, peer, 7));
        EXPECT_EQ(theirs, peer * 100 + group.rank());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Bytes that rank 0 of `ranks` sends by TCP lanes to rank 1 of a message of so many.
std::uint64_t sent_by_lanes(int ranks, std::size_t bytes) {
  LocalOptions options;
  options.config.transport = Transport::kNet;
  const std::vector<Node> nodes = Node::local(ranks, options).value();
  const auto bulk = [&] { return nodes[0].counters().value().peers[1].bulk; };
  const auto exchange = [&](std::size_t size) {
    const std::vector<std::byte> out = pattern(size, 1);
    std::vector<std::byte> in(size);
    Operation received = nodes[1].world().start_recv(in.data(), size, 0, 1);
    nodes[0].world().send(out.data(), size, 1, 1).value();
    received.wait().value();
    EXPECT_EQ(in, out);
  };
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (bulk().tcp_lanes == 0 && std::chrono::steady_clock::now() < limit) exchange(2u << 20);
  EXPECT_GT(bulk().tcp_lanes, 0) << bulk().reason;
  const std::uint64_t before = bulk().tcp_bytes_sent;
  exchange(bytes);
  return bulk().tcp_bytes_sent - before;
}

TEST(Node, LanesCarryLargeMessagesAlsoWhereRanksOutnumberCores) {
  const int cores = info().cores;
  if (cores > 16) GTEST_SKIP() << "one rank more than cores would be many";
  for (const int ranks : {2, cores + 1}) {
    EXPECT_LT(sent_by_lanes(ranks, 60u << 10), 4096u) << ranks;
    EXPECT_GE(sent_by_lanes(ranks, 128u << 10), 128u << 10) << ranks;
  }
}

TEST(Node, MessagesOfEverySizeGoBothWaysAtOnce) {
  const std::vector<Node> nodes = world(2);
  for (const std::size_t size : {0, 1, 4096, 65536, 65537, 1 << 20, 20 << 20}) {
    const std::vector<std::byte> a = pattern(size, 1);
    const std::vector<std::byte> b = pattern(size, 2);
    std::vector<std::byte> at_b(size);
    std::vector<std::byte> at_a(size);
    std::thread other([&] { ASSERT_TRUE(nodes[1].world().exchange(b.data(), size, 0, 3, at_b.data(), size, 0, 3)); });
    ASSERT_TRUE(nodes[0].world().exchange(a.data(), size, 1, 3, at_a.data(), size, 1, 3));
    other.join();
    EXPECT_TRUE(at_a == b && at_b == a) << size;
  }
}

TEST(Node, RegionsAreGatheredAndScattered) {
  const std::vector<Node> nodes = world(2);
  for (const std::size_t scale : {1u, 40000u}) {
    const std::vector<std::byte> bytes = pattern(10 * scale, 5);
    const ConstRegion from[] = {
        {bytes.data(), scale}, {nullptr, 0}, {bytes.data() + scale, 7 * scale}, {bytes.data() + 8 * scale, 2 * scale}};
    std::vector<std::byte> got(10 * scale);
    const Region to[] = {{got.data(), 3 * scale}, {got.data() + 3 * scale, 6 * scale}, {got.data() + 9 * scale, scale}};
    Operation receive = nodes[1].world().start_recv(to, 0, 1);
    ASSERT_TRUE(nodes[0].world().send(from, 1, 1));
    ASSERT_TRUE(receive.wait());
    EXPECT_TRUE(got == bytes) << scale;
  }
}

TEST(Node, AnOwnedReceiveHasTheRightSize) {
  const std::vector<Node> nodes = world(2);
  for (const std::size_t size : {0, 10, 200000}) {
    const std::vector<std::byte> bytes = pattern(size, 1);
    Operation send = nodes[0].world().start_send(bytes.data(), size, 1, 9);
    const Result<OwnedMessage> message = nodes[1].world().recv_owned(kAnySource, kAnyTag);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->status, (Status{size, 0, 9}));
    EXPECT_TRUE(message->bytes == bytes);
    ASSERT_TRUE(send.wait());
  }
  Operation receive = nodes[1].world().start_recv_owned(0, 4);
  ASSERT_TRUE(nodes[0].world().send("abc", 3, 1, 4));
  ASSERT_TRUE(receive.wait());
  EXPECT_EQ(receive.take_bytes().size(), 3u);
}

TEST(Node, ProbeFindsAMessageWithoutTakingIt) {
  const std::vector<Node> nodes = world(2);
  const Group group = nodes[1].world();
  EXPECT_EQ(group.probe(0, 6).value(), std::nullopt);
  ASSERT_TRUE(nodes[0].world().send("hello", 5, 1, 6));
  std::optional<Status> found;
  while (!found) found = group.probe(kAnySource, kAnyTag).value();
  EXPECT_EQ(found, (Status{5, 0, 6}));
  char buffer[5];
  EXPECT_TRUE(group.recv(buffer, 5, 0, 6));
}

TEST(Node, BadArgumentsAreRefusedByNameBeforeAnythingIsSent) {
  const std::vector<Node> nodes = world(2);
  const Group group = nodes[0].world();
  const std::uint64_t sent_before = nodes[0].counters()->peers[1].traffic.frames_sent[2];
  char byte = 0;
  const Result<void> rank = group.send(&byte, 1, 2, 0);
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(rank.error().sentence().find("no rank 2 in a group of 2"), std::string::npos);
  EXPECT_FALSE(group.send(nullptr, 1, 1, 0));
  EXPECT_FALSE(group.recv(nullptr, 1, 1, 0));
  EXPECT_FALSE(group.recv(&byte, 1, -2, 0));
  EXPECT_FALSE(group.probe(7, 0));
  EXPECT_FALSE(group.start_send(&byte, 1, -1, 0).wait());
  EXPECT_FALSE(nodes[0].ping(0));
  EXPECT_FALSE(Node::local(0));
  EXPECT_EQ(Node::local(257).error().sentence(), "a local world has 1 to 256 nodes, not 257");
  LocalOptions one_place;
  one_place.places.resize(1);
  EXPECT_FALSE(Node::local(2, one_place));
  EXPECT_EQ(nodes[0].counters()->peers[1].traffic.frames_sent[2], sent_before);
}

TEST(Operation, EndsAtItsDeadlineAndGivesTheBufferBack) {
  const std::vector<Node> nodes = world(2);
  auto buffer = std::make_unique<std::byte[]>(100);
  Operation receive = nodes[0].world().start_recv(buffer.get(), 100, 1, 5);
  EXPECT_FALSE(receive.done());
  const Result<Status> result = receive.wait(5ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kTimeout);
  EXPECT_NE(result.error().sentence().find("rank 1"), std::string::npos);
  buffer.reset();
  EXPECT_TRUE(receive.done());
  EXPECT_EQ(receive.wait().error().code(), ErrorCode::kTimeout) << "asked again it says the same";
}

TEST(Operation, DroppingItCancels) {
  const std::vector<Node> nodes = world(2);
  for (int i = 0; i < 100; ++i) {
    std::vector<std::byte> large(1 << 20);
    std::vector<std::byte> small(100);
    Operation send = nodes[0].world().start_send(large.data(), large.size(), 1, 1);
    Operation receive = nodes[0].world().start_recv(small.data(), small.size(), 1, 1);
    Operation partner;
    if (i % 2 == 0) partner = nodes[1].world().start_recv(large.data(), 0, 0, 2);
  }
  ASSERT_TRUE(nodes[0].world().send("x", 1, 1, 3));
  char byte;
  ASSERT_TRUE(nodes[1].world().recv(&byte, 1, 0, 3));
}

TEST(Operation, CallsBackWhenDoneAlsoWhenNobodyWaits) {
  const std::vector<Node> nodes = world(2);
  char byte = 0;
  Operation receive = nodes[1].world().start_recv(&byte, 1, 0, 1);
  std::atomic<bool> called = false;
  receive.on_done([&](const Result<Status>& result) { called = result.has_value(); });
  ASSERT_TRUE(nodes[0].world().send("x", 1, 1, 1));
  while (!called) std::this_thread::yield();
  EXPECT_TRUE(receive.done() || receive.wait());
  std::atomic<int> again = 0;
  receive.on_done([&](const Result<Status>&) { ++again; });
  EXPECT_EQ(again, 1) << "one that is done calls at once";
}

TEST(Operation, ACallFromInsideACallbackIsRefused) {
  const std::vector<Node> nodes = world(2);
  char byte = 0;
  Operation receive = nodes[1].world().start_recv(&byte, 1, 0, 1);
  std::atomic<int> refused = 0;
  receive.on_done([&](const Result<Status>&) {
    char other;
    const Result<void> send = nodes[1].world().send("y", 1, 0, 2);
    const Result<Status> recv = nodes[1].world().recv(&other, 1, 0, 2);
    refused = (!send && send.error().code() == ErrorCode::kInvalidArgument) && !recv ? 1 : 2;
  });
  ASSERT_TRUE(nodes[0].world().send("x", 1, 1, 1));
  while (refused == 0) std::this_thread::yield();
  EXPECT_EQ(refused, 1);
}

TEST(Operation, HasADescriptorThatBecomesReadable) {
  const std::vector<Node> nodes = world(2);
  char byte = 0;
  Operation receive = nodes[1].world().start_recv(&byte, 1, 0, 1);
  pollfd waiting{receive.descriptor().value(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  ASSERT_TRUE(nodes[0].world().send("x", 1, 1, 1));
  EXPECT_EQ(::poll(&waiting, 1, 10000), 1);
  EXPECT_TRUE(receive.wait());
}

TEST(OperationGroup, WaitsForAllAndForAny) {
  const std::vector<Node> nodes = world(2);
  std::vector<int> got(20, -1);
  OperationGroup group;
  for (std::size_t i = 0; i < got.size(); ++i) group.add(nodes[1].world().start_recv(&got[i], sizeof(int), 0, i));
  std::thread sender([&] {
    for (int i = 19; i >= 0; --i) ASSERT_TRUE(nodes[0].world().send(&i, sizeof i, 1, static_cast<Tag>(i)));
  });
  std::vector<bool> seen(got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t index = group.wait_any().value();
    EXPECT_FALSE(seen[index]);
    seen[index] = true;
  }
  sender.join();
  EXPECT_EQ(group.wait_any().error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(group.wait_all());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);

  OperationGroup late;
  int value;
  late.add(nodes[1].world().start_recv(&value, sizeof value, 0, 99));
  EXPECT_EQ(late.wait_any(1ms).error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(late.wait_all(1ms).error().code(), ErrorCode::kTimeout);
}

// Threads on one node wait at the same time, each for messages of its own.
void many_waiters(int count) {
  const std::vector<Node> nodes = world(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    for (const Node& node : nodes)
      threads.emplace_back([&node, t] {
        const Group group = node.world();
        const Rank peer = 1 - group.rank();
        for (int i = 0; i < 200; ++i) {
          const int mine = i * 10 + group.rank();
          int theirs = -1;
          ASSERT_TRUE(group.exchange(&mine, sizeof mine, peer, static_cast<Tag>(t), &theirs, sizeof theirs, peer, static_cast<Tag>(t)));
          ASSERT_EQ(theirs, i * 10 + peer);
        }
      });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Node, OneThreadWaits) { many_waiters(1); }
TEST(Node, TwoThreadsWait) { many_waiters(2); }
TEST(Node, EightThreadsWait) { many_waiters(8); }

TEST(Node, PingsItsPeersAndCountsTraffic) {
  const std::vector<Node> nodes = world(2);
  EXPECT_GT(nodes[0].ping(1).value().count(), 0);
  EXPECT_GT(nodes[0].counters().value().peers[1].traffic.frames_sent[0], 0u);
}

TEST(Node, CloseEndsWhatIsUnderWayAndDeliversWhatWasSent) {
  std::vector<Node> nodes = world(2);
  char byte = 0;
  Operation pending = nodes[0].world().start_recv(&byte, 1, 1, 1);
  Operation needs_it = nodes[1].world().start_recv(&byte, 1, 0, 8);
  ASSERT_TRUE(nodes[0].world().send("z", 1, 1, 5));
  ASSERT_TRUE(nodes[0].close());
  EXPECT_EQ(pending.wait().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(nodes[0].world().send("z", 1, 1, 5).error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(nodes[0].close()) << "twice is once";
  char got = 0;
  ASSERT_TRUE(nodes[1].world().recv(&got, 1, 0, 5)) << "what was sent before is there";
  EXPECT_EQ(got, 'z');
  const Result<Status> lost = needs_it.wait();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(lost.error().ranks()[0], 0);
}

TEST(Node, AnOperationMayOutliveItsNode) {
  char byte = 0;
  Operation receive;
  {
    const std::vector<Node> nodes = world(2);
    receive = nodes[0].world().start_recv(&byte, 1, 1, 1);
  }
  EXPECT_FALSE(receive.wait());
}

}  // namespace
}  // namespace nexar
