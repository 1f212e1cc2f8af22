// Links over real QUIC on loopback.
#include <algorithm>
#include <cstring>
#include <random>

#include "transport/quic/admission.h"
#include "transport/quic_pair.h"

namespace nexar::transport::test {
namespace {

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST_F(QuicTest, BothEndsLearnWhoTheOtherIs) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  ASSERT_TRUE(handler.ready);
  ASSERT_EQ(server.accepted.size(), 1u);
  EXPECT_EQ(handler.link->peer_certificate()->node().bytes[0], std::byte{2});
  EXPECT_EQ(server.accepted[0]->link->peer_certificate()->node().bytes[0], std::byte{1});
  EXPECT_EQ(server.endpoint->pending_handshakes(), 0u);
}

TEST_F(QuicTest, WorksOverIpv6) {
  Side client(*loop, authority, 1, io::Address::loopback_v6(0));
  Side server(*loop, authority, 2, io::Address::loopback_v6(0));
  Recorder handler;
  connect(client, server, handler);
  EXPECT_TRUE(handler.ready);
}

TEST_F(QuicTest, AnAnswerTakesTheAcknowledgementAlong) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  Recorder& other = *server.accepted[0];
  const auto sends = [&] { return client.endpoint->counters().sends + server.endpoint->counters().sends; };
  constexpr std::size_t kRoundTrips = 200;
  const std::uint64_t before = sends();
  std::size_t slow = 0;  // in which an acknowledgement may have waited for too long, where others use the cores
  for (std::size_t i = 1; i <= kRoundTrips; ++i) {
    const base::Time begun = loop->refresh();
    ASSERT_TRUE(handler.link->send(message(i, 0), {}));
    run_until([&] { return other.frames.size() == i; });
    ASSERT_TRUE(other.link->send(message(i, 0), {}));
    run_until([&] { return handler.frames.size() == i; });
    while (loop->refresh() - begun < quic::kAcknowledgementWaits / 4) loop->turn(base::Duration::zero());
    if (loop->refresh() - begun > quic::kAcknowledgementWaits / 2) ++slow;
  }
  EXPECT_LE(sends() - before, 2 * kRoundTrips + 4 + 2 * slow) << slow << " were slow";
}

TEST_F(QuicTest, WhatNobodyAnswersIsAcknowledgedSoon) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  const auto sends = [&] { return server.endpoint->counters().sends; };
  for (base::Time quiet = loop->refresh(); loop->refresh() - quiet < std::chrono::milliseconds(20);) {  // the handshake's last words
    const std::uint64_t before = sends();
    loop->turn(std::chrono::milliseconds(1));
    if (sends() != before) quiet = loop->now();
  }
  const std::uint64_t before = sends();
  const base::Time sent = loop->refresh();
  ASSERT_TRUE(handler.link->send(message(1, 0), {}));
  run_until([&] { return sends() != before; });
  EXPECT_GE(loop->refresh() - sent, quic::kAcknowledgementWaits);
  EXPECT_EQ(sends(), before + 1);
}

TEST_F(QuicTest, FramesOfALaneArriveInOrderAndIntact) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  std::mt19937 random(3);
  std::vector<std::vector<std::byte>> sent;
  for (unsigned i = 0; i < 300; ++i) {
    sent.push_back(pattern(i % 7 == 0 ? 65536 : random() % 3000, i));
    run_until([&] { return handler.link->send(message(i, sent.back().size()), sent.back()); });
  }
  Recorder& receiver = *server.accepted[0];
  run_until([&] { return receiver.frames.size() == sent.size() && receiver.frames.back().payload.size() == sent.back().size(); });
  ASSERT_EQ(receiver.frames.size(), sent.size());
  for (unsigned i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(receiver.frames[i].header.key, i);
    EXPECT_EQ(receiver.frames[i].payload, sent[i]);
  }
  EXPECT_EQ(handler.link->counters(wire::Lane::kData).frames_sent, sent.size());
  EXPECT_EQ(receiver.link->counters(wire::Lane::kData).frames_received, sent.size());
}

