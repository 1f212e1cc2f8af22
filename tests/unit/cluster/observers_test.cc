// Those who look: what they are told, and what strangers are not.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "cluster/join_proof.h"
#include "cluster/observation.h"
#include "cluster/observers.h"
#include "cluster/strangers.h"

namespace nexar::cluster::test {
namespace {

using namespace std::chrono_literals;

// A node that is observed, with a loop that the test turns.
class ObserversTest : public testing::Test, private transport::quic::LinkAcceptor {
 protected:
  ObserversTest()
      : credentials_(SeedCredentials::make().value()),
        token(credentials_.content().token()),
        authority_(
            crypto::Authority::make(crypto::PrivateKey::parse(credentials_.content().key.der().view()).value(), token.cluster).value()),
        observers(*loop, log_, crypto::Secret(token.secret.view()), token.cluster, [this] { return ++looks, seen; }) {
    endpoint_ = transport::quic::Endpoint::open_to_anybody({*loop, io::system_random()}, io::Address::loopback_v4(0), authority_.key(),
                                                           authority_.certificate(), *this)
                    .value();
    voices_endpoint_ =
        transport::quic::Endpoint::open_observer({*loop, io::system_random()}, io::Address::loopback_v4(0), anybody_).value();
  }
  ~ObserversTest() override { endpoint_.reset(); }

  transport::LinkHandler* on_link(transport::Link&) override { return nullptr; }
  bool takes_observers() const override { return true; }
  transport::LinkHandler* on_observer(transport::Link& link) override {
    if (!is_false) return observers.accept(link);
    voices_.push_back(std::make_unique<Voice>());
    Voice& voice = *voices_.back();
    voice.link = &link;
    voice.answer = [&voice](const Voice::Frame&) { voice.say(wire::InfoAnswer{.rank = 7}); };
    return &voice;
  }

  const io::Address& address() const { return endpoint_->local_address(); }

  void run_until(const std::function<bool()>& done) {
    const base::Time deadline = loop->refresh() + 1min;
    while (!done() && loop->refresh() < deadline) loop->turn(10ms);
  }

  // Somebody who has the port and says what a test tells it to.
  Voice& call() {
    voices_.push_back(std::make_unique<Voice>());
    Voice& voice = *voices_.back();
    voice.link = voices_endpoint_->connect(address(), voice).value();
    run_until([&] { return voice.ready || voice.end; });
    return voice;
  }

  wire::InfoRequest request(const Voice& voice, JoinRole role = JoinRole::kObserver) const {
    return {join_proof(role, token.secret.view(), token.cluster, *voice.link).value(), true};
  }

  std::vector<Result<Observed>> look(const std::vector<Sight>& sights) {
    std::vector<Result<Observed>> results;
    std::atomic<bool> done = false;
    std::thread observer([&] {
      results = observe(token, sights, 30s);
      done = true;
    });
    while (!done) loop->turn(1ms);
    observer.join();
    return results;
  }

  std::unique_ptr<io::EpollLoop> loop = io::EpollLoop::open().value();
  Result<Observers::Snapshot> seen = Observers::Snapshot();
  int looks = 0;
  bool is_false = false;  // it has a certificate of the cluster and does not know the secret

 private:
  SeedCredentials credentials_;

 protected:
  Token token;

 private:
  crypto::Authority authority_;
  base::Logger log_{LogLevel::kOff, [](const LogRecord&) {}};
  Anybody anybody_;

 protected:
  Observers observers;

