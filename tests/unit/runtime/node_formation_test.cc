// How a world forms: who is waited for, who is told to come again, and who is refused.
#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/join_fixture.h"
#include "io/host.h"
#include "runtime/world.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;
using test::Rogue;
using test::World;
using wire::FrameType;
using wire::GoodbyeReason;

TEST(Formation, WaitsForAMemberThatHasNoViewYet) {
  World world(2);
  const auto early = world.open(0);
  const auto late = world.open(1);
  ASSERT_TRUE(early->form(0, world.view));
  const Result<void> alone = early->wait_ready(300ms);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code(), ErrorCode::kTimeout);
  EXPECT_NE(alone.error().sentence().find("rank 1 (called at " + late->address().to_string() + ": this node has no view yet)"),
            std::string::npos)
      << alone.error().sentence();
  ASSERT_EQ(alone.error().ranks().size(), 1u);
  EXPECT_EQ(alone.error().ranks()[0], 1);
  ASSERT_TRUE(late->form(1, world.view));
  EXPECT_TRUE(early->wait_ready(20s));
  EXPECT_TRUE(late->wait_ready(20s));
  EXPECT_TRUE(early->close());
  EXPECT_TRUE(late->close());
}

TEST(Formation, ShowsARankWithWhomItSharesItsCores) {
  for (const bool together : {true, false}) {
    World world(2);
    world.view.members[1].host = world.view.members[0].host;
    world.view.members[0].cores = {0};
    world.view.members[1].cores = {together ? 0 : 1};
    const auto first = world.open(0);
    const auto second = world.open(1);
    ASSERT_TRUE(first->form(0, world.view));
    ASSERT_TRUE(second->form(1, world.view));
    ASSERT_TRUE(first->wait_ready(20s));
    ASSERT_TRUE(second->wait_ready(20s));
    const bool spins = !together && io::online_cores() > 1;
    for (const auto& core : {first, second}) EXPECT_EQ(core->core_share(), (cluster::CoreShare{together, spins}));
    EXPECT_TRUE(first->close());
    EXPECT_TRUE(second->close());
  }
}

TEST(Formation, TriesEveryAddressAndRemembersWhatWorks) {
  World world(2);
  const auto caller = world.open(0);
  const auto callee = world.open(1);
  cluster::View view = world.view;
  view.members[1].addresses = {io::Address::loopback_v4(9), io::Address::parse("127.0.0.2:9").value(), callee->address()};
  ASSERT_TRUE(caller->form(0, view));
  ASSERT_TRUE(callee->form(1, view));
  ASSERT_TRUE(caller->wait_ready(20s));
  ASSERT_TRUE(callee->wait_ready(20s));
  EXPECT_EQ(caller->counters().value().peers[1].address, callee->address().to_string());
  EXPECT_TRUE(caller->close());
  EXPECT_TRUE(callee->close());
}

TEST(Formation, SaysWhomItMissesWhereItLookedAndWhy) {
  World world(3);
  const auto core = world.open(1);
  cluster::View view = world.view;
  view.members[2].addresses = {io::Address::loopback_v4(9), core->address()};
  ASSERT_TRUE(core->form(1, view));
  const Result<void> alone = core->wait_ready(1s);
  ASSERT_FALSE(alone);
  const std::string said = alone.error().sentence();
  EXPECT_NE(said.find("rank 0 (has to call us: nothing came)"), std::string::npos) << said;
  EXPECT_NE(said.find("rank 2 (called at 127.0.0.1:9, " + core->address().to_string()), std::string::npos) << said;
  EXPECT_NE(said.find("another one"), std::string::npos) << "at the second address is this node itself: " << said;
  EXPECT_TRUE(core->close());
}

