// TCP lanes between network namespaces: losses, firewalls, cuts.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "io/epoll_loop.h"
#include "io/network_namespace.h"
#include "long_cable.h"
#include "namespaces.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/listener.h"
#include "wire/frame.h"
#include "wire/transfer_messages.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;
using transport::BulkSource;
using transport::LinkEnd;
using transport::Sink;
using transport::tcp::Lane;
using transport::tcp::LaneKeys;
using transport::tcp::Listener;
using transport::tcp::Side;

// One end: sends a message of random bytes, and compares what it receives with the same.
class End : public transport::tcp::LaneHandler, public transport::tcp::LaneAcceptor, public BulkSource, public Sink {
 public:
  explicit End(const std::vector<std::byte>& message) : message_(message), received(message.size()) {}

  void on_ready() override {
    ready = true;
    lane->set_bulk_source(this);
  }
  Result<Sink*> on_frame(const wire::Header& header) override {
    if (header.key != got) return Error(ErrorCode::kRefused, "a frame is missing");
    return static_cast<Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header&) override { return {}; }
  void on_end(const LinkEnd& what) override { end.emplace(what); }
  void on_lane(const wire::LaneTicket&, std::unique_ptr<Lane> accepted) override {
    lane = std::move(accepted);
    lane->start(*this);
  }
  std::optional<Frame> next(std::size_t bytes_max) override {
    if (sent == message_.size()) return std::nullopt;
    const std::size_t size = std::min<std::size_t>(bytes_max, message_.size() - sent);
    const wire::Bulk bulk{.transfer = 1, .stripe = 0, .generation = 0, .offset = sent};
    const base::ByteView payload = base::ByteView(message_).subspan(sent, size);
    sent += size;
    return Frame{wire::header_of(bulk, {1, 1}, static_cast<std::uint32_t>(size)), payload};
  }
  bool has_next() const override { return sent < message_.size(); }
  void take(base::ByteView) override { ADD_FAILURE() << "it names a place"; }
  std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) override {
    regions[0] = base::ByteSpan(received).subspan(got, bytes);
    return 1;
  }
  void placed(std::size_t bytes) override { got += bytes; }

  bool complete() const { return got == received.size(); }

 private:
  const std::vector<std::byte>& message_;

 public:
  bool ready = false;
  std::size_t sent = 0;
  std::vector<std::byte> received;
  std::size_t got = 0;
  std::optional<LinkEnd> end;
  std::unique_ptr<Lane> lane;
};

class LaneNetworkTest : public testing::Test {
 protected:
  LaneNetworkTest() : loop(io::EpollLoop::open().value()), message(16u << 20) {
    std::mt19937_64 random(7);
    for (std::byte& byte : message) byte = static_cast<std::byte>(random());
  }

  void SetUp() override {
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
    net.emplace(Namespaces::create().value());
  }

  static LaneKeys keys(Side side) {
    const std::array<std::byte, transport::tcp::kMaterialBytes> material{};
    return LaneKeys::derive(material, {.name = {.lane = 0, .generation = 1}}, side);
  }

  // Namespace 0 listens, namespace 1 connects.
  void open(End& server, End& client, const transport::tcp::LaneOptions& options = {}) { open(net->v4(0), server, client, options); }
  void open(const io::Address& at, End& server, End& client, const transport::tcp::LaneOptions& options = {}) {
    const auto listening = [&]() -> Result<void> {
      listener = Listener::open(*loop, at, options).value();
      return listener->expect({}, keys(Side::kListens), server);
    };
    ASSERT_TRUE(io::in_network_namespace(net->path(0), listening));
    const auto connecting = [&]() -> Result<void> {
      client.lane = Lane::connect(*loop, listener->local_address(), {}, keys(Side::kConnects), client, options).value();
      return {};
    };
    ASSERT_TRUE(io::in_network_namespace(net->path(1), connecting));
  }

  void run_until(const std::function<bool()>& done) {
    const base::Time deadline = loop->refresh() + 1min;
    while (!done() && loop->refresh() < deadline) loop->turn(10ms);
  }

  std::unique_ptr<io::EpollLoop> loop;
  std::vector<std::byte> message;
  std::optional<Namespaces> net;
  std::unique_ptr<Listener> listener;
};

TEST_F(LaneNetworkTest, CarriesBothWaysIntactWhenOnePacketOfAHundredIsLost) {
  ASSERT_TRUE(net->set_loss(1));
  End server(message);
  End client(message);
  open(server, client);
  run_until([&] { return (server.complete() && client.complete()) || server.end || client.end; });
  EXPECT_TRUE(server.received == message);
  EXPECT_TRUE(client.received == message);
}

TEST_F(LaneNetworkTest, HasMoreOnItsWayWhereThePathIsLong) {
  if (const auto why = LongCable::missing()) GTEST_SKIP() << *why;
  const LongCable cable(*net);
  End server(message);
  End client(message);
  const transport::tcp::LaneOptions options;
  open(LongCable::address(0), server, client, options);
  std::size_t most = 0;
  run_until([&] {
    if (client.ready && !client.end) most = std::max(most, client.lane->counters().bytes_in_kernel);
    return (server.complete() && client.complete()) || server.end || client.end;
  });
  EXPECT_TRUE(server.received == message);
  EXPECT_GT(most, 4 * options.send_buffer_bytes) << "the kernel takes twice what it is asked for, and no more";
}

