// Namespaces, and what sockets do on a real device: a cable with an MTU of 1500.
#include "io/network_namespace.h"

#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "io/bytes_of.h"
#include "io/two_namespaces.h"
#include "io/udp_socket.h"

namespace nexar::io {
namespace {

ino_t current_namespace() {
  struct stat status {};
  EXPECT_EQ(stat("/proc/thread-self/ns/net", &status), 0);
  return status.st_ino;
}

std::optional<UdpSocket> open_in(const std::string& path, const char* local, const UdpOptions& options = {}) {
  std::optional<UdpSocket> socket;
  const Result<void> result = in_network_namespace(path, [&]() -> Result<void> {
    Result<UdpSocket> opened = UdpSocket::open(Address::parse(local).value(), options);
    if (!opened) return opened.error();
    socket = *std::move(opened);
    return {};
  });
  EXPECT_TRUE(result) << result.error().to_string();
  return socket;
}

TEST(NetworkNamespace, EmptyPathIsHere) {
  const ino_t here = current_namespace();
  ASSERT_TRUE(in_network_namespace("", [&]() -> Result<void> {
    EXPECT_EQ(current_namespace(), here);
    return {};
  }));
}

TEST(NetworkNamespace, NamesThePathThatIsNotThere) {
  const Result<void> result = in_network_namespace("/no/such/namespace", []() -> Result<void> {
    ADD_FAILURE() << "must not run";
    return {};
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kIo);
  EXPECT_NE(result.error().sentence().find("/no/such/namespace"), std::string::npos);
}

class CableTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = TwoNamespaces::unavailable()) GTEST_SKIP() << *reason;
    cable.emplace();
  }

  std::optional<TwoNamespaces> cable;
};

TEST_F(CableTest, RunsThereAndComesBackWithWhatTheWorkReturned) {
  const ino_t here = current_namespace();
  const Result<void> result = in_network_namespace(cable->left(), [&]() -> Result<void> {
    EXPECT_NE(current_namespace(), here);
    return Error(ErrorCode::kRefused, "the work's own error");
  });
  EXPECT_EQ(current_namespace(), here);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sentence(), "the work's own error");
}

TEST_F(CableTest, CarriesSuperPacketsBetweenNamespaces) {
  std::optional<UdpSocket> left = open_in(cable->left(), "10.77.0.1:0");
  std::optional<UdpSocket> right = open_in(cable->right(), "10.77.0.2:0");
  ASSERT_TRUE(left && right);
  const std::vector<std::byte> bytes = pattern(44 * 1472 + 17);
  ASSERT_EQ(left->send(bytes, 1472, right->local_address()).value().outcome, SendOutcome::kSent);
  std::vector<std::byte> buffer(UdpSocket::kReceiveBufferMin), got;
  while (got.size() < bytes.size()) {
    pollfd entry{right->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 10'000), 1);
    const Received received = right->receive(buffer).value();
    got.insert(got.end(), received.bytes.begin(), received.bytes.end());
  }
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(right->counters().datagrams_received, 45u);
}

TEST_F(CableTest, KnowsTheMtuOfThePathAndSaysWhatIsTooBigForIt) {
  std::optional<UdpSocket> left = open_in(cable->left(), "0.0.0.0:0");
  ASSERT_TRUE(left);
  const Address right = Address::parse("10.77.0.2:9").value();
  // Asked from here, answered for there; also after the probe was used for another path.
  EXPECT_EQ(left->path_mtu(right).value(), 1500u);
  EXPECT_EQ(left->path_mtu(Address::loopback_v4(9)).value(), 65'535u);
  EXPECT_EQ(left->path_mtu(right).value(), 1500u);

  const std::vector<std::byte> bytes = pattern(3000);
  EXPECT_EQ(left->send(base::ByteView(bytes).first(1473), 1473, right).value().outcome, SendOutcome::kTooBig);
  EXPECT_EQ(left->send(bytes, 1473, right).value().outcome, SendOutcome::kTooBig);
  EXPECT_TRUE(left->segmentation_offload()) << "too long segments are not the offload's fault";
  EXPECT_EQ(left->send(bytes, 1472, right).value().outcome, SendOutcome::kSent);
}

TEST_F(CableTest, SaysThatThereIsNoWay) {
  std::optional<UdpSocket> left = open_in(cable->left(), "0.0.0.0:0");
  ASSERT_TRUE(left);
  const Address nowhere = Address::parse("192.0.2.1:9").value();
  EXPECT_EQ(left->send(pattern(10), 10, nowhere).value().outcome, SendOutcome::kUnreachable);
  const auto mtu = left->path_mtu(nowhere);
  ASSERT_FALSE(mtu);
  EXPECT_NE(mtu.error().sentence().find("192.0.2.1:9"), std::string::npos);
}

// Nobody answers for 10.77.0.77, so datagrams to it wait in the send buffer for the neighbour's address, which does not come.
TEST_F(CableTest, BlocksHalfWayAndTellsHowMuchWentOut) {
  std::optional<UdpSocket> left = open_in(cable->left(), "10.77.0.1:0", {.buffer_bytes = 8192, .segmentation_offload = false});
  ASSERT_TRUE(left);
  const Address silent = Address::parse("10.77.0.77:9").value();
  const std::vector<std::byte> bytes = pattern(50 * 1000);
  const Sent sent = left->send(bytes, 1000, silent).value();
  EXPECT_EQ(sent.outcome, SendOutcome::kBlocked);
  EXPECT_GT(sent.bytes, 0u);
  EXPECT_LT(sent.bytes, bytes.size());
  EXPECT_EQ(sent.bytes % 1000, 0u);
  EXPECT_EQ(left->counters().blocked_sends, 1u);
  EXPECT_EQ(left->counters().bytes_sent, sent.bytes);
  EXPECT_EQ(left->counters().datagrams_sent, sent.bytes / 1000);
  EXPECT_EQ(left->send(bytes, 1000, silent).value().bytes, 0u);
}

TEST_F(CableTest, BlocksWithAWholeSuperPacket) {
  std::optional<UdpSocket> left = open_in(cable->left(), "10.77.0.1:0", {.buffer_bytes = 8192});
  ASSERT_TRUE(left);
  const Address silent = Address::parse("10.77.0.77:9").value();
  const std::vector<std::byte> bytes = pattern(5000);
  Sent sent;
  for (int i = 0; i < 50 && sent.outcome == SendOutcome::kSent; ++i) sent = left->send(bytes, 1000, silent).value();
  EXPECT_EQ(sent.outcome, SendOutcome::kBlocked);
  EXPECT_EQ(sent.bytes, 0u);
  EXPECT_TRUE(left->segmentation_offload());
}

}  // namespace
}  // namespace nexar::io