TEST_F(QuicTest, BothDirectionsWorkAtOnce) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  Recorder& receiver = *server.accepted[0];
  const std::vector<std::byte> bytes = pattern(1000, 1);
  for (unsigned i = 0; i < 100; ++i) {
    ASSERT_TRUE(handler.link->send(message(i, bytes.size()), bytes));
    ASSERT_TRUE(receiver.link->send(message(i, bytes.size()), bytes));
  }
  run_until([&] { return receiver.frames.size() == 100 && handler.frames.size() == 100; });
  EXPECT_EQ(receiver.frames.size(), 100u);
  EXPECT_EQ(handler.frames.size(), 100u);
}

TEST_F(QuicTest, AFullLaneRefusesUntilThereIsRoomAndOthersGoOn) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  const std::vector<std::byte> bytes = pattern(65536, 1);
  std::size_t taken = 0;
  while (handler.link->send(message(taken, bytes.size()), bytes)) ASSERT_LT(++taken, 100u) << "a lane is bounded";
  EXPECT_GE(taken, quic::kLaneBytesMax[2] / (65536 + wire::kHeaderBytes));
  run_until([&] { return !handler.room.empty(); });
  EXPECT_EQ(handler.room.front(), wire::Lane::kData);
  EXPECT_TRUE(handler.link->send(message(999, bytes.size()), bytes));
}

// Hands out a buffer in bulk frames.
class Source : public BulkSource {
 public:
  explicit Source(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  std::optional<Frame> next(std::size_t bytes_max) override {
    if (at_ == bytes_.size()) return std::nullopt;
    const std::size_t size = std::min<std::size_t>(bytes_max, bytes_.size() - at_);
    const wire::Bulk bulk{.transfer = 1, .offset = at_};
    Frame frame{wire::header_of(bulk, {.group = 1, .epoch = 1}, static_cast<std::uint32_t>(size)),
                base::ByteView(bytes_).subspan(at_, size)};
    at_ += size;
    return frame;
  }
  bool has_next() const override { return at_ < bytes_.size(); }

 private:
  const std::vector<std::byte>& bytes_;
  std::size_t at_ = 0;
};

std::vector<std::byte> bulk_of(const Recorder& recorder) {
  std::vector<std::byte> bytes;
  for (const auto& frame : recorder.frames)
    if (frame.header.type == wire::FrameType::kBulk) bytes.insert(bytes.end(), frame.payload.begin(), frame.payload.end());
  return bytes;
}

TEST_F(QuicTest, BulkFlowsAsTheLinkAsksForIt) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  const std::vector<std::byte> bytes = pattern((16u << 20) + 12345, 9);
  Source source(bytes);
  handler.link->set_bulk_source(&source);
  Recorder& receiver = *server.accepted[0];
  run_until([&] {
    return receiver.link->counters(wire::Lane::kBulk).bytes_received >= bytes.size() + receiver.frames.size() * wire::kHeaderBytes;
  });
  handler.link->set_bulk_source(nullptr);
  EXPECT_TRUE(bulk_of(receiver) == bytes);
}

TEST_F(QuicTest, AnUrgentLaneIsNotDelayedByBulk) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  const std::vector<std::byte> bytes = pattern(32u << 20, 9);
  Source source(bytes);
  handler.link->set_bulk_source(&source);
  Recorder& receiver = *server.accepted[0];
  run_until([&] { return !receiver.frames.empty(); });
  ASSERT_TRUE(handler.link->send(message(7, 0), {}));
  const auto is_message = [](const Recorder::Frame& frame) { return frame.header.type == wire::FrameType::kMessage; };
  run_until([&] { return std::any_of(receiver.frames.begin(), receiver.frames.end(), is_message); });
  EXPECT_LT(receiver.link->counters(wire::Lane::kBulk).bytes_received, bytes.size()) << "the message came before the bulk was through";
  handler.link->set_bulk_source(nullptr);
}

TEST_F(QuicTest, CloseSendsEverythingFirst) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  const std::vector<std::byte> bytes = pattern(60000, 4);
  for (unsigned i = 0; i < 10; ++i) ASSERT_TRUE(handler.link->send(message(i, bytes.size()), bytes));
  handler.link->close("that was all");
  Recorder& receiver = *server.accepted[0];
  run_until([&] { return handler.end && receiver.end; });
  ASSERT_TRUE(handler.end && receiver.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kClosedHere);
  EXPECT_EQ(receiver.end->kind, LinkEnd::Kind::kClosedByPeer);
  EXPECT_NE(receiver.end->error.sentence().find("that was all"), std::string::npos) << receiver.end->error.sentence();
  ASSERT_EQ(receiver.frames.size(), 11u);
  EXPECT_EQ(receiver.frames[9].payload, bytes);
  EXPECT_EQ(receiver.frames.back().header.type, wire::FrameType::kGoodbye) << "the last frame, after everything else";
  run_until([&] { return client.endpoint->connections() + server.endpoint->connections() == 0; });
  EXPECT_EQ(client.endpoint->connections() + server.endpoint->connections(), 0u);
}