// Losses on a long way stop other congestion controls, and whoever has set BBR as the default of a host knows why. The link says one thing
// and the lane's own connection another where one of the two has waited for something else.
TEST_F(LaneNetworkTest, KeepsTheHostsBbrWhereThePathIsLongOnly) {
  if (const auto why = LongCable::missing()) GTEST_SKIP() << *why;
  if (!net->set_congestion_control("bbr")) GTEST_SKIP() << "needs a kernel with BBR";
  const LongCable cable(*net);
  for (const bool is_long : {true, false})
    for (const bool is_told_so : {true, false}) {
      End server(message);
      End client(message);
      open(is_long ? LongCable::address(0) : net->v4(0), server, client);
      run_until([&] { return (server.ready && client.ready) || server.end || client.end; });
      for (const End* end : {&server, &client}) {
        ASSERT_FALSE(end->end);
        end->lane->fit_congestion_control(is_told_so ? 20ms : 50us);
        EXPECT_EQ(end->lane->congestion_control() == "bbr", is_long && is_told_so) << end->lane->congestion_control();
      }
      run_until([&] { return (server.complete() && client.complete()) || server.end || client.end; });
      EXPECT_TRUE(server.received == message);
      EXPECT_TRUE(client.received == message);
    }
}

TEST_F(LaneNetworkTest, HasLessInAQueueWhereTheLineIsSlow) {
  ASSERT_TRUE(net->set_rate(100'000'000, 65536, 100ms));  // slower than a busy machine sends
  End server(message);
  End client(message);
  const transport::tcp::LaneOptions options;
  open(server, client);
  std::size_t most = 0;
  run_until([&] {
    if (client.ready && !client.end && client.sent > message.size() / 2) most = std::max(most, client.lane->counters().bytes_in_kernel);
    return (server.complete() && client.complete()) || server.end || client.end;
  });
  EXPECT_TRUE(server.received == message);
  EXPECT_GT(most, 0u);
  EXPECT_LT(most, options.send_buffer_bytes_min * 5 / 2) << "the kernel takes twice what it is asked for";
}

TEST_F(LaneNetworkTest, SaysThatTcpIsDroppedWhenTheTimeIsOver) {
  ASSERT_TRUE(net->block(0, Protocol::kTcp, Blocking::kDropped));
  End server(message);
  End client(message);
  open(server, client, {.connect_timeout = 200ms});
  run_until([&] { return client.end.has_value(); });
  ASSERT_TRUE(client.end);
  EXPECT_EQ(client.end->error.code(), ErrorCode::kTimeout);
  EXPECT_NE(client.end->error.sentence().find(net->v4(0).host()), std::string::npos);
}

TEST_F(LaneNetworkTest, SaysAtOnceThatTcpIsRejected) {
  ASSERT_TRUE(net->block(0, Protocol::kTcp, Blocking::kRejected));
  End server(message);
  End client(message);
  open(server, client, {.connect_timeout = 1min});
  run_until([&] { return client.end.has_value(); });
  ASSERT_TRUE(client.end);
  EXPECT_NE(client.end->error.code(), ErrorCode::kTimeout) << client.end->error.to_string();
}

TEST_F(LaneNetworkTest, BreaksInTheMiddleOfATransferThatIsRejected) {
  ASSERT_TRUE(net->set_rate(200'000'000, 65536, 5ms));  // so that the middle lasts
  End server(message);
  End client(message);
  open(server, client);
  run_until([&] { return server.got > message.size() / 4; });
  ASSERT_TRUE(net->block(Protocol::kTcp, Blocking::kRejected));
  run_until([&] { return server.end && client.end; });
  ASSERT_TRUE(server.end && client.end);
  EXPECT_EQ(server.end->kind, LinkEnd::Kind::kBroken);
  EXPECT_TRUE(std::equal(server.received.begin(), server.received.begin() + static_cast<std::ptrdiff_t>(server.got), message.begin()));
}

TEST_F(LaneNetworkTest, StandsStillWhenItIsCutAndSaysNothingAfterAnAbort) {
  ASSERT_TRUE(net->set_rate(200'000'000, 65536, 5ms));
  End server(message);
  End client(message);
  open(server, client);
  run_until([&] { return server.got > message.size() / 4; });
  ASSERT_TRUE(net->link_down(0));
  server.lane->abort("it stood still");
  client.lane->abort("it stood still");
  run_until([&] { return server.end && client.end; });
  ASSERT_TRUE(server.end && client.end);
  const std::size_t got = server.got;
  for (int i = 0; i < 100; ++i) loop->turn(base::Duration::zero());
  EXPECT_EQ(server.got, got);
}

}  // namespace
}  // namespace nexar::test