TEST(Formation, EndsAtOnceWhenConfigurationsDiffer) {
  World world(2);
  Config other;
  other.large_msg_bytes *= 2;
  const auto caller = world.open(0);
  std::vector<std::string> logged;
  const auto callee = world.open(1, other, [&](const LogRecord& record) { logged.push_back(to_string(record)); });
  ASSERT_TRUE(callee->form(1, world.view));
  ASSERT_TRUE(caller->form(0, world.view));
  const Result<void> refused = caller->wait_ready(60s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kRefused);
  EXPECT_EQ(refused.error().ranks()[0], 1);
  EXPECT_NE(refused.error().sentence().find("rank 1 refuses rank 0"), std::string::npos) << refused.error().sentence();
  EXPECT_NE(refused.error().sentence().find("configuration digest"), std::string::npos) << refused.error().sentence();
  const Result<void> waits = callee->wait_ready(300ms);  // long enough to be called again
  ASSERT_FALSE(waits);
  EXPECT_NE(waits.error().sentence().find("configuration digest"), std::string::npos) << waits.error().sentence();
  EXPECT_TRUE(caller->close());
  EXPECT_TRUE(callee->close());
  ASSERT_EQ(logged.size(), 1u) << "once, where it was understood, and not tried again: " << fmt::format("{}", fmt::join(logged, "; "));
  EXPECT_NE(logged[0].find("a member was refused"), std::string::npos) << logged[0];
}

TEST(Formation, CanBeClosedWhileItIsWaitedFor) {
  World world(2);
  const auto core = world.open(0);
  world.view.members[1].addresses = {io::Address::loopback_v4(9)};
  ASSERT_TRUE(core->form(0, world.view));
  std::thread closer([&] { EXPECT_TRUE(core->close()); });
  const Result<void> waited = core->wait_ready(60s);
  closer.join();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code(), ErrorCode::kCancelled);
}

TEST(Formation, OpensTheFirstFreePortOfARange) {
  World world(1);
  const crypto::Identity who = world.identity(0);
  NodeCore::Options options;
  options.identity = &who;
  options.address = io::Address::loopback_v4(0);
  options.port_first = 42'000;
  options.port_last = 42'100;
  const auto first = NodeCore::open(options).value();
  const auto second = NodeCore::open(options).value();
  EXPECT_GE(first->address().port(), 42'000);
  EXPECT_GT(second->address().port(), first->address().port());
  options.port_first = options.port_last = first->address().port();
  const Result<std::shared_ptr<NodeCore>> none = NodeCore::open(options);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().to_string().find("no port from"), std::string::npos) << none.error().to_string();
  EXPECT_TRUE(first->close());
  EXPECT_TRUE(second->close());
}

class GreetingTest : public testing::Test {
 protected:
  GreetingTest() : world(2), core(world.open(1)), rogue(world, 0) {}
  void form() { ASSERT_TRUE(core->form(1, world.view)); }
  void call() {
    rogue.call(1);
    ASSERT_TRUE(rogue.run_until([&] { return rogue.ready || rogue.end; }));
  }
  void expect_goodbye(GoodbyeReason reason, std::string_view text) {
    ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kGoodbye); }));
    EXPECT_EQ(rogue.last<wire::Goodbye>().reason, reason);
    EXPECT_NE(rogue.last<wire::Goodbye>().text.find(text), std::string::npos) << rogue.last<wire::Goodbye>().text;
    ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); })) << "the link ends when the goodbye has come";
    EXPECT_FALSE(rogue.has(FrameType::kHello));
  }

  World world;
  std::shared_ptr<NodeCore> core;
  Rogue rogue;
};

TEST_F(GreetingTest, AnythingButHelloFirstIsAProtocolError) {
  form();
  call();
  rogue.say(wire::Ping{});
  ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
  EXPECT_EQ(rogue.end->kind, transport::LinkEnd::Kind::kRefused);
  EXPECT_NE(rogue.end->error.sentence().find("a ping frame came before"), std::string::npos) << rogue.end->error.sentence();
}

TEST_F(GreetingTest, ACallerIsToldToComeAgainWhenThereIsNoView) {
  call();
  rogue.say(rogue.hello());
  expect_goodbye(GoodbyeReason::kNotYet, "no view yet");
}

TEST_F(GreetingTest, ANodeThatIsInNoViewIsToldToComeAgain) {
  world.view.members[0].node.bytes[0] ^= std::byte{1};
  form();
  world.view.members[0].node.bytes[0] ^= std::byte{1};
  call();
  rogue.say(rogue.hello());
  expect_goodbye(GoodbyeReason::kNotYet, "is not in the view");
}

