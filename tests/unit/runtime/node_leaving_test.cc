// Nodes that leave, abort and close: whom it concerns and whom not.
#include <atomic>
#include <thread>

#include <poll.h>

#include "runtime/world.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

std::vector<Node> world(int size) {
  LocalOptions options;
  options.config = Config::from_env().value();  // over shared memory, or over what NEXAR_TRANSPORT names
  options.log = [](const LogRecord&) {};
  return Node::local(size, options).value();
}

TEST(Leaving, EndsOnlyWhatNeedsTheLeaver) {
  std::vector<Node> nodes = world(3);
  char bytes[3] = {};
  Operation needs = nodes[0].world().start_recv(&bytes[0], 1, 2, 1);
  Operation from_other = nodes[0].world().start_recv(&bytes[1], 1, 1, 1);
  Operation from_any = nodes[0].world().start_recv(&bytes[2], 1, kAnySource, 2);
  ASSERT_TRUE(nodes[2].world().send("z", 1, 0, 9));
  ASSERT_TRUE(nodes[2].close());

  const Result<Status> ended = needs.wait(20s);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(ended.error().sentence(), "rank 2 has left");
  EXPECT_EQ(ended.error().ranks()[0], 2);
  char got = 0;
  EXPECT_TRUE(nodes[0].world().recv(&got, 1, 2, 9)) << "what came before is still there";
  EXPECT_EQ(got, 'z');
  EXPECT_EQ(nodes[0].world().recv(&got, 1, 2, 9).error().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(nodes[0].world().send("z", 1, 2, 9).error().code(), ErrorCode::kPeerLost);

  EXPECT_FALSE(from_other.done() || from_any.done());
  ASSERT_TRUE(nodes[1].world().send("a", 1, 0, 1));
  ASSERT_TRUE(nodes[1].world().send("b", 1, 0, 2));
  EXPECT_TRUE(from_other.wait(20s));
  EXPECT_TRUE(from_any.wait(20s));
  const NodeCounters counters = nodes[0].counters().value();
  EXPECT_EQ(counters.peers[0].state, PeerCounters::State::kSelf);
  EXPECT_EQ(counters.peers[1].state, PeerCounters::State::kLinked);
  EXPECT_EQ(counters.peers[2].state, PeerCounters::State::kLeft);
  EXPECT_GT(counters.peers[2].traffic.frames_received[2], 0u) << "what it sent is remembered";
  pollfd over{nodes[0].failure_descriptor().value(), POLLIN, 0};
  EXPECT_EQ(poll(&over, 1, 0), 0) << "a departure is no failure";
}

TEST(Leaving, WorksOnBothSidesAtOnce) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Node> nodes = world(4);
    std::vector<std::thread> threads;
    for (Node& node : nodes) threads.emplace_back([&node] { EXPECT_TRUE(node.close()); });
    for (std::thread& thread : threads) thread.join();
  }
}

