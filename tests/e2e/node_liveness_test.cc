// Ranks that die, stop, wake up and lose their network: what the others are told, and when.
#include <csignal>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include "command.h"
#include "namespaces.h"
#include "nexar/node.h"
#include "processes.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

// Over the network, unless NEXAR_TRANSPORT names something else.
Config quick() {
  Config config = Config::from_env().value();
  if (config.transport == Transport::kAuto) config.transport = Transport::kNet;
  config.heartbeat_interval = 100ms;
  config.heartbeat_timeout = 1s;
  config.log = LogLevel::kOff;
  return config;
}

// How an operation ended, on one line: `peer_lost 3`.
std::string verdict(const Result<Status>& result) {
  if (result) return "success";
  return fmt::format("{} {}", to_string(result.error().code()), fmt::join(result.error().ranks(), ","));
}

// A rank that says how a receive from its neighbour, who never sends, ends; then that of any later call; then it leaves.
void wait_for_a_verdict(Node& node, const Wire& wire) {
  char byte = 0;
  const Rank neighbour = (node.rank() + 1) % node.size();
  Operation receive = node.world().start_recv(&byte, 1, neighbour, 1);
  wire.say("waits");
  wire.say(verdict(receive.wait()));
  const Result<void> later = node.world().send("x", 1, neighbour, 1);
  wire.say(later ? "success" : verdict(later.error()));
  wire.hear();
  if (auto closed = node.close(); !closed) wire.say(closed.error().to_string());
}

base::Duration since(std::chrono::steady_clock::time_point start) { return std::chrono::steady_clock::now() - start; }

TEST(Processes, DieAndAreMissedByAllAlike) {
  constexpr int kRanks = 4;
  Processes ranks(kRanks, quick(), wait_for_a_verdict);
  for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(ranks.hear(rank), "waits");
  const auto start = std::chrono::steady_clock::now();
  ranks.signal(2, SIGKILL);
  for (const Rank rank : {0, 1, 3}) {
    EXPECT_EQ(ranks.hear(rank), "peer_lost 2") << rank;
    EXPECT_EQ(ranks.hear(rank), "peer_lost 2") << rank;
  }
  if (quick().transport == Transport::kNet) {
    EXPECT_GT(since(start), 800ms) << "a timeout, less an interval at most";
  }
  for (const Rank rank : {0, 1, 3}) ranks.say(rank, "leave");
  for (const Rank rank : {0, 1, 3}) {
    EXPECT_EQ(ranks.hear(rank), "") << "survivors leave without a word";
    EXPECT_EQ(ranks.wait(rank), 0);
  }
  EXPECT_TRUE(WIFSIGNALED(ranks.wait(2)));
}

TEST(Processes, DieTogetherAndAreNamedTogether) {
  constexpr int kRanks = 5;
  Processes ranks(kRanks, quick(), wait_for_a_verdict);
  for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(ranks.hear(rank), "waits");
  ranks.signal(1, SIGKILL);
  ranks.signal(4, SIGKILL);
  for (const Rank rank : {0, 2, 3}) EXPECT_EQ(ranks.hear(rank), "peer_lost 1,4") << rank;
}

TEST(Processes, ThatWereStoppedLearnThatTheyAreOut) {
  constexpr int kRanks = 3;
  Processes ranks(kRanks, quick(), wait_for_a_verdict);
  for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(ranks.hear(rank), "waits");
  ranks.signal(1, SIGSTOP);
  for (const Rank rank : {0, 2}) {
    EXPECT_EQ(ranks.hear(rank), "peer_lost 1") << rank;
    EXPECT_EQ(ranks.hear(rank), "peer_lost 1") << rank;
  }
  ranks.signal(1, SIGCONT);
  EXPECT_EQ(ranks.hear(1), "peer_lost 1") << "it names itself and accuses nobody";
  EXPECT_EQ(ranks.hear(1), "peer_lost 1");
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.say(rank, "leave");
  for (Rank rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.hear(rank), "");
    EXPECT_EQ(ranks.wait(rank), 0);
  }
}

// With a transfer under way the stopped rank's window is full, and a revocation cannot be sent to it: the end of the link says it.
TEST(Processes, ThatWereStoppedInTheMiddleOfATransferLearnThatTheyAreOut) {
  Processes ranks(2, quick(), [](Node& node, const Wire& wire) {
    std::vector<char> bytes(64 << 20);
    Result<Status> result = Status{};
    for (int i = 0; result; ++i) {
      if (i == 1) wire.say("flows");
      if (node.rank() == 0) {
        const Result<void> sent = node.world().send(bytes.data(), bytes.size(), 1, 1);
        if (!sent) result = sent.error();
      } else {
        result = node.world().recv(bytes.data(), bytes.size(), 0, 1);
      }
    }
    wire.say(verdict(result));
    wire.hear();
  });
  ASSERT_EQ(ranks.hear(0), "flows");
  ASSERT_EQ(ranks.hear(1), "flows");
  ranks.signal(1, SIGSTOP);
  EXPECT_EQ(ranks.hear(0), "peer_lost 1");
  ranks.signal(1, SIGCONT);
  EXPECT_EQ(ranks.hear(1), "peer_lost 1");
}