TEST_F(QuicTest, AbortEndsBothAtOnceWithTheReason) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  server.accepted[0]->link->abort("out of cheese");
  run_until([&] { return handler.end && server.accepted[0]->end; });
  ASSERT_TRUE(handler.end && server.accepted[0]->end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kBroken);
  EXPECT_NE(handler.end->error.sentence().find("out of cheese"), std::string::npos);
}

TEST_F(QuicTest, AStrangerWithACertificateOfAnotherAuthorityIsRefusedByName) {
  const crypto::LocalAuthority other = crypto::LocalAuthority::make({}).value();
  Side client(*loop, other, 1, io::Address::loopback_v4(0), &authority);  // trusts the server, but is of another cluster
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kRefused) << handler.end->error.to_string();
  EXPECT_TRUE(server.accepted.empty());
  run_until([&] { return server.endpoint->connections() == 0; });
  EXPECT_EQ(server.endpoint->pending_handshakes(), 0u);
}

TEST_F(QuicTest, AServerThatTheClientDoesNotAcceptIsRefusedWithTheVerifiersReason) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  client.verifier.refusal = Error(ErrorCode::kRefused, "this node is not in the view");
  Recorder handler;
  connect(client, server, handler);
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_NE(handler.end->error.sentence().find("this node is not in the view"), std::string::npos) << handler.end->error.sentence();
}

TEST_F(QuicTest, ALinkThatNobodyTakesEnds) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  server.refuse_links = true;
  Recorder handler;
  handler.link = client.endpoint->connect(server.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_NE(handler.end->error.sentence().find("nobody takes this link"), std::string::npos) << handler.end->error.sentence();
}

TEST_F(QuicTest, AHandlersErrorEndsTheLinkAndReachesThePeer) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  Recorder handler;
  connect(client, server, handler);
  server.accepted[0]->refuse_frames = true;
  ASSERT_TRUE(handler.link->send(message(1, 0), {}));
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_NE(handler.end->error.sentence().find("this test takes no frames"), std::string::npos) << handler.end->error.sentence();
}

TEST_F(QuicTest, NobodyAtTheOtherEndIsATimeoutThatNamesTheAddress) {
  Side client(*loop, authority, 1);
  const io::Address nobody = io::Address::loopback_v4(9);
  Recorder handler;
  handler.link = client.endpoint->connect(nobody, handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->error.code(), ErrorCode::kTimeout);
  EXPECT_NE(handler.end->error.sentence().find("127.0.0.1:9"), std::string::npos);
}

TEST_F(QuicTest, AStormOfPeersIsAskedToComeBackAndAllGetIn) {
  Side server(*loop, authority, 1);
  Side client(*loop, authority, 2);
  constexpr std::size_t kPeers = 48;
  std::vector<Recorder> handlers(kPeers);
  for (Recorder& handler : handlers) handler.link = client.endpoint->connect(server.endpoint->local_address(), handler).value();
  run_until(
      [&] { return std::all_of(handlers.begin(), handlers.end(), [](const Recorder& handler) { return handler.ready || handler.end; }); });
  for (const Recorder& handler : handlers) EXPECT_TRUE(handler.ready) << (handler.end ? handler.end->error.to_string() : "still pending");
  EXPECT_GT(server.endpoint->counters().retries_sent, 0u);
}

