// TCP lanes over real sockets.
#include <thread>

#include "transport/lane_pair.h"

namespace nexar::transport::test {
namespace {

const std::vector<std::size_t> kSizes = {1, 2, 100, 32767, 32768, 32769, 65535, 65536, 65536, 17, 65536};

std::vector<Bytes> payloads(unsigned seed, std::size_t rounds = 3) {
  std::vector<Bytes> made;
  for (std::size_t round = 0; round < rounds; ++round)
    for (const std::size_t size : kSizes) made.push_back(random_bytes(size, seed++));
  return made;
}

// Whether the payload is plain, and how the sinks have it.
class LaneKinds : public LaneTest, public testing::WithParamInterface<std::tuple<bool, LaneEndpoint::Taking>> {
 protected:
  LaneKinds() {
    terms.plain = std::get<0>(GetParam());
    client.taking = server.taking = std::get<1>(GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(All, LaneKinds,
                         testing::Combine(testing::Bool(), testing::Values(LaneEndpoint::Taking::kTake, LaneEndpoint::Taking::kPlace,
                                                                           LaneEndpoint::Taking::kScatter)));

TEST_P(LaneKinds, CarriesFramesBothWaysIntactAndInOrder) {
  connect();
  const std::vector<Bytes> there = payloads(100);
  const std::vector<Bytes> back = payloads(900);
  for (const Bytes& payload : there) client.queue(payload);
  for (const Bytes& payload : back) server.queue(payload);
  run_until([&] { return (server.whole == there.size() && client.whole == back.size()) || client.end || server.end; });
  expect_frames(server, there);
  expect_frames(client, back);
  const bool takes = std::get<1>(GetParam()) == LaneEndpoint::Taking::kTake;
  EXPECT_EQ(server.placed_bytes == 0, takes);
  EXPECT_EQ(server.taken == 0, !takes);
}

TEST_P(LaneKinds, GivesTheCallerItsMemoryBackAlsoWhenTheSocketIsFull) {
  options.receive_buffer_bytes = options.send_buffer_bytes = options.send_buffer_bytes_max = 16 * 1024;  // every frame is too long for it
  listener = tcp::Listener::open(*loop, io::Address::loopback_v4(0), options).value();
  connect();
  const std::vector<Bytes> there = payloads(1);
  for (const Bytes& payload : there) client.queue(payload);
  run_until([&] { return server.whole == there.size() || client.end || server.end; });
  expect_frames(server, there);
}

TEST_P(LaneKinds, DeliversEverythingBeforeItClosesAndBothEndsSayWhoClosed) {
  connect();
  const std::vector<Bytes> there = payloads(5);
  for (const Bytes& payload : there) client.queue(payload);
  run_until([&] { return client.outgoing.empty(); });
  client.lane->close();
  run_until([&] { return client.end && server.end; });
  ASSERT_TRUE(client.end && server.end);
  EXPECT_EQ(client.end->kind, LinkEnd::Kind::kClosedHere) << client.end->error.to_string();
  EXPECT_EQ(server.end->kind, LinkEnd::Kind::kClosedByPeer) << server.end->error.to_string();
  expect_frames(server, there);
}

TEST_P(LaneKinds, ReadsAndDropsWhatNobodyWants) {
  server.drop_payload = true;
  connect();
  for (const Bytes& payload : payloads(5)) client.queue(payload);
  run_until([&] { return server.whole == 3 * kSizes.size() || server.end; });
  EXPECT_EQ(server.whole, 3 * kSizes.size());
}

TEST_F(LaneTest, WorksOverIpv6) {
  listener = tcp::Listener::open(*loop, io::Address::loopback_v6(0)).value();
  connect();
}

TEST_F(LaneTest, ClosedByBothEndsAtOnceIsClosedHereForBoth) {
  connect();
  client.lane->close();
  server.lane->close();
  run_until([&] { return client.end && server.end; });
  ASSERT_TRUE(client.end && server.end);
  EXPECT_EQ(client.end->kind, LinkEnd::Kind::kClosedHere);
  EXPECT_EQ(server.end->kind, LinkEnd::Kind::kClosedHere);
}

TEST_F(LaneTest, CountsFramesBytesAndRecords) {
  connect();
  client.queue(random_bytes(65536, 1));
  client.queue(random_bytes(10, 2));
  run_until([&] { return server.whole == 2; });
  const tcp::TcpLaneCounters sent = client.lane->counters();
  const tcp::TcpLaneCounters received = server.lane->counters();
  EXPECT_EQ(sent.frames.frames_sent, 2u);
  EXPECT_EQ(sent.frames.bytes_sent, 2 * wire::kHeaderBytes + 65546);
  EXPECT_EQ(received.frames.frames_received, 2u);
  EXPECT_EQ(received.frames.bytes_received, 2 * wire::kHeaderBytes + 65546);
  EXPECT_EQ(sent.records_sealed, 1u + 3 + 2);  // the hello; header and two pieces; header and one
  EXPECT_EQ(received.records_opened, sent.records_sealed);
}

TEST_F(LaneTest, SaysHowMuchTheKernelKeeps) {
  const io::StreamSocket deaf = connect_socket();
  for (int i = 0; i < 50; ++i) server.queue(random_bytes(65536, 1));
  run_until([&] { return server.lane->counters().bytes_in_kernel > 65536; });
  EXPECT_GT(server.lane->counters().bytes_in_kernel, 65536u);
}

TEST_F(LaneTest, SendsAsSoonAsThereIsRoomAlsoWhereEpollIsAskedSeldom) {
  io::StreamSocket peer = connect_socket();
  for (int i = 0; i < 50; ++i) server.queue(random_bytes(65536, 1));
  while (loop->turn(base::Duration::zero())) continue;  // until the kernel takes no more
  ASSERT_FALSE(server.outgoing.empty());
  loop->turn(std::chrono::milliseconds(1));  // asks epoll; the next turn does not

  Bytes read(65536);
  iovec region = io::region(read);
  const base::Time deadline = loop->refresh() + std::chrono::minutes(1);
  while (server.lane->counters().bytes_in_kernel > 0 && loop->refresh() < deadline) ASSERT_TRUE(peer.read({&region, 1}));
  const std::uint64_t before = server.sent;
  loop->turn(base::Duration::zero());
  EXPECT_GT(server.sent, before);
}

TEST_F(LaneTest, AbortEndsOnceOutsideTheCallAndTouchesNothingAfterwards) {
  connect();
  client.queue(random_bytes(65536, 1));
  client.lane->abort("the test wants it");
  EXPECT_FALSE(client.end);
  run_until([&] { return client.end && server.end; });
  ASSERT_TRUE(client.end && server.end);
  EXPECT_EQ(client.end->kind, LinkEnd::Kind::kClosedHere);
  EXPECT_NE(client.end->error.sentence().find("the test wants it"), std::string::npos);
  EXPECT_EQ(server.end->kind, LinkEnd::Kind::kBroken);
  EXPECT_EQ(client.outgoing.size(), 1u);
}

TEST_F(LaneTest, CanBeAbortedFromItsOwnCallback) {
  connect();
  server.when_frame = [&] { server.lane->abort("enough"); };
  for (const Bytes& payload : payloads(1)) client.queue(payload);
  run_until([&] { return client.end && server.end; });
  ASSERT_TRUE(server.end);
  EXPECT_EQ(server.frames.size(), 1u);
  EXPECT_EQ(server.whole, 0u);
}

TEST_F(LaneTest, CanBeDestroyedWithoutAWord) {
  connect();
  client.lane.reset();
  run_until([&] { return server.end.has_value(); });
  ASSERT_TRUE(server.end);
  EXPECT_EQ(server.end->kind, LinkEnd::Kind::kBroken);
  EXPECT_NE(server.end->error.sentence().find("had not said its end"), std::string::npos) << server.end->error.sentence();
  EXPECT_FALSE(client.end);
}

TEST_F(LaneTest, EndsWithTheSentenceOfAHandlerThatRefusesAFrame) {
  connect();
  server.refuse_frames = true;
  client.queue(random_bytes(10, 1));
  run_until([&] { return client.end && server.end; });
  ASSERT_TRUE(server.end);
  EXPECT_NE(server.end->error.sentence().find("this test takes no frames"), std::string::npos);
  EXPECT_NE(server.end->error.sentence().find("TCP lane 2 (generation 7) to 127.0.0.1:"), std::string::npos);
}

TEST_F(LaneTest, MovesABoundedAmountInATurn) {
  options.turn_bytes = 64 * 1024;
  listener = tcp::Listener::open(*loop, io::Address::loopback_v4(0), options).value();
  connect();
  for (int i = 0; i < 100; ++i) client.queue(random_bytes(65536, 1));
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  const auto step = [](std::uint64_t& before, std::uint64_t now) { return now - std::exchange(before, now); };
  while (server.whole < 100 && !server.end) {
    loop->turn(std::chrono::milliseconds(10));
    // A poll and a readiness may fall into one turn; each pulls what one write takes.
    EXPECT_LE(step(sent, client.lane->counters().frames.bytes_sent),
              2 * 2 * tcp::RecordWriter::kFramesPerWrite * (wire::kHeaderBytes + 65536));
    EXPECT_LE(step(received, server.lane->counters().frames.bytes_received),
              2 * (tcp::RecordParser::kReadBytes + 2 * (wire::kHeaderBytes + 65536)));
  }
  EXPECT_EQ(server.whole, 100u);
}

// The two ways take longer turns where the kernel takes everything, and short ones again when it has left something.
TEST_F(LaneTest, TakesLongerTurnsWhereTheLineIsNotTheLimit) {
  options.turn_bytes = 64 * 1024;
  options.send_buffer_bytes = 16 * 1024 * 1024;
  listener = tcp::Listener::open(*loop, io::Address::loopback_v4(0), options).value();
  connect();
  constexpr std::uint64_t kFrame = wire::kHeaderBytes + 65536;
  const auto most_in_a_turn = [&](std::uint64_t frames) {
    const std::uint64_t until = server.whole + frames;
    for (std::uint64_t i = 0; i < frames; ++i) client.queue(random_bytes(65536, 1));
    std::uint64_t most = 0;
    while (server.whole < until && !server.end) {
      const std::uint64_t before = client.lane->counters().frames.bytes_sent;
      loop->turn(std::chrono::milliseconds(10));
      most = std::max(most, client.lane->counters().frames.bytes_sent - before);
    }
    return most / kFrame;
  };
  EXPECT_LE(most_in_a_turn(32), 2u) << "a poll and a readiness may fall into one turn";
  most_in_a_turn(64);
  EXPECT_GE(most_in_a_turn(64), 4u);
}

TEST_F(LaneTest, MovesAFrameInATurnWhenSomethingUrgentIsAbout) {
  connect();
  for (int i = 0; i < 40; ++i) client.queue(random_bytes(65536, 1));
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  const auto step = [](std::uint64_t& before, std::uint64_t now) { return now - std::exchange(before, now); };
  while (server.whole < 40 && !server.end) {
    loop->refresh();
    loop->hurry();
    loop->turn(std::chrono::milliseconds(10));
    // A poll and a readiness may fall into one turn.
    EXPECT_LE(step(sent, client.lane->counters().frames.bytes_sent), 2 * (wire::kHeaderBytes + 65536));
    EXPECT_LE(step(received, server.lane->counters().frames.bytes_received), 2 * 2 * (wire::kHeaderBytes + 65536));
  }
  EXPECT_EQ(server.whole, 40u);
}

TEST_F(LaneTest, NoKeySealsANumberTwiceInAnyDirectionGenerationOrLane) {
  SealCounter counter;
  limits.observer = &counter;
  limits.records_per_key = 5;
  unsigned number = 0;
  for (const std::uint32_t lane : {0u, 1u, 15u})
    for (const std::uint32_t generation : {1u, 2u, 3u}) {
      terms.name = {.lane = lane, .generation = generation};
      client = LaneEndpoint();
      server = LaneEndpoint();
      expect(++number);
      dial(listener->local_address(), number);
      const std::vector<Bytes> there = payloads(number, 1);
      for (const Bytes& payload : there) {
        client.queue(payload);
        server.queue(payload);
      }
      run_until([&] { return (server.whole == there.size() && client.whole == there.size()) || client.end || server.end; });
      expect_frames(server, there);
      expect_frames(client, there);
    }
  EXPECT_GT(counter.seals, 9u * 2 * kSizes.size() * 2);
  EXPECT_EQ(counter.repeated, 0u);
  EXPECT_GE(counter.keys.size(), counter.seals / 5);
}

TEST_F(LaneTest, IsClosedWhenItsNumbersAreUsedUp) {
  SealCounter counter;
  limits.observer = &counter;
  limits.records_max = 10;
  connect();
  for (const Bytes& payload : payloads(1)) client.queue(payload);
  run_until([&] { return client.end && server.end; });
  ASSERT_TRUE(client.end);
  EXPECT_NE(client.end->error.sentence().find("used all its record numbers"), std::string::npos) << client.end->error.sentence();
  EXPECT_EQ(counter.repeated, 0u);
  for (const auto& [key, number] : counter.pairs) EXPECT_LT(number, 10u);
}

TEST_F(LaneTest, EndsThatDisagreeOnPlainTextNeverBecomeReady) {
  expect();
  dial(listener->local_address(), 1, tcp::LaneTerms{.name = terms.name, .plain = true});
  run_until([&] { return client.end.has_value(); });
  ASSERT_TRUE(client.end);
  EXPECT_EQ(client.end->kind, LinkEnd::Kind::kRefused) << client.end->error.to_string();
  EXPECT_EQ(listener->counters().forged_hellos, 1u);
  EXPECT_EQ(server.readies, 0);
}

TEST_F(LaneTest, ToAPortWhereNobodyListensSaysSo) {
  const io::Address nowhere = listener->local_address();
  listener.reset();
  dial(nowhere);
  run_until([&] { return client.end.has_value(); });
  ASSERT_TRUE(client.end);
  EXPECT_EQ(client.end->kind, LinkEnd::Kind::kBroken);
  EXPECT_NE(client.end->error.sentence().find(nowhere.to_string()), std::string::npos) << client.end->error.sentence();
}

TEST_F(LaneTest, ToAPeerThatNeverSaysHelloTimesOut) {
  io::StreamListener silent = io::StreamListener::listen(io::Address::loopback_v4(0)).value();
  options.connect_timeout = std::chrono::milliseconds(50);
  dial(silent.local_address());
  run_until([&] { return client.end.has_value(); });
  ASSERT_TRUE(client.end);
  EXPECT_EQ(client.end->error.code(), ErrorCode::kTimeout);
  EXPECT_EQ(client.readies, 0);
}

TEST_F(LaneTest, ClosedToAPeerThatStoppedReadingTimesOut) {
  connect();
  options.close_timeout = std::chrono::milliseconds(50);
  // The other end of this one is a socket that nobody reads.
  auto pair = io::StreamSocket::pair().value();
  LaneEndpoint stuck;
  stuck.lane = tcp::Lane::accept(*loop, std::move(pair.first), keys(tcp::Side::kListens), options);
  stuck.lane->start(stuck);
  stuck.lane->close();
  run_until([&] { return stuck.end.has_value(); });
  ASSERT_TRUE(stuck.end);
  EXPECT_EQ(stuck.end->kind, LinkEnd::Kind::kBroken);
  EXPECT_EQ(stuck.end->error.code(), ErrorCode::kTimeout);
}

// As in two processes: each end has a loop and a thread of its own, and they meet in the kernel.
TEST_F(LaneTest, WorksBetweenTwoLoopsInTwoThreads) {
  expect();
  const std::vector<Bytes> there = payloads(1);
  const io::Address to = listener->local_address();
  std::thread connecting([&] {
    const std::unique_ptr<io::EpollLoop> other = io::EpollLoop::open().value();
    client.lane = tcp::Lane::connect(*other, to, ticket(1), keys(tcp::Side::kConnects), client, options).value();
    for (const Bytes& payload : there) client.queue(payload);
    while ((client.whole < there.size() || !client.outgoing.empty()) && !client.end) other->turn(std::chrono::milliseconds(10));
    if (client.lane) client.lane->close();
    while (!client.end) other->turn(std::chrono::milliseconds(10));
  });
  for (const Bytes& payload : there) server.queue(payload);
  while (!server.end) loop->turn(std::chrono::milliseconds(10));
  connecting.join();
  expect_frames(server, there);
  expect_frames(client, there);
  EXPECT_EQ(server.end->kind, LinkEnd::Kind::kClosedByPeer) << server.end->error.to_string();
}

}  // namespace
}  // namespace nexar::transport::test