TEST(Processes, ThatWereStoppedBrieflyGoOn) {
  Processes ranks(2, quick(), [](Node& node, const Wire& wire) {
    char byte = 0;
    Operation receive = node.world().start_recv(&byte, 1, 1 - node.rank(), 1);
    wire.say("waits");
    wire.hear();
    const Result<void> sent = node.world().send("x", 1, 1 - node.rank(), 1);
    wire.say(verdict(sent ? receive.wait() : Result<Status>(sent.error())));
    wire.hear();
    if (auto closed = node.close(); !closed) wire.say(closed.error().to_string());
  });
  for (const Rank rank : {0, 1}) ASSERT_EQ(ranks.hear(rank), "waits");
  ranks.signal(1, SIGSTOP);
  const timespec pause{.tv_sec = 0, .tv_nsec = 400'000'000};  // the event is time itself: less than the timeout passes
  nanosleep(&pause, nullptr);
  ranks.signal(1, SIGCONT);
  for (const Rank rank : {0, 1}) ranks.say(rank, "go");
  for (const Rank rank : {0, 1}) EXPECT_EQ(ranks.hear(rank), "success");
  for (const Rank rank : {0, 1}) ranks.say(rank, "leave");
  for (const Rank rank : {0, 1}) EXPECT_EQ(ranks.hear(rank), "");
}

// All ranks stop at once, as on a machine that is suspended: whoever wakes first has no reason to accuse the others.
TEST(Processes, ThatWereAllStoppedAccuseNobody) {
  constexpr int kRanks = 3;
  Processes ranks(kRanks, quick(), [](Node& node, const Wire& wire) {
    wire.hear();
    char byte = 0;
    const Result<Status> result = node.world().exchange("x", 1, (node.rank() + 1) % kRanks, 1, &byte, 1, kAnySource, 1);
    wire.say(verdict(result));
    wire.hear();
    if (auto closed = node.close(); !closed) wire.say(closed.error().to_string());
  });
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.signal(rank, SIGSTOP);
  const timespec pause{.tv_sec = 2, .tv_nsec = 0};  // the event is time itself: twice the timeout
  nanosleep(&pause, nullptr);
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.signal(rank, SIGCONT);
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.say(rank, "go");
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.hear(rank), "success");
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.say(rank, "leave");
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.hear(rank), "");
}

// What the peer had acknowledged before its sender was killed is received, also when the receive comes after the verdict.
TEST(Processes, ThatAreKilledHaveTheirMessagesDelivered) {
  Processes ranks(2, quick(), [](Node& node, const Wire& wire) {
    char bytes[2] = {};
    if (node.rank() == 0) {
      if (node.world().send("a", 1, 1, 1) && node.world().send("b", 1, 1, 2) && node.ping(1)) wire.say("sent");  // the ping came after
      wire.hear();
      return;
    }
    Operation never = node.world().start_recv(&bytes[0], 1, 0, 3);
    wire.say(verdict(never.wait()));
    for (const Tag tag : {2, 1}) {
      const std::string ended = verdict(node.world().recv(&bytes[0], 1, 0, tag));
      wire.say(ended + bytes[0]);
    }
    wire.say(verdict(node.world().recv(&bytes[0], 1, 0, 1)));
  });
  ASSERT_EQ(ranks.hear(0), "sent");
  ranks.signal(0, SIGKILL);
  EXPECT_EQ(ranks.hear(1), "peer_lost 0");
  EXPECT_EQ(ranks.hear(1), "successb");
  EXPECT_EQ(ranks.hear(1), "successa");
  EXPECT_EQ(ranks.hear(1), "peer_lost 0");
}

TEST(Processes, ThatDieAfterTheirGoodbyeAreNotMissed) {
  Processes ranks(3, quick(), [](Node& node, const Wire& wire) {
    if (node.rank() == 0) {
      if (node.close()) wire.say("closed");
      wire.hear();
      return;
    }
    char byte = 0;
    wire.hear();
    Operation receive = node.world().start_recv(&byte, 1, 3 - node.rank(), 1);
    wire.say(verdict(receive.wait(2s)));  // two timeouts in which nothing is revoked
    wire.hear();
    if (auto closed = node.close(); !closed) wire.say(closed.error().to_string());
  });
  ASSERT_EQ(ranks.hear(0), "closed");
  ranks.signal(0, SIGKILL);
  for (const Rank rank : {1, 2}) ranks.say(rank, "go");
  for (const Rank rank : {1, 2}) EXPECT_EQ(ranks.hear(rank), "timeout ") << rank;
  for (const Rank rank : {1, 2}) ranks.say(rank, "leave");
  for (const Rank rank : {1, 2}) EXPECT_EQ(ranks.hear(rank), "") << rank;
}

