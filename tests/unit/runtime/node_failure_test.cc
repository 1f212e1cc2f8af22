// Losses, as the survivors see them.
#include <algorithm>
#include <array>
#include <thread>

#include <poll.h>

#include "runtime/world.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;
using test::Rogue;
using test::World;
using wire::FrameType;

// Two nodes, 1 and 2, and a member 0 in the test's hand, which has called both and answers no pings.
class FailureTest : public testing::Test {
 protected:
  explicit FailureTest(std::chrono::nanoseconds timeout = 10min) : world(3) {
    config.heartbeat_interval = std::min<std::chrono::nanoseconds>(timeout / 10, 1s);
    config.heartbeat_timeout = timeout;
    for (const Rank rank : {1, 2}) world.open(rank, config, [this](const LogRecord& record) { note(record); });
    for (const Rank rank : {1, 2}) {
      rogues.push_back(std::make_unique<Rogue>(world, 0));
      EXPECT_TRUE(world.cores[static_cast<std::size_t>(rank)]->form(rank, world.view));
    }
    for (const Rank rank : {1, 2}) greet(rank);
    for (const Rank rank : {1, 2}) {
      nodes.emplace_back(world.cores[static_cast<std::size_t>(rank)]);
      EXPECT_TRUE(world.cores[static_cast<std::size_t>(rank)]->wait_ready(20s));
    }
  }

  // A node that closes waits for those who still have a link.
  void TearDown() override {
    for (const auto& one : rogues) {
      if (one->link != nullptr) one->link->abort("the test is over");
      EXPECT_TRUE(one->run_until([&] { return one->end.has_value(); }));
    }
  }