TEST_F(GreetingTest, CertificatesThatExpiredOrAreOfAnotherClusterAreRefusedInTheHandshakeAndCounted) {
  form();
  const NodeId node = world.view.member(0).node;
  const auto now = io::real_clock().wall();
  ClusterId elsewhere;
  elsewhere.bytes[0] = std::byte{9};
  const crypto::Identity refused[] = {
      world.authority.make_node(node, now - std::chrono::days(31)).value(),          // expired yesterday
      crypto::LocalAuthority::make({}).value().make_node(node, now).value(),         // of this cluster's name, by another authority
      crypto::LocalAuthority::make(elsewhere).value().make_node(node, now).value(),  // of another cluster
  };
  for (const crypto::Identity& identity : refused) {
    Rogue stranger(world, 0, identity);
    stranger.call(1);
    ASSERT_TRUE(stranger.run_until([&] { return stranger.end.has_value(); }));
    EXPECT_EQ(stranger.end->kind, transport::LinkEnd::Kind::kRefused) << stranger.end->error.sentence();
    EXPECT_TRUE(stranger.frames.empty());
  }
  EXPECT_EQ(core->counters().value().handshakes_refused, std::size(refused));
}

TEST_F(GreetingTest, AHelloInAnothersNameIsRefused) {
  form();
  call();
  wire::Hello hello = rogue.hello();
  hello.node = world.view.member(1).node;
  rogue.say(hello);
  expect_goodbye(GoodbyeReason::kRefused, "says that it is node");
}

TEST_F(GreetingTest, OtherPlansAreRefusedNamingBothVersions) {
  form();
  call();
  wire::Hello hello = rogue.hello();
  hello.plan_version = plan::kPlanVersion + 1;
  rogue.say(hello);
  expect_goodbye(GoodbyeReason::kRefused, fmt::format("plan version {}, this node has {}", plan::kPlanVersion + 1, plan::kPlanVersion));
}

// The same at the seed, where nodes meet first.
using JoiningNode = cluster::test::JoinTest;
TEST_F(JoiningNode, IsRefusedWhereOthersHaveOtherPlans) {
  Seed seed = start_seed(2);
  std::atomic<bool> enrolled = false;
  std::thread other([&] {
    cluster::JoinClient::Options asked = options(seed.address());
    asked.plan_version = plan::kPlanVersion + 1;
    EXPECT_FALSE(join(std::move(asked), [&](cluster::JoinClient&) { enrolled = true; }));
  });
  while (!enrolled) std::this_thread::yield();
  JoinOptions here;
  here.seed = seed.address();
  here.token = credentials().token();
  const Result<Node> refused = Node::join(here);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kRefused);
  const std::string versions = fmt::format(" has plan version {}, and 'a node' has {}", plan::kPlanVersion, plan::kPlanVersion + 1);
  EXPECT_NE(refused.error().sentence().find(versions), std::string::npos) << refused.error().sentence();
  seed.stop();
  other.join();
}

TEST_F(GreetingTest, AnotherEpochIsRefusedOrTooEarly) {
  world.view.epoch = 5;
  form();
  call();
  rogue.say(rogue.hello(), 4);
  expect_goodbye(GoodbyeReason::kRefused, "its epoch 4 is over");
  Rogue early(world, 0);
  early.call(1);
  ASSERT_TRUE(early.run_until([&] { return early.ready; }));
  early.say(early.hello(), 6);
  ASSERT_TRUE(early.run_until([&] { return early.has(FrameType::kGoodbye); }));
  EXPECT_EQ(early.last<wire::Goodbye>().reason, GoodbyeReason::kNotYet);
}

TEST_F(GreetingTest, AHelloWithoutCreditIsAProtocolError) {
  form();
  call();
  wire::Hello hello = rogue.hello();
  hello.announcements = 0;
  rogue.say(hello);
  ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
  EXPECT_EQ(rogue.end->kind, transport::LinkEnd::Kind::kRefused);
}

TEST_F(GreetingTest, ASecondLinkIsADuplicate) {
  form();
  call();
  rogue.say(rogue.hello());
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kHello); }));
  EXPECT_EQ(rogue.frames.size(), 1u) << "nothing is sent before the caller has said that it takes frames";
  Rogue second(world, 0);
  second.call(1);
  ASSERT_TRUE(second.run_until([&] { return second.ready; }));
  second.say(second.hello());
  ASSERT_TRUE(second.run_until([&] { return second.has(FrameType::kGoodbye); }));
  EXPECT_EQ(second.last<wire::Goodbye>().reason, GoodbyeReason::kNotYet) << "the first may be given up";

  rogue.say(wire::Ping{.nonce = 7, .time = 9});
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kPong); }));
  EXPECT_TRUE(core->wait_ready(10s));
  Rogue third(world, 0);
  third.call(1);
  ASSERT_TRUE(third.run_until([&] { return third.ready; }));
  third.say(third.hello());
  ASSERT_TRUE(third.run_until([&] { return third.has(FrameType::kGoodbye); }));
  EXPECT_EQ(third.last<wire::Goodbye>().reason, GoodbyeReason::kDuplicate);
}

