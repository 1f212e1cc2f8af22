// Links on which only the server shows a certificate, as between a node that joins and its seed.
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "io/address.h"
#include "io/udp_socket.h"
#include "transport/quic_pair.h"

namespace nexar::transport::test {
namespace {

// Accepts exactly the authority that it was given.
class Pin : public PeerVerifier {
 public:
  explicit Pin(const crypto::LocalAuthority& authority) : certificate_(authority.authority().certificate()) {}
  Result<void> verify(const crypto::Certificate& certificate) override {
    return crypto::verify_authority(certificate, certificate_.public_fingerprint(), certificate_.cluster());
  }

 private:
  crypto::Certificate certificate_;
};

struct OpenServer : quic::LinkAcceptor {
  OpenServer(io::Loop& loop, const crypto::LocalAuthority& authority) {
    endpoint = quic::Endpoint::open_to_anybody({loop, io::system_random()}, io::Address::loopback_v4(0), authority.authority().key(),
                                               authority.authority().certificate(), *this)
                   .value();
  }
  LinkHandler* on_link(Link& link) override {
    accepted.push_back(std::make_unique<Recorder>());
    accepted.back()->link = &link;
    return accepted.back().get();
  }
  std::vector<std::unique_ptr<Recorder>> accepted;
  std::unique_ptr<quic::Endpoint> endpoint;
};

class QuicAnonymousTest : public QuicTest {
 protected:
  std::unique_ptr<quic::Endpoint> anonymous(PeerVerifier& verifier) {
    return quic::Endpoint::open_anonymous({*loop, io::system_random()}, io::Address::loopback_v4(0), verifier).value();
  }

  OpenServer server{*loop, authority};
  Pin pin{authority};
  Recorder handler;
};

TEST_F(QuicAnonymousTest, LinkACallerWithoutCertificateToAServerThatShowsTheAuthoritys) {
  const auto client = anonymous(pin);
  handler.link = client->connect(server.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end || (handler.ready && !server.accepted.empty() && server.accepted.front()->ready); });
  ASSERT_TRUE(handler.ready);
  EXPECT_TRUE(handler.link->peer_certificate()->is_authority());
  EXPECT_EQ(server.accepted.front()->link->peer_certificate(), nullptr);
  EXPECT_EQ(handler.link->peer_address(), server.endpoint->local_address());
  EXPECT_EQ(server.accepted.front()->link->peer_address(), client->local_address());
}

TEST_F(QuicAnonymousTest, ExportTheSameKeysAtBothEndsAndOthersOnAnotherLink) {
  const auto client = anonymous(pin);
  Recorder second;
  handler.link = client->connect(server.endpoint->local_address(), handler).value();
  second.link = client->connect(server.endpoint->local_address(), second).value();
  run_until([&] { return server.accepted.size() == 2 && server.accepted[0]->ready && server.accepted[1]->ready; });
  ASSERT_EQ(server.accepted.size(), 2u);
  using Key = std::array<std::byte, 32>;
  const auto exported = [](const Link& link, std::string_view label) {
    Key key{};
    EXPECT_TRUE(link.export_key(label, {}, key));
    return key;
  };
  const Key ours = exported(*handler.link, "EXPORTER-test");
  const Key theirs[] = {exported(*server.accepted[0]->link, "EXPORTER-test"), exported(*server.accepted[1]->link, "EXPORTER-test")};
  EXPECT_TRUE((ours == theirs[0]) != (ours == theirs[1])) << "one of the two links is ours";
  EXPECT_NE(ours, exported(*handler.link, "EXPORTER-other"));
}

TEST_F(QuicAnonymousTest, ExportNothingBeforeTheHandshakeIsDone) {
  const auto client = anonymous(pin);
  handler.link = client->connect(server.endpoint->local_address(), handler).value();
  std::array<std::byte, 32> key{};
  EXPECT_FALSE(handler.link->export_key("EXPORTER-test", {}, key));
}

TEST_F(QuicAnonymousTest, RefuseAServerWithAnotherKey) {
  const crypto::LocalAuthority other = crypto::LocalAuthority::make({}).value();
  Pin wrong(other);
  const auto client = anonymous(wrong);
  handler.link = client->connect(server.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_FALSE(handler.ready);
}

TEST_F(QuicAnonymousTest, AreRefusedByAnEndpointThatAsksForCertificates) {
  Side node(*loop, authority, 1);
  class Anybody : public PeerVerifier {
    Result<void> verify(const crypto::Certificate&) override { return {}; }
  } anybody;
  const auto client = anonymous(anybody);
  handler.link = client->connect(node.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_TRUE(node.accepted.empty());
}

TEST_F(QuicAnonymousTest, AcceptNobodyThemselves) {
  const auto client = anonymous(pin);
  const auto caller = anonymous(pin);
  handler.link = caller->connect(client->local_address(), handler).value();
  run_until([&] { return client->counters().packets_ignored > 0; });
  EXPECT_EQ(client->connections(), 0u);
  EXPECT_EQ(client->pending_handshakes(), 0u);
}

// A first packet of a version that nobody speaks, as RFC 9000 reserves them, with two connection ids.
std::vector<std::byte> packet_of_unknown_version(std::size_t bytes) {
  std::vector<std::byte> packet(bytes);
  const unsigned char start[] = {0xC0, 0x1A, 0x2A, 0x3A, 0x4A, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9};
  std::memcpy(packet.data(), start, sizeof start);
  return packet;
}

TEST_F(QuicAnonymousTest, TellTheirVersionToACallerWithAnother) {
  io::UdpSocket caller = io::UdpSocket::open(io::Address::loopback_v4(0)).value();
  const std::vector<std::byte> question = packet_of_unknown_version(1200);
  caller.send(question, question.size(), server.endpoint->local_address()).value();
  std::vector<std::byte> buffer(io::UdpSocket::kReceiveBufferMin);
  io::Received answer;
  run_until([&] {
    answer = caller.receive(buffer).value();
    return answer.outcome == io::ReceiveOutcome::kDatagrams;
  });
  // Version 0, their ids the other way around, and QUIC version 1.
  const unsigned char expected[] = {0, 0, 0, 0, 4, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1};
  ASSERT_EQ(answer.bytes.size(), 1 + sizeof expected);
  EXPECT_EQ(std::memcmp(answer.bytes.data() + 1, expected, sizeof expected), 0);
  EXPECT_EQ(server.endpoint->connections(), 0u);
}

TEST_F(QuicAnonymousTest, AreSilentToShortPacketsOfAnotherVersion) {
  io::UdpSocket caller = io::UdpSocket::open(io::Address::loopback_v4(0)).value();
  const std::vector<std::byte> question = packet_of_unknown_version(1199);
  caller.send(question, question.size(), server.endpoint->local_address()).value();
  run_until([&] { return server.endpoint->counters().packets_ignored > 0; });
  std::vector<std::byte> buffer(io::UdpSocket::kReceiveBufferMin);
  EXPECT_EQ(caller.receive(buffer).value().outcome, io::ReceiveOutcome::kBlocked);
}

TEST_F(QuicAnonymousTest, TellANewHandlerFromThenOn) {
  const auto client = anonymous(pin);
  handler.link = client->connect(server.endpoint->local_address(), handler).value();
  run_until([&] { return handler.ready && !server.accepted.empty(); });
  Recorder next;
  handler.link->set_handler(next);
  server.accepted.front()->link->close("done");
  run_until([&] { return next.end.has_value(); });
  EXPECT_TRUE(next.end);
  EXPECT_FALSE(handler.end);
}

}  // namespace
}  // namespace nexar::transport::test
