// Bulk between hosts: by TCP where it passes, by QUIC where it does not, and exact when that changes in the middle.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "long_cable.h"
#include "namespaces.h"
#include "nexar/node.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class NodeLanesTest : public testing::Test {
 public:
  void SetUp() override {
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
    network.emplace(Namespaces::create({.mtu = 1500}).value());
  }

  Result<void> start(const Config& config = {}) { return start(config, {network->v4(0).host(), network->v4(1).host()}); }
  Result<void> start(const Config& config, const std::array<std::string, 2>& addresses) {
    LocalOptions local;
    local.config = config;
    local.log = [this](const LogRecord& record) {
      const std::lock_guard lock(log_mutex);  // two nodes speak
      log += to_string(record) + "\n";
    };
    for (int i = 0; i < 2; ++i) local.places.push_back({network->path(i), addresses[static_cast<std::size_t>(i)]});
    Result<std::vector<Node>> made = Node::local(2, local);
    if (!made) return std::move(made).error();
    nodes = *std::move(made);
    return {};
  }

  BulkCounters bulk(std::size_t rank = 0) const { return nodes[rank].counters().value().peers[1 - rank].bulk; }

  // Both ways at once, every word compared.
  void exchange(std::size_t bytes, std::uint64_t seed, const std::function<void()>& meanwhile = {}) {
    std::vector<std::uint64_t> out[2];
    std::vector<std::uint64_t> in[2];
    for (std::size_t rank = 0; rank < 2; ++rank) {
      in[rank].resize(bytes / 8);
      for (std::size_t i = 0; i < bytes / 8; ++i) out[rank].push_back((seed + rank) * 0x9E3779B97F4A7C15u + i);
    }
    std::optional<Result<Status>> results[2];
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        const auto peer = static_cast<Rank>(1 - rank);
        results[rank] = nodes[rank].world().exchange(out[rank].data(), bytes, peer, 1, in[rank].data(), bytes, peer, 1);
      });
    if (meanwhile) meanwhile();
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(*results[rank]) << results[rank]->error().to_string();
      ASSERT_TRUE(in[rank] == out[1 - rank]);
    }
  }

  // Until the lanes are there; transfers that go on meanwhile want them.
  void open_lanes() {
    exchange(1 << 20, 1);
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while ((bulk(0).tcp_lanes == 0 || bulk(1).tcp_lanes == 0) && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(bulk(0).transport, Transport::kTcp) << bulk(0).reason;
    ASSERT_EQ(bulk(1).transport, Transport::kTcp) << bulk(1).reason;
  }

  // Sums of both ranks' words, in place, every one compared: one that came twice or not at all has a wrong sum.
  void reduce(std::size_t bytes, std::uint64_t seed, const std::function<void()>& meanwhile = {}) {
    std::vector<std::uint64_t> values[2];
    for (std::size_t rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < bytes / 8; ++i) values[rank].push_back((seed + rank) * 0x9E3779B97F4A7C15u + i * (rank + 1));
    std::optional<Result<void>> results[2];
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        results[rank] = nodes[rank].world().all_reduce(values[rank].data(), values[rank].data(), bytes / 8, DataType::kU64, ReduceOp::kSum);
      });
    if (meanwhile) meanwhile();
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(*results[rank]) << results[rank]->error().to_string();
      for (std::size_t i = 0; i < bytes / 8; ++i) ASSERT_EQ(values[rank][i], (2 * seed + 1) * 0x9E3779B97F4A7C15u + 3 * i) << i;
    }
  }

  using Traffic = void (NodeLanesTest::*)(std::size_t bytes, std::uint64_t seed, const std::function<void()>& meanwhile);

  // Begins something large on lanes, stops TCP when a part of it has passed, and expects the whole.
  void stop_tcp_in_the_middle(Blocking how, const Config& config = {}, Traffic traffic = &NodeLanesTest::exchange) {
    ASSERT_TRUE(network->set_rate(1'000'000'000, 128 << 10, 50ms));  // so that there is a middle
    ASSERT_TRUE(start(config));
    open_lanes();
    const std::uint64_t before = bulk().tcp_bytes_received;
    (this->*traffic)(48 << 20, 2, [&] {
      const auto limit = std::chrono::steady_clock::now() + 60s;
      while (bulk().tcp_bytes_received < before + (8u << 20) && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
      ASSERT_TRUE(network->block(Protocol::kTcp, how));
    });
    const BulkCounters after = bulk();
    EXPECT_EQ(after.transport, Transport::kQuic);
    EXPECT_GE(after.tcp_lanes_lost, 1u);
    EXPECT_FALSE(after.reason.empty());
    EXPECT_LT(after.tcp_bytes_received - before, 48u << 20) << "the rest went by QUIC";
    exchange(4 << 20, 3);
  }

  std::optional<Namespaces> network;
  std::mutex log_mutex;
  std::string log;
  std::vector<Node> nodes;
};

TEST_F(NodeLanesTest, LargeMessagesTakeTcpWithoutBeingAsked) {
  ASSERT_TRUE(start());
  open_lanes();
  const std::uint64_t before = bulk().tcp_bytes_sent;
  exchange(16 << 20, 2);
  EXPECT_GE(bulk().tcp_bytes_sent - before, 16u << 20);
  EXPECT_EQ(bulk().reason, "");
}

TEST_F(NodeLanesTest, QuicAloneWhenThatIsAskedFor) {
  Config config;
  config.transport = Transport::kQuic;
  ASSERT_TRUE(start(config));
  exchange(4 << 20, 1);
  EXPECT_EQ(bulk().transport, Transport::kQuic);
  EXPECT_EQ(bulk().tcp_bytes_sent, 0u);
  EXPECT_EQ(bulk().reason, "TCP lanes are not wanted here");
}

TEST_F(NodeLanesTest, PlainTextWhenThatIsAskedForAndItIsSaid) {
  Config config;
  config.encrypt_bulk = false;
  ASSERT_TRUE(start(config));
  EXPECT_NE(log.find("plain text"), std::string::npos) << log;
  open_lanes();
  exchange(16 << 20, 2);
  EXPECT_GE(bulk().tcp_bytes_sent, 16u << 20);
}

TEST_F(NodeLanesTest, TcpThatIsSwallowedFromTheStartLeavesQuic) {
  ASSERT_TRUE(network->block(Protocol::kTcp, Blocking::kDropped));
  ASSERT_TRUE(start());
  exchange(4 << 20, 1);
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (bulk(0).reason.find("in time") == std::string::npos && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(10ms);
  EXPECT_NE(bulk(0).reason.find("could not connect in time"), std::string::npos) << bulk(0).reason;
  EXPECT_EQ(bulk(0).transport, Transport::kQuic);
  exchange(4 << 20, 2);
}

TEST_F(NodeLanesTest, TcpThatIsRejectedFromTheStartLeavesQuic) {
  ASSERT_TRUE(network->block(Protocol::kTcp, Blocking::kRejected));
  ASSERT_TRUE(start());
  exchange(4 << 20, 1);
  exchange(4 << 20, 2);
  EXPECT_EQ(bulk(0).transport, Transport::kQuic);
  EXPECT_NE(bulk(0).reason.find("refused"), std::string::npos) << bulk(0).reason;
}

TEST_F(NodeLanesTest, TcpThatIsSwallowedInTheMiddleCostsTimeAndNoByte) { stop_tcp_in_the_middle(Blocking::kDropped); }
TEST_F(NodeLanesTest, TcpThatIsRejectedInTheMiddleCostsNoByte) { stop_tcp_in_the_middle(Blocking::kRejected); }

TEST_F(NodeLanesTest, AReductionOnLanesThatAreRejectedInTheMiddleIsExact) {
  stop_tcp_in_the_middle(Blocking::kRejected, {}, &NodeLanesTest::reduce);
}

TEST_F(NodeLanesTest, FourCarryAtOnceWhereThatIsAskedFor) {
  Config config;
  config.tcp_lanes = 4;
  config.transport = Transport::kTcp;  // opened before anything is sent
  ASSERT_TRUE(start(config));
  EXPECT_EQ(bulk(0).tcp_lanes, 4u);
  EXPECT_EQ(bulk(1).tcp_lanes, 4u);
  exchange(16 << 20, 1);
  reduce(16 << 20, 2);
}

TEST_F(NodeLanesTest, AReductionOnFourLanesThatAreRejectedInTheMiddleIsExact) {
  Config config;
  config.tcp_lanes = 4;
  stop_tcp_in_the_middle(Blocking::kRejected, config, &NodeLanesTest::reduce);
}

// A host whose operator has chosen BBR keeps it for what is far away.
TEST_F(NodeLanesTest, TheHostsBbrIsKeptOnALongWay) {
  if (const auto why = LongCable::missing()) GTEST_SKIP() << *why;
  if (!network->set_congestion_control("bbr")) GTEST_SKIP() << "needs a kernel with BBR";
  const LongCable cable(*network);
  Config config;
  config.log = LogLevel::kDebug;
  for (const bool is_long : {true, false}) {
    const auto at = [&](int i) { return (is_long ? LongCable::address(i) : network->v4(i)).host(); };
    ASSERT_TRUE(start(config, {at(0), at(1)}));
    open_lanes();
    exchange(1 << 20, 2);
    nodes.clear();
    EXPECT_EQ(log.find("congestion=bbr") != std::string::npos, is_long) << log;
    log.clear();
  }
}

TEST_F(NodeLanesTest, PlainTextThatIsSwallowedInTheMiddleIsWhole) {
  Config config;
  config.encrypt_bulk = false;
  stop_tcp_in_the_middle(Blocking::kDropped, config);
}

TEST_F(NodeLanesTest, AReductionOfPlainTextThatIsRejectedInTheMiddleIsExact) {
  Config config;
  config.encrypt_bulk = false;
  stop_tcp_in_the_middle(Blocking::kRejected, config, &NodeLanesTest::reduce);
}

// One host has a firewall that lets nobody in. Whichever it is, the other one listens.
TEST_F(NodeLanesTest, TcpThatPassesOneWayOnlyIsUsed) {
  for (const int walled : {0, 1}) {
    ASSERT_TRUE(network->unblock(Protocol::kTcpConnections));
    ASSERT_TRUE(network->block(walled, Protocol::kTcpConnections, Blocking::kRejected));
    ASSERT_TRUE(start());
    open_lanes();
    const std::uint64_t before = bulk().tcp_bytes_sent;
    exchange(16 << 20, 2);
    EXPECT_GE(bulk().tcp_bytes_sent - before, 16u << 20);
    EXPECT_EQ(bulk(0).reason + bulk(1).reason, "");
    nodes.clear();
  }
}

TEST_F(NodeLanesTest, ForcedTcpThatIsRejectedOneWayComesTheOther) {
  ASSERT_TRUE(network->block(1, Protocol::kTcpConnections, Blocking::kRejected));
  Config config;
  config.transport = Transport::kTcp;
  const Result<void> started = start(config);
  ASSERT_TRUE(started) << started.error().to_string();
  exchange(1 << 20, 1);
  EXPECT_GE(bulk().tcp_bytes_sent, 1u << 20);
}

// A gigabyte by lanes at once, and pings beside it. The bar that counts is measured elsewhere, on a quiet machine: here, where everything
// may wait for a core, a ping is only not to wait for what stands in front of it in some buffer.
TEST_F(NodeLanesTest, AGigabyteOnLanesLeavesThePingsAlone) {
  ASSERT_TRUE(start());
  open_lanes();
  std::vector<std::byte> out(32 << 20);
  std::vector<std::byte> in(out.size());
  const std::size_t pieces = kSanitized ? 4 : 32;
  const std::vector<ConstRegion> from(pieces, ConstRegion{out.data(), out.size()});
  const std::vector<Region> into(pieces, Region{in.data(), in.size()});
  const auto median_ping = [&](const std::function<bool()>& is_over) {
    std::vector<std::chrono::nanoseconds> times;
    while (!is_over() || times.size() < 20) {
      const Result<std::chrono::nanoseconds> time = nodes[0].ping(1);
      EXPECT_TRUE(time) << time.error().to_string();
      if (!time) return std::chrono::nanoseconds();
      times.push_back(*time);
      if (times.size() >= 100'000) break;
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  };
  int idle_pings = 0;
  const std::chrono::nanoseconds idle = median_ping([&] { return ++idle_pings > 500; });
  const std::uint64_t before = bulk().tcp_bytes_sent;
  Operation receive = nodes[1].world().start_recv(into, 0, 7);
  std::optional<Result<Status>> received;
  std::atomic<bool> is_over = false;
  std::thread receiver([&] {
    received = receive.wait();
    is_over = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  Operation send = nodes[0].world().start_send(from, 1, 7);
  const std::chrono::nanoseconds loaded = median_ping([&] { return is_over.load(); });
  const std::chrono::nanoseconds whole = std::chrono::steady_clock::now() - begin;
  receiver.join();
  ASSERT_TRUE(send.wait());
  ASSERT_TRUE(*received);
  EXPECT_EQ((*received)->bytes, pieces * out.size());
  EXPECT_GE(bulk().tcp_bytes_sent - before, pieces * out.size());
  EXPECT_LE(loaded, std::max(100 * idle, whole / 20)) << idle.count() << " ns idle, and beside a transfer of " << whole.count() << " ns";
  RecordProperty("idle_ns", std::to_string(idle.count()));
  RecordProperty("loaded_ns", std::to_string(loaded.count()));
}

TEST_F(NodeLanesTest, ForcedTcpThatCannotBeHadIsUnsupportedAndNamesTheRank) {
  ASSERT_TRUE(network->block(Protocol::kTcp, Blocking::kRejected));
  Config config;
  config.transport = Transport::kTcp;
  const Result<void> started = start(config);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::kUnsupported) << started.error().to_string();
  EXPECT_EQ(started.error().ranks().size(), 1u) << started.error().to_string();
  EXPECT_NE(started.error().sentence().find("no TCP lane to rank"), std::string::npos) << started.error().to_string();
}

TEST_F(NodeLanesTest, ForcedTcpCarriesTheFirstByte) {
  Config config;
  config.transport = Transport::kTcp;
  ASSERT_TRUE(start(config));
  exchange(1 << 20, 1);
  EXPECT_GE(bulk().tcp_bytes_sent, 1u << 20);
  EXPECT_EQ(nodes[0].counters().value().peers[1].traffic.bytes_sent[3], 0u);
}

TEST_F(NodeLanesTest, OnePercentLost) {
  network.reset();
  network.emplace(Namespaces::create({.mtu = 1500, .offload = false}).value());
  ASSERT_TRUE(network->set_loss(1));
  Config config;
  config.transport = Transport::kTcp;
  ASSERT_TRUE(start(config));
  exchange(4 << 20, 1);
  EXPECT_GE(bulk().tcp_bytes_sent, 4u << 20);
}

}  // namespace
}  // namespace nexar::test
