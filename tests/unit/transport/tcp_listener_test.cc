// Strangers at the port of the TCP lanes, in virtual time.
#include <algorithm>

#include "io/turned_clock.h"
#include "transport/lane_pair.h"

namespace nexar::transport::test {
namespace {

class ListenerTest : public LaneTest {
 protected:
  ListenerTest() {
    listener.reset();
    loop = io::EpollLoop::open(clock).value();
    listener = tcp::Listener::open(*loop, io::Address::loopback_v4(0), options).value();
  }

  // Turns until `done`; time stands still meanwhile.
  void turn_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done() && std::chrono::steady_clock::now() < deadline) loop->turn(base::Duration::zero());
  }

  // Connects and is seen.
  io::StreamSocket stranger() {
    const std::uint64_t before = seen();
    io::StreamSocket socket = io::StreamSocket::connect(listener->local_address()).value();
    turn_until([&] { return seen() > before; });
    return socket;
  }

  std::uint64_t seen() const {
    const tcp::ListenerCounters& c = listener->counters();
    return listener->pending() + c.accepted + c.unknown_tickets + c.forged_hellos + c.timed_out + c.gone + c.made_way + c.accept_errors;
  }

  static bool is_closed(io::StreamSocket& socket) {
    std::array<std::byte, 64> bytes;
    const Result<io::Transferred> read = socket.read(bytes);
    return !read || read->state == io::Transferred::State::kClosed;
  }

  void send(io::StreamSocket& socket, base::ByteView bytes) {
    while (!bytes.empty()) {
      const Result<io::Transferred> written = socket.write(bytes);
      if (!written) return;  // closed already
      bytes = bytes.subspan(written->bytes);
      loop->turn(base::Duration::zero());
    }
  }

  nexar::test::TurnedClock clock;
};

TEST_F(ListenerTest, ClosesASilentStrangerAfterThreeSeconds) {
  io::StreamSocket silent = stranger();
  clock.pass(tcp::kHelloTimeout - std::chrono::milliseconds(1));
  loop->turn(base::Duration::zero());
  EXPECT_EQ(listener->pending(), 1u);
  clock.pass(std::chrono::milliseconds(1));
  loop->turn(base::Duration::zero());
  EXPECT_EQ(listener->pending(), 0u);
  EXPECT_EQ(listener->counters().timed_out, 1u);
  turn_until([&] { return is_closed(silent); });
  EXPECT_TRUE(is_closed(silent));
}

TEST_F(ListenerTest, GivesNoMoreTimeToWhoSendsByteByByte) {
  expect();
  io::StreamSocket slow = stranger();
  const wire::LaneTicket known = ticket(1);
  for (int i = 0; i < 5; ++i) {
    send(slow, base::ByteView(known).subspan(static_cast<std::size_t>(i), 1));
    clock.pass(std::chrono::milliseconds(500));
    loop->turn(base::Duration::zero());
  }
  EXPECT_EQ(listener->pending(), 1u);
  clock.pass(std::chrono::milliseconds(500));
  loop->turn(base::Duration::zero());
  EXPECT_EQ(listener->pending(), 0u);
}

TEST_F(ListenerTest, ClosesAnUnknownTicketAtOnce) {
  io::StreamSocket wrong = stranger();
  send(wrong, ticket(99));
  turn_until([&] { return listener->counters().unknown_tickets == 1; });
  EXPECT_EQ(listener->counters().unknown_tickets, 1u);
  EXPECT_EQ(listener->pending(), 0u);
  turn_until([&] { return is_closed(wrong); });
  EXPECT_TRUE(is_closed(wrong));
}

TEST_F(ListenerTest, KeepsTheTicketForWhoHasTheKeys) {
  expect();
  io::StreamSocket thief = stranger();
  Bytes forged = random_bytes(tcp::kHelloBytes, 1);
  const wire::LaneTicket stolen = ticket(1);
  std::copy(stolen.begin(), stolen.end(), forged.begin());
  send(thief, forged);
  turn_until([&] { return listener->counters().forged_hellos == 1; });
  EXPECT_EQ(listener->counters().forged_hellos, 1u);
  dial(listener->local_address());
  turn_until([&] { return client.readies > 0 && server.readies > 0; });
  EXPECT_EQ(client.readies, 1);
  EXPECT_EQ(listener->counters().accepted, 1u);
  EXPECT_EQ(listener->expected(), 0u);
}

