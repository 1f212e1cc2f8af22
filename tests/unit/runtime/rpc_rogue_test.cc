// Members that break the rules of calls, and what a node answers.
#include <atomic>
#include <thread>

#include "nexar/rpc.h"
#include "runtime/world.h"
#include "wire/rpc_messages.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;
using test::Rogue;
using test::World;
using wire::FrameType;
using Bytes = std::vector<std::byte>;

// A node, rank 1, that serves `hang`, and a member 0 in the test's hand.
struct RpcRogueTest : testing::Test {
  RpcRogueTest() : world(2), rogue((world.open(1), world), 0) {
    EXPECT_TRUE(world.cores[1]->form(1, world.view));
    rogue.call(1);
    EXPECT_TRUE(rogue.run_until([&] { return rogue.ready; }));
    rogue.say(rogue.hello());
    EXPECT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kHello); }));
    rogue.say(wire::Ping{});
    EXPECT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kPong); }));
    node.emplace(world.cores[1]);
    EXPECT_TRUE(node->rpc().serve("hang", [this](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
      while (!context.cancelled() && !open) std::this_thread::sleep_for(1ms);
      return Bytes(1);
    }));
    EXPECT_TRUE(node->rpc().serve("grow", [](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> { return Bytes(100'000); }));
  }
  void TearDown() override {
    open = true;
    if (rogue.link != nullptr) rogue.link->abort("the test is over");
    EXPECT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
  }

  void request(std::uint64_t id, const Function& function) {
    const wire::RpcRequest message{.call = id, .function = function.key()};
    ASSERT_TRUE(rogue.link->send(wire::header_of(message, {.epoch = 1}, 0), {}));
  }
  void expect_end(std::string_view text) {
    ASSERT_TRUE(rogue.run_until([&] { return rogue.end.has_value(); }));
    EXPECT_NE(rogue.end->error.sentence().find(text), std::string::npos) << rogue.end->error.sentence();
  }

  World world;
  Rogue rogue;
  std::atomic<bool> open = false;
  std::optional<Node> node;
};

TEST_F(RpcRogueTest, ANumberThatIsInUseEndsTheLink) {
  request(7, "hang");
  request(7, "hang");
  expect_end("rank 0 used the number of a call, 7, a second time");
}

TEST_F(RpcRogueTest, AFunctionOfAGroupIsForItsMembers) {
  const auto nobody = [](Rank) { return std::optional<Rank>(); };
  const auto handler = [](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> { return Bytes(); };
  ASSERT_TRUE(world.cores[1]->serve(5, "inner", {.name = "inner", .handler = handler, .rank_of = nobody}));
  const wire::RpcRequest message{.call = 9, .function = Function("inner").key()};
  ASSERT_TRUE(rogue.link->send(wire::header_of(message, {.group = 5, .epoch = 1}, 0), {}));
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kRpcFailure); }));
  EXPECT_EQ(rogue.last<wire::RpcFailure>().status, wire::RpcStatus::kRefused);
  EXPECT_EQ(rogue.last<wire::RpcFailure>().error.sentence(), "rank 0 is no member of the group that function inner belongs to");
}

TEST_F(RpcRogueTest, ABodyUnderAMessagesNumberEndsTheLink) {
  rogue.say(wire::RpcLargeRequest{.call = 7, .function = Function("hang").key(), .transfer = 5, .bytes = 100'000});
  expect_end("offered the bytes of a call under number 0x5");
}

TEST_F(RpcRogueTest, ABodyUnderANumberThatWasUsedEndsTheLink) {
  const std::uint64_t number = wire::kOfCall + 3;
  rogue.say(wire::RpcLargeRequest{.call = 7, .function = Function("hang").key(), .transfer = number, .bytes = 100'000});
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kGrant); }));
  EXPECT_EQ(rogue.last<wire::Grant>().transfer, number);
  rogue.say(wire::RpcLargeRequest{.call = 8, .function = Function("hang").key(), .transfer = number, .bytes = 100'000});
  expect_end("offered the bytes of a call under number");
}

TEST_F(RpcRogueTest, MoreBytesThanANodeHoldsAreRefusedBeforeTheyAreAllocated) {
  rogue.say(wire::RpcLargeRequest{.call = 7, .function = Function("hang").key(), .transfer = wire::kOfCall, .bytes = UINT64_MAX});
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kRpcFailure) && rogue.has(FrameType::kRefuse); }));
  const wire::RpcFailure failure = rogue.last<wire::RpcFailure>();
  EXPECT_EQ(failure.call, 7u);
  EXPECT_EQ(failure.status, wire::RpcStatus::kOverloaded);
  EXPECT_EQ(rogue.last<wire::Refuse>().transfer, wire::kOfCall);
}

TEST_F(RpcRogueTest, AnswersToNoCallAreDroppedAndCounted) {
  rogue.say(wire::RpcLargeReply{.call = 99, .transfer = wire::kOfCall + 1, .bytes = 1u << 30});
  rogue.say(wire::RpcFailure{.call = 99, .status = wire::RpcStatus::kOverloaded, .error = Error(ErrorCode::kOverloaded, "no")});
  ASSERT_TRUE(rogue.link->send(wire::header_of(wire::RpcReply{.call = 99}, {.epoch = 1}, 0), {}));
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kRefuse) && node->counters().value().rpc.late_answers == 3; }));
  EXPECT_EQ(rogue.last<wire::Refuse>().transfer, wire::kOfCall + 1);
}

TEST_F(RpcRogueTest, ALargeResultThatIsNeverAskedForIsHeldUntilItsCallerIsGone) {
  request(7, "grow");
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kRpcLargeReply); }));
  EXPECT_EQ(node->counters().value().rpc.serving_bytes, 100'000u);
  rogue.link->abort("enough");
  ASSERT_TRUE(rogue.run_until([&] { return rogue.end && node->counters().value().rpc.serving == 0; }));
  EXPECT_EQ(node->counters().value().rpc.serving_bytes, 0u);
}

TEST_F(RpcRogueTest, ALargeResultThatItsCallerCancelsIsLetGo) {
  request(7, "grow");
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kRpcLargeReply); }));
  rogue.say(wire::RpcCancel{.call = 7});
  ASSERT_TRUE(rogue.run_until([&] { return node->counters().value().rpc.serving == 0; }));
  rogue.say(wire::Grant{.transfer = rogue.last<wire::RpcLargeReply>().transfer, .bytes = 100'000});
  rogue.say(wire::Ping{.nonce = 5});
  ASSERT_TRUE(rogue.run_until([&] { return rogue.has(FrameType::kPong) && rogue.last<wire::Pong>().nonce == 5; }));
  EXPECT_FALSE(rogue.has(FrameType::kBulk)) << "a grant that comes too late is no grant";
}

}  // namespace
}  // namespace nexar::runtime