TEST_F(GreetingTest, ALinkThatEndsBeforeItIsUsedIsNoLossAndAnotherMayCome) {
  form();
  call();
  rogue.say(rogue.hello());
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kHello); }));
  rogue.link->abort("changed my mind");
  ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
  // The node may hear of it a little later than we do, and says "not yet" till then.
  for (bool linked = false; !linked;) {
    Rogue again(world, 0);
    again.call(1);
    ASSERT_TRUE(again.run_until([&] { return again.ready; }));
    again.say(again.hello());
    ASSERT_TRUE(again.run_until([&] { return again.has(FrameType::kGoodbye) || again.has(FrameType::kHello); }));
    linked = again.has(FrameType::kHello);
    if (!linked) continue;
    again.say(wire::Ping{});
    ASSERT_TRUE(again.run_until([&] { return again.has(FrameType::kPong); }));
    EXPECT_TRUE(core->wait_ready(10s));
  }
}

TEST_F(GreetingTest, LinksThatSayNothingAreBoundedAndDropped) {
  form();
  std::vector<std::unique_ptr<Rogue>> silent;
  for (int i = 0; i < 4; ++i) {
    silent.push_back(std::make_unique<Rogue>(world, 0));
    silent.back()->call(1);
    Rogue& one = *silent.back();
    ASSERT_TRUE(one.run_until([&] { return one.ready; }));
  }
  // The two that are over the limit end at once, the others when their time is over.
  for (std::size_t i : {2u, 3u}) {
    ASSERT_TRUE(silent[i]->run_until([&] { return silent[i]->end.has_value(); }));
    EXPECT_NE(silent[i]->end->error.sentence().find("nobody takes this link"), std::string::npos);
  }
  for (std::size_t i : {0u, 1u}) {
    ASSERT_TRUE(silent[i]->run_until([&] { return silent[i]->end.has_value(); }));
    EXPECT_NE(silent[i]->end->error.sentence().find("no hello within 5s"), std::string::npos) << silent[i]->end->error.sentence();
  }
}

TEST_F(GreetingTest, APeerThatNamesGroupsWithoutEndIsDisconnectedAndCounted) {
  form();
  call();
  rogue.say(rogue.hello());
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kHello); }));
  for (mesh::GroupId group = 0; group <= wire::kEarlyGroupsMax; ++group) rogue.say(wire::Queued{.messages = 1}, 1, 1000 + group);
  ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
  EXPECT_NE(rogue.end->error.sentence().find("groups that are not known here"), std::string::npos) << rogue.end->error.sentence();
  EXPECT_EQ(core->counters().value().protocol_errors, 1u);
}

TEST_F(GreetingTest, APeersOwnLimitsAreKept) {
  form();
  call();
  wire::Hello hello = rogue.hello();
  hello.eager_messages = 2;
  hello.announcements = 3;
  rogue.say(hello);
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kHello); }));
  rogue.say(wire::Ping{});
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kPong); }));
  ASSERT_TRUE(core->wait_ready(10s));
  const Node node(core);
  std::vector<Operation> sends;
  for (Tag tag = 0; tag < 10; ++tag) sends.push_back(node.world().start_send("x", 1, 0, tag));
  const auto count = [&](FrameType type) {
    return std::count_if(rogue.frames.begin(), rogue.frames.end(), [&](const auto& frame) { return frame.header.type == type; });
  };
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kQueued); }));
  ASSERT_TRUE(rogue.run_until([&] { return count(FrameType::kAnnounce) == 3; }));
  EXPECT_EQ(count(FrameType::kMessage), 2);
  rogue.link->abort("that was all");  // or the node would wait for it when it closes
  ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
}

}  // namespace
}  // namespace nexar::runtime