 private:
  std::vector<std::unique_ptr<Voice>> voices_;
  std::unique_ptr<transport::quic::Endpoint> endpoint_;
  std::unique_ptr<transport::quic::Endpoint> voices_endpoint_;
};

// More than a lane holds at once.
Observers::Snapshot large_world() {
  Observers::Snapshot snapshot;
  snapshot.answer.rank = 7;
  snapshot.answer.name = "a node";
  snapshot.answer.counters.rpc_served = 11;
  auto view = std::make_shared<View>();
  view->epoch = 3;
  for (int i = 0; i < 1000; ++i) {
    NodeId node;
    node.bytes[0] = static_cast<std::byte>(i);
    node.bytes[1] = static_cast<std::byte>(i / 256);
    view->members.push_back({node, HostId{}, CoreSet{}, {io::Address::loopback_v4(static_cast<std::uint16_t>(1000 + i))}});
    snapshot.peers.push_back({.rank = i, .no_shm = std::string(1000, 'm'), .no_tcp = std::string(1000, 't')});
  }
  snapshot.view = std::move(view);
  return snapshot;
}

TEST_F(ObserversTest, AreToldEverythingHoweverMuchItIs) {
  seen = large_world();
  const std::vector<Result<Observed>> results = look({{.addresses = {address()}, .view = true}, {.addresses = {address()}}});
  for (const Result<Observed>& one : results) {
    ASSERT_TRUE(one) << one.error().to_string();
    EXPECT_EQ(one->answer.rank, 7);
    EXPECT_EQ(one->answer.name, "a node");
    EXPECT_EQ(one->answer.counters, seen->answer.counters);
    EXPECT_EQ(one->peers, seen->peers);
    EXPECT_EQ(one->address, address());
  }
  EXPECT_EQ(results[0]->view, *seen->view);
  EXPECT_TRUE(results[1]->view.members.empty()) << "it was not asked for";
  run_until([&] { return observers.size() == 0; });
  EXPECT_EQ(observers.size(), 0u);
}

TEST_F(ObserversTest, AreToldWhyNothingIsKnown) {
  seen = Error(ErrorCode::kRefused, "this node has no view yet");
  const Result<Observed> result = look({{.addresses = {address()}}}).front();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sentence(), "this node has no view yet");
}

TEST_F(ObserversTest, LookOnlyAtTheNodeThatIsMeant) {
  NodeId node;
  node.bytes[0] = std::byte{1};
  const Result<Observed> result = look({{.addresses = {address()}, .node = node}}).front();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().sentence().find("another node"), std::string::npos) << result.error().to_string();
  EXPECT_EQ(looks, 0);
}

TEST_F(ObserversTest, FindTheirNodeAmongAddressesThatAreSilent) {
  const Result<Observed> result = look({{.addresses = {io::Address::loopback_v4(9), address()}}}).front();
  EXPECT_TRUE(result) << result.error().to_string();
}

TEST_F(ObserversTest, WithoutTheSecretNothingIsLookedUp) {
  Voice& wrong = call();
  wrong.say(wire::InfoRequest{});
  run_until([&] { return !wrong.frames.empty(); });
  ASSERT_EQ(wrong.frames.size(), 1u);
  EXPECT_EQ(wrong.frames[0].header.type, wire::FrameType::kJoinRefuse);
  EXPECT_EQ(observers.wrong_proofs(), 1u);

  // What proves something else proves nothing here: that of a node that joins, or our own sent back.
  for (const JoinRole role : {JoinRole::kWorker, JoinRole::kSeed, JoinRole::kObserved}) {
    Voice& other = call();
    other.say(request(other, role));
    run_until([&] { return !other.frames.empty(); });
    EXPECT_EQ(other.frames[0].header.type, wire::FrameType::kJoinRefuse);
  }
  EXPECT_EQ(looks, 0);
}

TEST_F(ObserversTest, BelieveNobodyWhoDoesNotKnowTheSecret) {
  is_false = true;
  const Result<Observed> result = look({{.addresses = {address()}}}).front();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kRefused);
  EXPECT_NE(result.error().sentence().find("does not know the secret"), std::string::npos) << result.error().to_string();
}

TEST_F(ObserversTest, AskOnceAndSayNothingElse) {
  Voice& early = call();
  early.say(wire::JoinProof{});
  run_until([&] { return early.end.has_value(); });
  EXPECT_TRUE(early.end);
  EXPECT_TRUE(early.frames.empty());

  Voice& late = call();
  late.say(request(late));
  run_until([&] { return !late.frames.empty(); });
  EXPECT_EQ(late.frames[0].header.type, wire::FrameType::kInfoAnswer);
  late.say(request(late));
  run_until([&] { return late.end.has_value(); });
  EXPECT_TRUE(late.end) << "a second question has no place";
  EXPECT_EQ(looks, 1);
}

TEST_F(ObserversTest, WhoSaysNothingMakesWayForOthers) {
  seen = large_world();
  for (std::size_t i = 0; i < 3 * kObserversMax; ++i) {
    call();
    EXPECT_LE(observers.size(), 2 * kObserversMax);
  }
  const Result<Observed> result = look({{.addresses = {address()}}}).front();
  EXPECT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(looks, 1);
  // And in the end they are sent away.
  run_until([&] { return observers.size() == 0; });
  EXPECT_EQ(observers.size(), 0u);
}

TEST_F(ObserversTest, AreSentAwayWhenTheNodeGoes) {
  Voice& voice = call();
  observers.stop("the node goes");
  run_until([&] { return voice.end.has_value(); });
  EXPECT_TRUE(voice.end);
  Voice& next = call();
  run_until([&] { return next.end.has_value(); });
  EXPECT_TRUE(next.end);
  EXPECT_EQ(observers.size(), 0u);
}

}  // namespace
}  // namespace nexar::cluster::test