TEST_F(QuicTest, EndedConnectionsAreRememberedWithinABoundAndForAWhile) {
  Side client(*loop, authority, 1);
  Side server(*loop, authority, 2);
  // Each has two ids or more at the server.
  std::vector<Recorder> handlers(quic::kTombstonesMax / 2 + 1);
  for (Recorder& handler : handlers) {
    handler.link = client.endpoint->connect(server.endpoint->local_address(), handler).value();
    run_until([&] { return handler.ready; });
  }
  run_until([&] { return server.accepted.size() == handlers.size(); });
  for (const auto& accepted : server.accepted) accepted->link->abort("enough");
  run_until([&] { return server.endpoint->connections() == 0; });
  EXPECT_EQ(server.endpoint->tombstones(), quic::kTombstonesMax);
  run_until([&] { return server.endpoint->tombstones() == 0; });
  EXPECT_EQ(server.endpoint->tombstones(), 0u);
}

TEST(Admission, AsksForProofUnderLoadAndReplacesTheOldestWhenFull) {
  using quic::Admission;
  EXPECT_EQ(quic::admit(0, false), Admission::kAdmit);
  EXPECT_EQ(quic::admit(quic::kRetryAbove - 1, false), Admission::kAdmit);
  EXPECT_EQ(quic::admit(quic::kRetryAbove, false), Admission::kRetry);
  EXPECT_EQ(quic::admit(quic::kRetryAbove, true), Admission::kAdmit);
  EXPECT_EQ(quic::admit(quic::kPendingMax, false), Admission::kRetry);
  EXPECT_EQ(quic::admit(quic::kPendingMax, true), Admission::kReplaceOldest);
}

TEST_F(QuicTest, NoiseCostsNothing) {
  Side server(*loop, authority, 1);
  const std::vector<std::byte> noise = pattern(1200, 77);
  io::UdpSocket socket = io::UdpSocket::open(io::Address::loopback_v4(0)).value();
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(socket.send(base::ByteView(noise).subspan(i % 100), noise.size(), server.endpoint->local_address()));
    loop->turn({});
  }
  EXPECT_EQ(server.endpoint->pending_handshakes(), 0u);
  EXPECT_EQ(server.endpoint->connections(), 0u);
}

// Passes first packets from clients to a server, and of the server's answers only those that ask to come back: every handshake that begins
// stays half open.
class OneWayRelay {
 public:
  OneWayRelay(io::Loop& loop, const io::Address& server) : loop_(loop), server_(server) {}

  void pump() {
    for (int i = 0; i < 200; ++i) {
      loop_.turn({});
      const io::Received got = socket_.receive(buffer_).value();
      if (got.outcome != io::ReceiveOutcome::kDatagrams) continue;
      if (got.from == server_) {
        constexpr std::byte kRetryType{0xF0};  // a long header of that type, RFC 9000 section 17.2.5
        if ((got.bytes[0] & kRetryType) == kRetryType) (void)socket_.send(got.bytes, got.bytes.size(), client_);
      } else {
        client_ = got.from;
        (void)socket_.send(got.bytes, got.bytes.size(), server_);
      }
    }
  }

  io::Address address() const { return socket_.local_address(); }

 private:
  io::Loop& loop_;
  io::Address server_;
  io::Address client_;
  io::UdpSocket socket_ = io::UdpSocket::open(io::Address::loopback_v4(0)).value();
  std::vector<std::byte> buffer_ = std::vector<std::byte>(io::UdpSocket::kReceiveBufferMin);
};

TEST_F(QuicTest, HalfOpenHandshakesAreBoundedAndDoNotKeepAPeerOut) {
  Side server(*loop, authority, 1);
  Side stranger(*loop, authority, 2);
  OneWayRelay relay(*loop, server.endpoint->local_address());
  std::vector<Recorder> silent(100);
  std::size_t most = 0;
  for (Recorder& handler : silent) {
    ASSERT_TRUE(stranger.endpoint->connect(relay.address(), handler));
    relay.pump();
    most = std::max(most, server.endpoint->pending_handshakes());
  }
  EXPECT_EQ(most, quic::kPendingMax) << "as many as may be, and no more";
  EXPECT_GT(server.endpoint->counters().handshakes_dropped, 0u) << "the oldest made way";

  Side peer(*loop, authority, 3);
  Recorder handler;
  connect(peer, server, handler);
  EXPECT_TRUE(handler.ready) << "a peer gets in meanwhile";
  run_until([&] { return server.endpoint->pending_handshakes() == 0; });
  EXPECT_EQ(server.endpoint->pending_handshakes(), 0u) << "and silence ends the others";
}

}  // namespace
}  // namespace nexar::transport::test
