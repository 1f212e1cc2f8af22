// Collectives of ranks that share some hosts and not others: network namespaces as hosts, shared memory inside each, the network between.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "collective_calls.h"
#include "namespaces.h"
#include "nexar/node.h"
#include "processes.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

// Ranks on hosts of these sizes, one host after the other.
std::vector<LocalOptions::Place> places_on(const Namespaces& net, const std::vector<int>& sizes) {
  std::vector<LocalOptions::Place> places;
  for (std::size_t host = 0; host < sizes.size(); ++host)
    for (int i = 0; i < sizes[host]; ++i) places.push_back({net.path(static_cast<int>(host)), fmt::format("10.77.0.{}", host + 1)});
  return places;
}

Config quiet() {
  Config config;
  config.log = LogLevel::kOff;
  return config;
}

// What is wrong with the links of a node; nothing when those on its host share memory and the others do not.
std::string wrong_links(const Node& node) {
  std::string wrong;
  const NodeCounters counters = node.counters().value();
  for (const PeerCounters& peer : counters.peers) {
    if (peer.rank == node.rank()) continue;
    const std::string wanted = node.host_index(peer.rank) == node.host_index() ? "shm" : "quic";
    if (peer.transport != wanted) wrong += fmt::format("rank {} is reached by {}, not {}; ", peer.rank, peer.transport, wanted);
  }
  return wrong;
}

std::uint64_t bytes_to_other_hosts(const Node& node) {
  std::uint64_t bytes = 0;
  const NodeCounters counters = node.counters().value();
  for (const PeerCounters& peer : counters.peers) {
    if (node.host_index(peer.rank) == node.host_index()) continue;
    for (const std::uint64_t sent : peer.traffic.bytes_sent) bytes += sent;
    bytes += peer.bulk.tcp_bytes_sent;
  }
  return bytes;
}