TEST_F(ListenerTest, TakesATicketOnce) {
  expect();
  dial(listener->local_address());
  turn_until([&] { return client.readies > 0 && server.readies > 0; });
  LaneEndpoint again;
  again.lane = tcp::Lane::connect(*loop, listener->local_address(), ticket(1), keys(tcp::Side::kConnects), again, options).value();
  turn_until([&] { return again.end.has_value(); });
  ASSERT_TRUE(again.end);
  EXPECT_EQ(again.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_EQ(again.readies, 0);
  EXPECT_EQ(listener->counters().unknown_tickets, 1u);
}

TEST_F(ListenerTest, ForgetsATicket) {
  expect();
  listener->forget(ticket(1));
  dial(listener->local_address());
  turn_until([&] { return client.end.has_value(); });
  EXPECT_EQ(listener->counters().unknown_tickets, 1u);
}

TEST_F(ListenerTest, LetsTheOldestMakeWayWhenTooManyArePending) {
  std::vector<io::StreamSocket> silent;
  for (std::size_t i = 0; i < tcp::kPendingMax; ++i) silent.push_back(stranger());
  EXPECT_EQ(listener->pending(), tcp::kPendingMax);
  EXPECT_EQ(listener->counters().made_way, 0u);
  silent.push_back(stranger());
  EXPECT_EQ(listener->pending(), tcp::kPendingMax);
  EXPECT_EQ(listener->counters().made_way, 1u);
  turn_until([&] { return is_closed(silent.front()); });
  EXPECT_TRUE(is_closed(silent.front()));
  EXPECT_FALSE(is_closed(silent[1]));

  expect();
  dial(listener->local_address());
  turn_until([&] { return client.readies > 0 && server.readies > 0; });
  EXPECT_EQ(client.readies, 1);
}

TEST_F(ListenerTest, ServesALaneAmongFloodsOfGarbage) {
  connect();
  for (unsigned i = 0; i < 300; ++i) {
    io::StreamSocket noise = stranger();
    send(noise, random_bytes(1 + i * 7 % 3000, i));
  }
  const Bytes payload = random_bytes(65536, 5);
  client.queue(payload);
  turn_until([&] { return server.whole == 1; });
  expect_frames(server, {payload});
  clock.pass(tcp::kHelloTimeout);
  turn_until([&] { return listener->pending() == 0; });
  EXPECT_EQ(listener->pending(), 0u);
}

// What a stranger sends beyond its hello stays with it: the kernel takes about a window, and we nothing.
TEST_F(ListenerTest, LetsAStrangerSendLittle) {
  expect();
  io::StreamSocket chatty = stranger();
  Bytes start = random_bytes(tcp::kHelloBytes - 1, 3);
  const wire::LaneTicket known = ticket(1);
  std::copy(known.begin(), known.end(), start.begin());
  send(chatty, base::ByteView(start).first(15));  // the ticket is not whole: nothing can be decided yet
  turn_until([&] { return listener->pending() == 1; });
  EXPECT_EQ(listener->pending(), 1u);
  EXPECT_EQ(listener->counters().forged_hellos, 0u);
}

TEST_F(ListenerTest, ExpectsABoundedNumberOfLanes) {
  for (unsigned i = 0; i < tcp::kExpectedMax; ++i) ASSERT_TRUE(listener->expect(ticket(i), keys(tcp::Side::kListens), server));
  const Result<void> more = listener->expect(ticket(100'000), keys(tcp::Side::kListens), server);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kOverloaded);
  listener->forget(ticket(7));
  EXPECT_EQ(listener->expect(ticket(8), keys(tcp::Side::kListens), server).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(listener->expect(ticket(7), keys(tcp::Side::kListens), server));
}

}  // namespace
}  // namespace nexar::transport::test