  void note(const LogRecord& record) {
    const std::lock_guard lock(mutex);
    logged.push_back(to_string(record));
  }
  int count_logged(std::string_view text) {
    const std::lock_guard lock(mutex);
    return static_cast<int>(
        std::count_if(logged.begin(), logged.end(), [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }

  Rogue& rogue(Rank rank) { return *rogues[static_cast<std::size_t>(rank - 1)]; }
  void greet(Rank rank) {
    Rogue& one = rogue(rank);
    one.call(rank);
    EXPECT_TRUE(one.run_until([&] { return one.ready; }));
    wire::Hello hello = one.hello();
    hello.config_digest = config.digest();
    one.say(hello);
    EXPECT_TRUE(one.run_until([&] { return one.has(FrameType::kHello) || one.end; }));
    one.say(wire::Ping{});
    EXPECT_TRUE(one.run_until([&] { return one.has(FrameType::kPong); }));
  }

  // Every rank ends with kPeerLost and these ranks.
  void expect_lost(Operation& operation, const std::vector<Rank>& ranks) {
    const Result<Status> result = operation.wait(20s);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kPeerLost) << result.error().to_string();
    EXPECT_EQ(std::vector<Rank>(result.error().ranks().begin(), result.error().ranks().end()), ranks) << result.error().to_string();
  }

  Config config;
  std::mutex mutex;
  std::vector<std::string> logged;
  World world;
  std::vector<std::unique_ptr<Rogue>> rogues;
  std::vector<Node> nodes;  // ranks 1 and 2
};

// The same, and its silence is noticed.
class SilenceTest : public FailureTest {
 protected:
  SilenceTest() : FailureTest(1s) {}
};

TEST_F(SilenceTest, SilenceEndsEveryOperationOnEverySurvivor) {
  char byte = 0;
  const std::vector<char> large(1 << 20);
  Operation survivors_receive = nodes[0].world().start_recv(&byte, 1, 2, 5);
  Operation survivors_send = nodes[1].world().start_send(large.data(), large.size(), 1, 6);
  Operation to_self = nodes[1].world().start_send("x", 1, 2, 7);
  Operation from_any = nodes[1].world().start_recv(&byte, 1, kAnySource, 5);
  for (Operation* operation : {&survivors_receive, &survivors_send, &to_self, &from_any}) expect_lost(*operation, {0});
  for (Node& node : nodes) {
    pollfd over{node.failure_descriptor().value(), POLLIN, 0};
    EXPECT_EQ(poll(&over, 1, 20'000), 1);
    const Result<void> later = node.world().send("x", 1, node.rank(), 1);
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().code(), ErrorCode::kPeerLost);
    EXPECT_EQ(node.counters().value().peers[0].state, PeerCounters::State::kLost);
    EXPECT_FALSE(node.world().probe(kAnySource, kAnyTag));
  }
  EXPECT_EQ(count_logged("a rank is lost"), 2) << "once on each node";
  for (Node& node : nodes) EXPECT_TRUE(node.close()) << "survivors part in peace";
}

TEST_F(SilenceTest, TheLostOneIsToldThatItIs) {
  char byte = 0;
  Operation receive = nodes[0].world().start_recv(&byte, 1, 2, 5);
  expect_lost(receive, {0});
  ASSERT_TRUE(rogue(1).run_until([&] { return rogue(1).end.has_value(); }));
  ASSERT_TRUE(rogue(1).has(FrameType::kRevoke));
  EXPECT_EQ(rogue(1).last<wire::Revoke>().lost, std::vector<NodeId>{world.view.member(0).node});
  EXPECT_EQ(rogue(1).end->kind, transport::LinkEnd::Kind::kExpelled);
}

TEST_F(SilenceTest, WhatHadArrivedIsDeliveredFirst) {
  const std::array<std::byte, 3> payload{std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(rogue(1).link->send(wire::header_of(wire::EagerMessage{.key = 77}, {.group = kWorldGroup, .epoch = 1}, 3), payload));
  ASSERT_TRUE(rogue(1).link->send(wire::header_of(wire::EagerMessage{.key = 78}, {.group = kWorldGroup, .epoch = 1}, 3), payload));
  rogue(1).endpoint->flush();
  char byte = 0;
  Operation receive = nodes[0].world().start_recv(&byte, 1, 0, 5);
  expect_lost(receive, {0});
  std::array<std::byte, 3> got{};
  ASSERT_TRUE(nodes[0].world().recv(got.data(), 3, 0, 78));
  EXPECT_EQ(got, payload);
  EXPECT_TRUE(nodes[0].world().probe(kAnySource, 77).value());
  ASSERT_TRUE(nodes[0].world().recv(got.data(), 3, kAnySource, 77));
  const Result<Status> none = nodes[0].world().recv(got.data(), 3, 0, 77);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kPeerLost);
}

TEST_F(FailureTest, ALinkThatEndsWithoutGoodbyeIsALossAtOnce) {
  char byte = 0;
  Operation receive = nodes[1].world().start_recv(&byte, 1, 1, 5);
  rogue(1).link->abort("I fall");
  rogue(1).run_until([&] { return rogue(1).end.has_value(); });
  expect_lost(receive, {0});
  EXPECT_NE(nodes[0].world().send("x", 1, 2, 1).error().sentence().find("I fall"), std::string::npos);
  EXPECT_NE(nodes[1].world().send("x", 1, 1, 1).error().sentence().find("rank 1 says so"), std::string::npos);
}

TEST_F(FailureTest, AnImpossibleFrameIsALossWithAReasonAndIsCounted) {
  char byte = 0;
  Operation receive = nodes[1].world().start_recv(&byte, 1, 1, 5);
  rogue(1).say(rogue(1).hello());
  ASSERT_TRUE(rogue(1).run_until([&] { return rogue(1).end.has_value(); }));
  EXPECT_NE(rogue(1).end->error.sentence().find("rank 0 sent a hello frame, which nothing here takes"), std::string::npos)
      << rogue(1).end->error.sentence();
  expect_lost(receive, {0});
  EXPECT_EQ(nodes[0].counters().value().protocol_errors, 1u);
  EXPECT_EQ(nodes[1].counters().value().protocol_errors, 0u);
}

TEST_F(FailureTest, FramesOfAnotherEpochAreDrainedAndCounted) {
  rogue(1).say(wire::Ping{.nonce = 1}, 9);
  const std::array<std::byte, 1> payload{};
  ASSERT_TRUE(rogue(1).link->send(wire::header_of(wire::EagerMessage{.key = 77}, {.group = kWorldGroup, .epoch = 9}, 1), payload));
  rogue(1).say(wire::Ping{.nonce = 2});
  const auto answered = [&] { return rogue(1).has(FrameType::kPong) && rogue(1).last<wire::Pong>().nonce == 2; };
  ASSERT_TRUE(rogue(1).run_until(answered));
  ASSERT_TRUE(rogue(1).run_until([&] { return nodes[0].counters().value().frames_of_other_epochs == 2; }));
  EXPECT_EQ(nodes[0].world().probe(0, 77).value(), std::nullopt);
}

TEST_F(SilenceTest, GoodbyeIsNoLoss) {
  for (const Rank rank : {1, 2}) {
    rogue(rank).link->close("off I go");
    ASSERT_TRUE(rogue(rank).run_until([&] { return rogue(rank).end.has_value(); }));
  }
  // Two heartbeat timeouts of it being gone: nobody misses it.
  const auto end = std::chrono::steady_clock::now() + 2 * config.heartbeat_timeout;
  while (std::chrono::steady_clock::now() < end) {
    char byte = 0;
    ASSERT_TRUE(nodes[0].world().send("x", 1, 2, 1));
    ASSERT_TRUE(nodes[1].world().recv(&byte, 1, 1, 1));
  }
  EXPECT_EQ(nodes[0].counters().value().peers[0].state, PeerCounters::State::kLeft);
}

TEST_F(FailureTest, ARevocationThatNamesThisRankEndsItWithItself) {
  char byte = 0;
  Operation receive = nodes[0].world().start_recv(&byte, 1, 2, 5);
  rogue(1).say(wire::Revoke{.lost = {world.view.member(1).node}});
  rogue(1).run_until([&] { return rogue(1).has(FrameType::kRevoke) || rogue(1).end; });
  expect_lost(receive, {1});
  EXPECT_NE(nodes[0].world().send("x", 1, 2, 1).error().sentence().find("declared lost by rank 0"), std::string::npos);
}

TEST_F(FailureTest, ARevocationTravelsToThoseWhomItsSenderDidNotReach) {
  char byte = 0;
  Operation receive = nodes[1].world().start_recv(&byte, 1, 1, 5);
  rogue(1).say(wire::Revoke{.lost = {world.view.member(0).node}});
  rogue(1).run_until([&] { return rogue(1).end.has_value(); });
  expect_lost(receive, {0});
}

}  // namespace
}  // namespace nexar::runtime