// Ranks exit at different times after their last message, and nobody sees an error.
TEST(Leaving, DisturbsNobodyWhenRanksGoAtDifferentTimes) {
  constexpr int kRanks = 4;
  for (int round = 0; round < 25; ++round) {
    std::vector<Node> nodes = world(kRanks);
    std::atomic<int> failures = 0;
    std::vector<std::thread> threads;
    for (Node& node : nodes)
      threads.emplace_back([&node, &failures, round] {
        node.on_failure([&](const Error&) { ++failures; }).value();
        const std::vector<char> large(100'000, static_cast<char>(node.rank()));
        std::vector<char> got(large.size());
        for (int step = 1; step < kRanks; ++step) {  // the last message is large in some rounds, small in others
          const Rank to = (node.rank() + step) % kRanks;
          const Rank from = (node.rank() + kRanks - step) % kRanks;
          const std::size_t bytes = (round + step) % 2 == 0 ? large.size() : 8;
          const Result<Status> result = node.world().exchange(large.data(), bytes, to, 1, got.data(), got.size(), from, 1);
          EXPECT_TRUE(result) << result.error().to_string();
          EXPECT_EQ(got[0], static_cast<char>(from));
        }
        EXPECT_TRUE(node.close());
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
  }
}

TEST(Abort, EndsEverythingEverywhereWithTheReason) {
  std::vector<Node> nodes = world(3);
  char byte = 0;
  Operation here = nodes[0].world().start_recv(&byte, 1, 1, 1);
  Operation there = nodes[1].world().start_recv(&byte, 1, 0, 1);
  std::atomic<int> told = 0;
  for (Node& node : nodes) ASSERT_TRUE(node.on_failure([&](const Error&) { ++told; }));
  ASSERT_TRUE(nodes[2].abort("the loss is NaN"));
  for (Operation* operation : {&here, &there}) {
    const Result<Status> result = operation->wait(20s);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(result.error().sentence(), "rank 2 aborted: the loss is NaN");
    EXPECT_EQ(result.error().ranks()[0], 2);
  }
  for (Node& node : nodes) {
    pollfd over{node.failure_descriptor().value(), POLLIN, 0};
    EXPECT_EQ(poll(&over, 1, 20'000), 1);
    const Result<void> later = node.world().send("x", 1, node.rank(), 1);
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().sentence(), "rank 2 aborted: the loss is NaN");
  }
  EXPECT_EQ(told, 3);
  for (Node& node : nodes) EXPECT_TRUE(node.close());
}

TEST(Failure, IsToldAtOnceToWhoAsksLater) {
  std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].abort("enough"));
  pollfd over{nodes[0].failure_descriptor().value(), POLLIN, 0};
  ASSERT_EQ(poll(&over, 1, 20'000), 1);
  std::string said;
  ASSERT_TRUE(nodes[0].on_failure([&](const Error& error) { said = error.sentence(); }));
  EXPECT_EQ(said, "rank 1 aborted: enough");
}

// Calls on other threads while the node closes end with kCancelled, and never hang.
TEST(Close, MayRaceWithEveryOtherCall) {
  for (int round = 0; round < 50; ++round) {
    std::vector<Node> nodes = world(2);
    const Group group = nodes[0].world();
    std::atomic<int> started = 0;
    const auto until_closed = [&](auto&& call) {
      return std::thread([&, call] {
        ++started;
        for (ErrorCode code = ErrorCode::kTimeout; code != ErrorCode::kCancelled;) code = call();
      });
    };
    const auto code_of = [](const auto& result) { return result ? ErrorCode::kTimeout : result.error().code(); };
    std::vector<std::thread> threads;
    threads.push_back(until_closed([&] { return code_of(group.send("x", 1, 0, 1)); }));
    threads.push_back(until_closed([&] {
      char byte = 0;
      return code_of(group.recv(&byte, 1, 0, 1));
    }));
    threads.push_back(until_closed([&] {
      char byte = 0;
      Operation operation = group.start_recv(&byte, 1, 0, 2);
      return code_of(operation.wait(1ms));
    }));
    threads.push_back(until_closed([&] { return code_of(group.probe(1, 1)); }));
    threads.push_back(until_closed([&] { return code_of(nodes[0].ping(1)); }));
    threads.push_back(until_closed([&] { return code_of(nodes[0].counters()); }));
    while (started < 6) std::this_thread::yield();
    EXPECT_TRUE(nodes[0].close());
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Operation, GivesTheSameDescriptorTwiceAndOneAlsoAfterItsNodeIsClosed) {
  std::vector<Node> nodes = world(1);
  char byte = 0;
  Operation receive = nodes[0].world().start_recv(&byte, 1, 0, 1);
  Operation second = nodes[0].world().start_recv(&byte, 1, 0, 1);
  const int fd = receive.descriptor().value();
  EXPECT_EQ(receive.descriptor().value(), fd);
  ASSERT_TRUE(nodes[0].close());
  bool called = false;
  second.on_done([&](const Result<Status>& result) { called = !result; });
  EXPECT_TRUE(called);
  pollfd ready{second.descriptor().value(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 1);
}

TEST(Places, AreKnownToEveryNode) {
  std::vector<Node> nodes = world(3);
  for (const Node& node : nodes) {
    EXPECT_EQ(node.hosts(), 1);
    EXPECT_EQ(node.host_index(), 0);
    EXPECT_EQ(node.local_rank(), node.rank());
    EXPECT_EQ(node.local_size(), 3);
    EXPECT_EQ(node.world().world_rank(2), 2);
    EXPECT_EQ(node.world().world_rank(3), std::nullopt);
    EXPECT_EQ(node.world().rank_of(-1), std::nullopt);
  }
}

}  // namespace
}  // namespace nexar::runtime
