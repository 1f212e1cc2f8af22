// Links of observers: callers without a certificate at an endpoint that asks everybody else for one.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "transport/quic_pair.h"

namespace nexar::transport::test {
namespace {

class Anybody final : public PeerVerifier {
  Result<void> verify(const crypto::Certificate&) override { return {}; }
};

// A node that takes observers, or does not.
struct ObservedSide : Side {
  using Side::Side;
  bool takes_observers() const override { return takes; }
  LinkHandler* on_observer(Link& link) override {
    observers.push_back(std::make_unique<Recorder>());
    observers.back()->link = &link;
    return observers.back().get();
  }
  bool takes = true;
  std::vector<std::unique_ptr<Recorder>> observers;
};

class QuicObserverTest : public QuicTest {
 protected:
  std::unique_ptr<quic::Endpoint> observer() {
    return quic::Endpoint::open_observer({*loop, io::system_random()}, io::Address::loopback_v4(0), anybody).value();
  }

  Anybody anybody;
  ObservedSide node{*loop, authority, 1};
  Recorder handler;
};

TEST_F(QuicObserverTest, AreLetInWithoutACertificateAndAreNoLinksOfMembers) {
  const auto client = observer();
  handler.link = client->connect(node.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end || (handler.ready && !node.observers.empty() && node.observers.front()->ready); });
  ASSERT_TRUE(handler.ready);
  ASSERT_EQ(node.observers.size(), 1u);
  EXPECT_EQ(node.observers.front()->link->peer_certificate(), nullptr);
  EXPECT_TRUE(node.accepted.empty());
  EXPECT_EQ(handler.link->peer_certificate()->node().bytes[0], std::byte{1});
}

TEST_F(QuicObserverTest, AreRefusedByANodeThatTakesNone) {
  node.takes = false;
  const auto client = observer();
  handler.link = client->connect(node.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_TRUE(node.observers.empty());
}

TEST_F(QuicObserverTest, MembersStillShowTheirCertificates) {
  ObservedSide other(*loop, authority, 2);
  connect(other, node, handler);
  ASSERT_TRUE(handler.ready);
  ASSERT_EQ(node.accepted.size(), 1u);
  EXPECT_TRUE(node.observers.empty());
  EXPECT_EQ(node.accepted.front()->link->peer_certificate()->node().bytes[0], std::byte{2});
}

TEST_F(QuicObserverTest, WhoWantsALinkAndShowsNoCertificateIsRefused) {
  const auto client = quic::Endpoint::open_anonymous({*loop, io::system_random()}, io::Address::loopback_v4(0), anybody).value();
  handler.link = client->connect(node.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_EQ(handler.end->kind, LinkEnd::Kind::kRefused);
  EXPECT_TRUE(node.accepted.empty());
  EXPECT_TRUE(node.observers.empty());
}

TEST_F(QuicObserverTest, WhoHasACertificateOfAnotherAuthorityIsRefused) {
  const crypto::LocalAuthority foreign = crypto::LocalAuthority::make({}).value();
  Side stranger(*loop, foreign, 3, io::Address::loopback_v4(0), &authority);
  handler.link = stranger.endpoint->connect(node.endpoint->local_address(), handler).value();
  run_until([&] { return handler.end.has_value(); });
  ASSERT_TRUE(handler.end);
  EXPECT_TRUE(node.accepted.empty());
  EXPECT_TRUE(node.observers.empty());
}

}  // namespace
}  // namespace nexar::transport::test
