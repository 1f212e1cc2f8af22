#include "io/udp_socket.h"

#include <algorithm>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "io/bytes_of.h"

namespace nexar::io {
namespace {

enum class Way { kV4, kV6, kDualStack };

std::string name_of(const testing::TestParamInfo<Way>& way) {
  return way.param == Way::kV4 ? "V4" : way.param == Way::kV6 ? "V6" : "DualStack";
}

bool has_v6() { return UdpSocket::open(Address::loopback_v6(0)).has_value(); }

void wait_readable(const UdpSocket& socket) {
  pollfd entry{socket.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, 10'000), 1);
}

// Two sockets on the loopback. On the dual-stack way the sender has IPv6 and the receiver is at an IPv4 address.
class UdpSocketTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam() != Way::kV4 && !has_v6()) GTEST_SKIP() << "this host has no IPv6";
  }

  Address loopback() const { return GetParam() == Way::kV6 ? Address::loopback_v6(0) : Address::loopback_v4(0); }
  Address sender_address() const { return GetParam() == Way::kDualStack ? Address::any_v6(0) : loopback(); }

  // Everything that comes until `length` bytes are there, in datagrams.
  std::vector<std::vector<std::byte>> receive_all(UdpSocket& socket, std::size_t length) {
    std::vector<std::vector<std::byte>> datagrams;
    std::vector<std::byte> buffer(UdpSocket::kReceiveBufferMin);
    for (std::size_t got = 0; got < length;) {
      const Received received = socket.receive(buffer).value();
      if (received.outcome == ReceiveOutcome::kBlocked) {
        wait_readable(socket);
        if (HasFatalFailure()) return datagrams;
        continue;
      }
      last_from = received.from;
      for (std::size_t at = 0; at < received.bytes.size(); at += received.segment) {
        const base::ByteView piece = received.bytes.subspan(at, std::min(received.segment, received.bytes.size() - at));
        datagrams.emplace_back(piece.begin(), piece.end());
      }
      got += received.bytes.size();
    }
    return datagrams;
  }

  void expect_round_trip(UdpSocket& sender, UdpSocket& receiver, std::size_t length, std::size_t segment) {
    SCOPED_TRACE(testing::Message() << length << " bytes in datagrams of " << segment);
    const std::vector<std::byte> bytes = pattern(length);
    const Sent sent = sender.send(bytes, segment, receiver.local_address()).value();
    ASSERT_EQ(sent.outcome, SendOutcome::kSent);
    ASSERT_EQ(sent.bytes, length);
    const auto datagrams = receive_all(receiver, length);
    ASSERT_EQ(datagrams.size(), (length + segment - 1) / segment);
    std::vector<std::byte> joined;
    for (const auto& datagram : datagrams) {
      EXPECT_TRUE(datagram.size() == segment || &datagram == &datagrams.back());
      joined.insert(joined.end(), datagram.begin(), datagram.end());
    }
    EXPECT_EQ(joined, bytes);
  }

  Address last_from;
};

INSTANTIATE_TEST_SUITE_P(Ways, UdpSocketTest, testing::Values(Way::kV4, Way::kV6, Way::kDualStack), name_of);