void check_every_call(Node& node) {
  const Group world = node.world();
  for (const std::uint64_t count : {0, 1, 3, 1000, 70'001}) {
    reductions<float>(world, count, ReduceOp::kSum);
    reductions<bf16>(world, count, ReduceOp::kMax);
    movements<std::int64_t>(world, count);
    uneven_movements<std::uint8_t>(world, count);
  }
  byte_strings(world);
}

void check_two_levels(Node& node) {
  const Group world = node.world();
  const Rank n = world.size();
  for (const std::uint64_t count : {0, 5, 50'001, 2'500'001}) {
    std::vector<std::int32_t> data = values<std::int32_t>(world.rank(), 0, count);
    world.all_reduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kSum, {.algorithm = "two_level"}).value();
    expect_same(data, reduced<std::int32_t>(ReduceOp::kSum, 0, n, 0, count), "all_reduce by two_level");
    data = values<std::int32_t>(world.rank(), 0, count);
    world.broadcast(data.data(), count, DataType::kI32, n - 1, {.algorithm = "two_level"}).value();
    expect_same(data, values<std::int32_t>(n - 1, 0, count), "broadcast by two_level");
  }
  world.barrier({.algorithm = "two_level"}).value();
}

// Keeps the first: does not commute.
void check_order(Node& node) {
  const UserOp first =
      user_op<std::int32_t>("first", false, [](auto left, auto, auto out) { std::copy(left.begin(), left.end(), out.begin()); });
  for (const std::uint64_t count : {5, 300'001}) {
    std::vector<std::int32_t> mine(count, node.rank() + 7);
    node.world().all_reduce(mine.data(), mine.data(), count, DataType::kI32, first).value();
    EXPECT_EQ(mine, std::vector<std::int32_t>(count, 7));
    const auto refused = node.world().all_reduce(mine.data(), mine.data(), count, DataType::kI32, first, {.algorithm = "two_level"});
    EXPECT_FALSE(refused);
  }
}

// A group of some ranks has hosts of its own: without rank 0, and in another order.
void check_part(Node& node) {
  const std::optional<Group> part = node.world().split(node.rank() == 0 ? 1 : 0, -node.rank()).value();
  const Group& group = *part;
  reductions<float>(group, 40'001, ReduceOp::kSum);
  movements<double>(group, 501);
}

void expect_right(const std::vector<int>& sizes, const std::function<void(Node&)>& check) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create({.count = static_cast<int>(sizes.size())}).value();
  const std::vector<LocalOptions::Place> places = places_on(net, sizes);
  const auto body = [&](Node& node, const Wire& wire) {
    try {
      check(node);
      wire.say(testing::Test::HasFailure() ? "wrong" : "right");
    } catch (const std::exception& thrown) {
      wire.say(thrown.what());
    }
    wire.say(wrong_links(node));
    wire.hear();
  };
  const auto size = static_cast<int>(places.size());
  Processes ranks(size, quiet(), body, places);
  for (Rank rank = 0; rank < size; ++rank) {
    EXPECT_EQ(ranks.hear(rank), "right") << rank;
    EXPECT_EQ(ranks.hear(rank), "") << rank;
  }
  for (Rank rank = 0; rank < size; ++rank) ranks.say(rank, "go");
}

class OnHosts : public testing::TestWithParam<std::vector<int>> {};

TEST_P(OnHosts, EveryCallGivesWhatASerialProgramGives) { expect_right(GetParam(), check_every_call); }
TEST_P(OnHosts, PlansOfTwoLevelsAreRight) { expect_right(GetParam(), check_two_levels); }
TEST_P(OnHosts, OpsThatDoNotCommuteKeepRankOrder) { expect_right(GetParam(), check_order); }
TEST_P(OnHosts, PartsOfTheWorldAreRight) { expect_right(GetParam(), check_part); }

INSTANTIATE_TEST_SUITE_P(Layouts, OnHosts, testing::Values(std::vector{2, 2}, std::vector{1, 2, 1}),
                         [](const auto& layout) { return fmt::format("hosts_of_{}", fmt::join(layout.param, "_")); });

// The planner's own choice for a large buffer: with two hosts the buffer crosses a host's line once, and half of it for each of its ranks.
// A ring of four ranks would send one and a half, all of it from one rank of each host.
TEST(Hosts, EachRankCarriesItsSliceBetweenThem) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create().value();
  constexpr std::uint64_t kCount = 4 << 20;
  const auto body = [](Node& node, const Wire& wire) {
    std::vector<float> data(kCount, 1);
    node.world().barrier().value();
    const std::uint64_t before = bytes_to_other_hosts(node);
    node.world().all_reduce(data.data(), data.data(), kCount, DataType::kF32, ReduceOp::kSum).value();
    wire.say(fmt::format("{}", bytes_to_other_hosts(node) - before));
    wire.say(data == std::vector<float>(kCount, 4) ? "right" : "wrong");
    wire.hear();
  };
  Processes ranks(4, quiet(), body, places_on(net, {2, 2}));
  for (Rank rank = 0; rank < 4; ++rank) {
    const double sent = std::stod(ranks.hear(rank)) / (kCount * sizeof(float));
    EXPECT_GT(sent, 0.49) << rank;
    EXPECT_LT(sent, 0.60) << rank << ": headers, and what is asked and answered";
    EXPECT_EQ(ranks.hear(rank), "right") << rank;
  }
  for (Rank rank = 0; rank < 4; ++rank) ranks.say(rank, "go");
}

// Whether it shares memory with the lost one or not, every survivor names it.
TEST(Hosts, ARankThatIsKilledIsNamedByAllOthers) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create().value();
  Config config = quiet();
  config.heartbeat_interval = 100ms;
  config.heartbeat_timeout = 1s;
  const auto body = [](Node& node, const Wire& wire) {
    std::vector<float> data(1 << 20);
    Result<void> result;
    for (int i = 0; result; ++i) {
      result = node.world().all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kMax, {.algorithm = "two_level"});
      if (i == 5) wire.say("runs");
    }
    wire.say(fmt::format("{} {}", to_string(result.error().code()), fmt::join(result.error().ranks(), ",")));
    wire.hear();
  };
  Processes ranks(4, config, body, places_on(net, {2, 2}));
  for (Rank rank = 0; rank < 4; ++rank) ASSERT_EQ(ranks.hear(rank), "runs");
  ranks.signal(2, SIGKILL);
  for (const Rank rank : {0, 1, 3}) EXPECT_EQ(ranks.hear(rank), "peer_lost 2") << rank;
}

}  // namespace
}  // namespace nexar::test