TEST(Processes, ExitAtDifferentTimesAndNobodySeesAnError) {
  for (const int size : {2, 8, 16}) {
    Processes ranks(size, quick(), [](Node& node, const Wire& wire) {
      std::vector<char> bytes(node.rank() % 2 == 0 ? 100'000 : 10);
      std::vector<char> got(100'000);
      std::string said;
      for (int step = 1; step < node.size(); ++step) {
        const Rank to = (node.rank() + step) % node.size();
        const Rank from = (node.rank() + node.size() - step) % node.size();
        const Result<Status> result = node.world().exchange(bytes.data(), bytes.size(), to, 1, got.data(), got.size(), from, 1);
        if (!result) said += result.error().to_string();
      }
      if (auto closed = node.close(); !closed) said += closed.error().to_string();
      wire.say(said.empty() ? "fine" : said);
    });
    for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(ranks.hear(rank), "fine") << rank << " of " << size;
    for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(ranks.wait(rank), 0);
  }
}

class NodeLivenessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  }
  void make(int count) {
    network.emplace(Namespaces::create({.count = count}).value());
    LocalOptions local;
    local.config = quick();
    for (int i = 0; i < count; ++i) local.places.push_back({network->path(i), network->v4(i).host()});
    nodes = Node::local(count, local).value();
  }

  std::optional<Namespaces> network;
  std::vector<Node> nodes;
};

TEST_F(NodeLivenessTest, ANodeWithoutNetworkIsLostForTheOthersAndTheyForIt) {
  make(4);
  EXPECT_EQ(nodes[3].hosts(), 4);
  EXPECT_EQ(nodes[3].host_index(), 3);
  EXPECT_EQ(nodes[3].local_size(), 1);
  char bytes[4] = {};
  std::vector<Operation> receives;
  for (Rank rank = 0; rank < 4; ++rank)
    receives.push_back(nodes[static_cast<std::size_t>(rank)].world().start_recv(&bytes[rank], 1, (rank + 1) % 4, 1));
  ASSERT_TRUE(network->link_down(3));
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(verdict(receives[rank].wait(20s)), "peer_lost 3") << rank;
  EXPECT_EQ(verdict(receives[3].wait(20s)), "peer_lost 0,1,2");
}

// Two nodes lose one another and nobody else: each of them, and everybody who hears of it, ends with one of the two.
TEST_F(NodeLivenessTest, WhenOneLinkOnlyIsDownEverybodyNamesOneOfItsEnds) {
  make(4);
  char bytes[4] = {};
  std::vector<Operation> receives;
  for (Rank rank = 0; rank < 4; ++rank)
    receives.push_back(nodes[static_cast<std::size_t>(rank)].world().start_recv(&bytes[rank], 1, (rank + 1) % 4, 1));
  for (const auto& [here, there] : {std::pair(0, 1), std::pair(1, 0)})  // to an interface that does not exist
    ASSERT_TRUE(run_command({"ip", "-n", network->name(here), "neigh", "replace", network->v4(there).host(), "lladdr", "02:00:00:00:00:99",
                             "dev", "eth0", "nud", "permanent"}));
  for (Operation& receive : receives) {
    const Result<Status> result = receive.wait(20s);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kPeerLost);
    ASSERT_FALSE(result.error().ranks().empty());
    for (const Rank rank : result.error().ranks()) EXPECT_TRUE(rank == 0 || rank == 1) << result.error().to_string();
  }
}

TEST_F(NodeLivenessTest, NobodyIsLostWhileOnePacketInFiveIsAndAFewSecondsPass) {
  make(3);
  ASSERT_TRUE(network->set_loss(20));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; since(start) < 3s; ++i) {
    Operation receive = nodes[1].world().start_recv(&i, sizeof i, 0, 1);
    ASSERT_TRUE(nodes[0].world().send(&i, sizeof i, 1, 1));
    ASSERT_EQ(verdict(receive.wait(20s)), "success");
  }
  ASSERT_TRUE(network->set_loss(0));
}

TEST_F(NodeLivenessTest, LeavingOverALossyNetworkIsNoLoss) {
  for (int round = 0; round < 10; ++round) {
    make(3);
    ASSERT_TRUE(network->set_loss(10));
    char byte = 0;
    Operation receive = nodes[0].world().start_recv(&byte, 1, 1, 1);
    ASSERT_TRUE(nodes[2].close());
    EXPECT_EQ(verdict(nodes[0].world().recv(&byte, 1, 2, 1)), "peer_lost 2");
    ASSERT_TRUE(nodes[1].world().send("x", 1, 0, 1));
    EXPECT_EQ(verdict(receive.wait(20s)), "success");
    ASSERT_TRUE(network->set_loss(0));
    nodes.clear();
  }
}

}  // namespace
}  // namespace nexar::test