TEST_P(UdpSocketTest, CarriesDatagramsOfOddSizesAndTellsWhereTheyCameFrom) {
  UdpSocket sender = UdpSocket::open(sender_address()).value();
  UdpSocket receiver = UdpSocket::open(loopback()).value();
  for (const std::size_t length : {1, 2, 1199, 1200, 1472, 9001, 65'000}) {
    expect_round_trip(sender, receiver, length, length);
    EXPECT_EQ(last_from, loopback().with_port(sender.local_address().port()));
  }
}

TEST_P(UdpSocketTest, CutsSuperPacketsIntoEqualDatagramsAndAShorterLastOne) {
  UdpSocket sender = UdpSocket::open(sender_address()).value();
  UdpSocket receiver = UdpSocket::open(loopback()).value();
  for (const std::size_t segment : {1, 7, 1000, 1021, 1200, 1452, 8100, 32'500}) {
    const std::size_t most = std::min(segment * UdpSocket::kSegmentsMax, UdpSocket::kSuperPacketBytesMax);
    for (const std::size_t length : {segment + 1, 2 * segment - 1, 2 * segment, most - 1, most}) {
      if (length > segment && length <= most) expect_round_trip(sender, receiver, length, segment);
    }
  }
  EXPECT_TRUE(sender.segmentation_offload());
}

TEST_P(UdpSocketTest, SendsASuperPacketInOneCall) {
  UdpSocket sender = UdpSocket::open(sender_address()).value();
  UdpSocket receiver = UdpSocket::open(loopback()).value();
  expect_round_trip(sender, receiver, 64'000, 1000);
  EXPECT_EQ(sender.counters().send_calls, 1u);
  EXPECT_EQ(sender.counters().datagrams_sent, 64u);
  EXPECT_EQ(sender.counters().bytes_sent, 64'000u);
  EXPECT_EQ(sender.counters().blocked_sends, 0u);
  EXPECT_EQ(receiver.counters().datagrams_received, 64u);
  EXPECT_EQ(receiver.counters().bytes_received, 64'000u);
  EXPECT_LT(receiver.counters().receive_calls, 64u) << "the kernel has joined them again";
}

TEST_P(UdpSocketTest, SendsOneByOneWhenTold) {
  UdpSocket sender = UdpSocket::open(sender_address(), {.segmentation_offload = false}).value();
  UdpSocket receiver = UdpSocket::open(loopback(), {.segmentation_offload = false}).value();
  expect_round_trip(sender, receiver, 10'001, 1000);
  EXPECT_EQ(sender.counters().send_calls, 11u);
  EXPECT_EQ(receiver.counters().datagrams_received, 11u);
}

// A socket without checksums is one that the kernel refuses to cut super-packets for.
TEST_P(UdpSocketTest, GoesOnOneByOneForGoodWhenTheKernelCannotCut) {
  UdpSocket sender = UdpSocket::open(sender_address()).value();
  UdpSocket receiver = UdpSocket::open(loopback()).value();
  const int on = 1;
  ASSERT_EQ(setsockopt(sender.fd(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  if (GetParam() == Way::kV6) {
    ASSERT_EQ(setsockopt(sender.fd(), IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof on), 0);
    ASSERT_EQ(setsockopt(receiver.fd(), IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on), 0);
  }
  expect_round_trip(sender, receiver, 5000, 1000);
  EXPECT_FALSE(sender.segmentation_offload());
  EXPECT_EQ(sender.counters().send_calls, 6u);
  expect_round_trip(sender, receiver, 4999, 1000);
  EXPECT_EQ(sender.counters().send_calls, 11u);
}

TEST_P(UdpSocketTest, HasNothingToReceiveWhenNothingCame) {
  UdpSocket socket = UdpSocket::open(loopback()).value();
  std::vector<std::byte> buffer(UdpSocket::kReceiveBufferMin);
  EXPECT_EQ(socket.receive(buffer).value().outcome, ReceiveOutcome::kBlocked);
}

TEST_P(UdpSocketTest, SaysThatADatagramIsTooBig) {
  UdpSocket sender = UdpSocket::open(sender_address()).value();
  const UdpSocket receiver = UdpSocket::open(loopback()).value();
  const std::vector<std::byte> bytes = pattern(65'536);
  EXPECT_EQ(sender.send(bytes, bytes.size(), receiver.local_address()).value().outcome, SendOutcome::kTooBig);
}

// The device takes 65,536 bytes; an IPv4 packet has at most one less.
TEST_P(UdpSocketTest, KnowsTheMtuOfTheLoopback) {
  const UdpSocket sender = UdpSocket::open(sender_address()).value();
  const std::size_t expected = GetParam() == Way::kV6 ? 65'536 : 65'535;
  EXPECT_EQ(sender.path_mtu(loopback()).value(), expected);
  EXPECT_EQ(sender.path_mtu(loopback().with_port(7)).value(), expected);
}

TEST_P(UdpSocketTest, NamesTheAddressThatIsInUse) {
  const UdpSocket first = UdpSocket::open(loopback()).value();
  const auto second = UdpSocket::open(first.local_address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kIo);
  EXPECT_NE(second.error().sentence().find(first.local_address().to_string()), std::string::npos) << second.error().sentence();
}

TEST_P(UdpSocketTest, ConnectedHearsThatNobodyIsThere) {
  Address gone;
  {
    const UdpSocket short_lived = UdpSocket::open(loopback()).value();
    gone = short_lived.local_address();
  }
  UdpSocket socket = UdpSocket::open(sender_address()).value();
  ASSERT_TRUE(socket.connect(gone));
  const std::vector<std::byte> bytes = pattern(10);
  std::vector<std::byte> buffer(UdpSocket::kReceiveBufferMin);
  EXPECT_EQ(socket.send(bytes, 10, gone).value().outcome, SendOutcome::kSent);
  wait_readable(socket);
  EXPECT_EQ(socket.receive(buffer).value().outcome, ReceiveOutcome::kRefused);
  EXPECT_EQ(socket.receive(buffer).value().outcome, ReceiveOutcome::kBlocked);
  EXPECT_EQ(socket.send(bytes, 10, gone).value().outcome, SendOutcome::kSent);
  wait_readable(socket);
  const Sent refused = socket.send(bytes, 10, gone).value();
  EXPECT_EQ(refused.outcome, SendOutcome::kRefused);
  EXPECT_EQ(refused.bytes, 0u);
}

TEST_P(UdpSocketTest, TellsHowMuchBufferItWasGiven) {
  const UdpSocket socket = UdpSocket::open(loopback(), {.buffer_bytes = 100'000}).value();
  EXPECT_EQ(socket.receive_buffer_bytes(), 100'000u);
  EXPECT_EQ(socket.send_buffer_bytes(), 100'000u);
}

TEST(UdpSocket, DualStackShowsIpv4PeersAsIpv4) {
  if (!has_v6()) GTEST_SKIP() << "this host has no IPv6";
  UdpSocket everywhere = UdpSocket::open(Address::any_v6(0)).value();
  UdpSocket peer = UdpSocket::open(Address::loopback_v4(0)).value();
  ASSERT_TRUE(peer.send(bytes_of("hello"), 5, Address::loopback_v4(everywhere.local_address().port())));
  wait_readable(everywhere);
  std::vector<std::byte> buffer(UdpSocket::kReceiveBufferMin);
  const Received received = everywhere.receive(buffer).value();
  EXPECT_EQ(text_of(received.bytes), "hello");
  EXPECT_EQ(received.from, peer.local_address());
}

TEST(UdpSocket, CannotReachAnotherFamilyOrWhatIsNoDestination) {
  UdpSocket socket = UdpSocket::open(Address::loopback_v4(0)).value();
  const std::vector<std::byte> bytes = pattern(10);
  EXPECT_EQ(socket.send(bytes, 10, Address::loopback_v6(9)).value().outcome, SendOutcome::kUnreachable);
  EXPECT_EQ(socket.send(bytes, 10, Address::loopback_v4(0)).value().outcome, SendOutcome::kUnreachable);
  EXPECT_EQ(socket.send(bytes, 3, Address::loopback_v4(0)).value().outcome, SendOutcome::kUnreachable);
  EXPECT_TRUE(socket.segmentation_offload()) << "a bad address is not the offload's fault";
  EXPECT_FALSE(socket.path_mtu(Address::loopback_v6(9)));
}

TEST(UdpSocket, RefusesToOpenNowhere) {
  EXPECT_EQ(UdpSocket::open(Address()).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(UdpSocket::open(Address::parse("192.0.2.1:0").value()).error().code(), ErrorCode::kIo);  // not an address of ours
}

TEST(UdpSocketDeath, KeepsToTheLimitsOfASuperPacket) {
  UdpSocket socket = UdpSocket::open(Address::loopback_v4(0)).value();
  const std::vector<std::byte> bytes = pattern(65'536);
  const Address to = socket.local_address();
  EXPECT_DEATH(static_cast<void>(socket.send(base::ByteView(bytes).first(65'401), 60'000, to)), "keeps to its limits");
  EXPECT_DEATH(static_cast<void>(socket.send(base::ByteView(bytes).first(65), 1, to)), "keeps to its limits");
}

TEST(UdpSocketDeath, NeedsABufferForTheLongestDelivery) {
  UdpSocket socket = UdpSocket::open(Address::loopback_v4(0)).value();
  std::vector<std::byte> buffer(UdpSocket::kReceiveBufferMin - 1);
  EXPECT_DEATH(static_cast<void>(socket.receive(buffer)), "longest super-packet");
}

}  // namespace
}  // namespace nexar::io
