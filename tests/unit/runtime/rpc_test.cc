// Calls between whole nodes: what arrives, who runs it, and how it fails.
#include "nexar/rpc.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "nexar/node.h"
#include "nexar/typed_rpc.h"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  std::mt19937_64 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Bytes bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

Result<Bytes> echo(const RpcContext&, std::span<const std::byte> arguments) { return Bytes(arguments.begin(), arguments.end()); }

// Over shared memory, or over what NEXAR_TRANSPORT names.
std::vector<Node> world(int n, const Config& config = {}) {
  LocalOptions options;
  options.config = config;
  options.config.transport = Config::from_env().value().transport;
  return Node::local(n, options).value();
}

RpcCounters counters(const Node& node) { return node.counters().value().rpc; }

// Waits for what another thread is about to do.
template <typename F>
bool soon(F&& condition) {
  for (const auto end = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < end; std::this_thread::yield())
    if (condition()) return true;
  return condition();
}

// Handlers wait at it until it is opened, or until nobody wants their result any more.
struct Gate {
  std::atomic<bool> open = false;
  std::atomic<int> inside = 0;
  void pass(const RpcContext& context) {
    ++inside;
    soon([&] { return open.load() || context.cancelled(); });
    --inside;
  }
};

// A quick handler that copies 64 MiB keeps its engine for so long there that it is taken for dead.
#if defined(__SANITIZE_THREAD__)
constexpr int kLargest = 8 << 20;
#else
constexpr int kLargest = 64 << 20;
#endif

class RpcEcho : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Handlers, RpcEcho, testing::Bool());

TEST_P(RpcEcho, ArgumentsAndResultsOfEverySizeComeBackWhole) {
  const std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].rpc().serve("echo", echo, {.quick = GetParam()}));
  for (const std::size_t size : {0, 1, 8, 4096, 65536, 65537, 1 << 20, kLargest}) {
    const Bytes sent = pattern(size, size);
    const Result<Bytes> got = nodes[0].rpc().call(1, "echo", sent);
    ASSERT_TRUE(got) << size << ": " << got.error().to_string();
    EXPECT_TRUE(*got == sent) << size;
  }
  EXPECT_TRUE(soon([&] { return counters(nodes[1]).serving == 0; })) << "the last result's memory is let go";
  EXPECT_EQ(counters(nodes[1]).serving_bytes, 0u);
  EXPECT_EQ(counters(nodes[0]).calling, 0u);
}

TEST_P(RpcEcho, ASmallCallMayHaveALargeResultAndTheOtherWayRound) {
  const std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].rpc().serve("grow", [](const RpcContext&, std::span<const std::byte>) { return Result<Bytes>(pattern(3 << 20, 7)); },
                                   {.quick = GetParam()}));
  ASSERT_TRUE(nodes[1].rpc().serve(
      "shrink", [](const RpcContext&, std::span<const std::byte> bytes) { return Result<Bytes>(Bytes(bytes.begin(), bytes.begin() + 2)); },
      {.quick = GetParam()}));
  EXPECT_TRUE(nodes[0].rpc().call(1, "grow", {}).value() == pattern(3 << 20, 7));
  const Bytes large = pattern(5 << 20, 9);
  EXPECT_TRUE(nodes[0].rpc().call(1, "shrink", large).value() == Bytes(large.begin(), large.begin() + 2));
}

TEST_P(RpcEcho, ANodeCallsItself) {
  const std::vector<Node> nodes = world(1);
  ASSERT_TRUE(nodes[0].rpc().serve("echo", echo, {.quick = GetParam()}));
  for (const std::size_t size : {0, 5, 65537, 1 << 20})
    EXPECT_TRUE(nodes[0].rpc().call(0, "echo", pattern(size, 1)).value() == pattern(size, 1));
}

TEST(Rpc, EveryRankCallsEveryOtherWhileNobodyWaitsThere) {
  const std::vector<Node> nodes = world(4);
  for (const Node& node : nodes)
    ASSERT_TRUE(node.rpc().serve("who", [&node](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
      return encode_all(node.rank(), context.caller());
    }));
  for (const Node& node : nodes)
    for (Rank peer = 0; peer < 4; ++peer) {
      const auto answer = decode_all<Rank, Rank>(node.rpc().call(peer, "who", {}).value());
      ASSERT_TRUE(answer);
      EXPECT_EQ(*answer, std::tuple(peer, node.rank()));
    }
}

TEST(Rpc, ManyThreadsCallAtOnce) {
  const std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].rpc().serve("echo", echo));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int thread = 0; thread < 64; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20; ++i) {
        const Bytes sent = encode_all(thread, i);
        const Result<Bytes> got = nodes[0].rpc().call(1, "echo", sent);
        right += got && *got == sent;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 64 * 20);
  EXPECT_LE(counters(nodes[1]).threads, 4u) << "handlers that do not wait need no spare workers";
}

TEST(Rpc, CallsWithoutWaitingAreWaitedForInAnyOrder) {
  const std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].rpc().serve("echo", echo));
  std::vector<Bytes> sent;
  for (int i = 0; i < 100; ++i) sent.push_back(encode_all(i));
  std::vector<Operation> calls;
  calls.reserve(sent.size());
  for (const Bytes& bytes : sent) calls.push_back(nodes[0].rpc().start_call(1, "echo", bytes));
  for (std::size_t i = calls.size(); i-- > 0;) {
    EXPECT_EQ(calls[i].wait().value().bytes, 4u);
    EXPECT_TRUE(calls[i].take_bytes() == sent[i]);
  }
}

TEST(Rpc, AnUnknownFunctionIsNamed) {
  const std::vector<Node> nodes = world(2);
  for (const Bytes& arguments : {Bytes(), pattern(1 << 20, 1)}) {
    const Result<Bytes> got = nodes[0].rpc().call(1, "nobody/knows", arguments);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(got.error().sentence(), "rank 1 has no function nobody/knows");
    ASSERT_EQ(got.error().ranks().size(), 1u);
    EXPECT_EQ(got.error().ranks()[0], 1);
    EXPECT_EQ(got.error().operation(), "call of nobody/knows");
  }
  EXPECT_FALSE(nodes[0].rpc().call(1, 77, {}));
  EXPECT_EQ(counters(nodes[0]).calling, 0u);
}

TEST_P(RpcEcho, AHandlersErrorIsTheCauseOfTheCallers) {
  const std::vector<Node> nodes = world(2);
  const ServeOptions options{.quick = GetParam()};
  ASSERT_TRUE(nodes[1].rpc().serve(
      "returns", [](const RpcContext&, std::span<const std::byte>) { return Result<Bytes>(Error(ErrorCode::kDevice, "the disk is full")); },
      options));
  ASSERT_TRUE(nodes[1].rpc().serve(
      "throws", [](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> { throw std::runtime_error("ouch"); }, options));
  ASSERT_TRUE(nodes[1].rpc().serve(
      "throws odd", [](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> { throw 7; }, options));
  const Result<Bytes> returned = nodes[0].rpc().call(1, "returns", {});
  ASSERT_FALSE(returned);
  EXPECT_EQ(returned.error().code(), ErrorCode::kRefused);
  EXPECT_EQ(returned.error().sentence(), "function returns failed on rank 1: the disk is full");
  ASSERT_NE(returned.error().cause(), nullptr);
  EXPECT_EQ(returned.error().cause()->code(), ErrorCode::kDevice);
  const Result<Bytes> thrown = nodes[0].rpc().call(1, "throws", {});
  ASSERT_FALSE(thrown);
  EXPECT_NE(thrown.error().sentence().find("threw: ouch"), std::string::npos) << thrown.error().sentence();
  const Result<Bytes> odd = nodes[0].rpc().call(1, "throws odd", {});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.error().sentence().find("no std::exception"), std::string::npos) << odd.error().sentence();
  EXPECT_FALSE(nodes[0].rpc().call(1, "throws", {})) << "the worker that caught it runs on";
}

TEST(Rpc, AHandlerThatNeverReturnsIsLeftAtTheDeadlineAndTold) {
  const std::vector<Node> nodes = world(2);
  Gate gate;
  std::promise<bool> told;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", [&](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
    EXPECT_TRUE(context.deadline());
    gate.pass(context);
    told.set_value(context.cancelled());
    return Bytes(100000);
  }));
  const Result<Bytes> got = nodes[0].rpc().call(1, "hang", {}, {.deadline = 50ms});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(got.error().sentence(), "the call of hang on rank 1 did not end within 50ms");
  EXPECT_TRUE(told.get_future().get()) << "its token says that nobody waits";
  EXPECT_TRUE(soon([&] { return counters(nodes[1]).serving == 0; })) << "and what it returned is dropped";
  EXPECT_EQ(counters(nodes[0]).calling, 0u);
}

TEST(Rpc, DroppingACallCancelsIt) {
  const std::vector<Node> nodes = world(2);
  Gate gate;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", [&](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
    gate.pass(context);
    return Bytes();
  }));
  const Bytes large = pattern(8 << 20, 3);
  {
    const Operation small = nodes[0].rpc().start_call(1, "hang", {});
    ASSERT_TRUE(soon([&] { return gate.inside == 1; }));
    const Operation other = nodes[0].rpc().start_call(1, "hang", large);
  }
  EXPECT_TRUE(soon([&] { return gate.inside == 0 && counters(nodes[1]).serving == 0; }));
  EXPECT_EQ(counters(nodes[1]).serving_bytes, 0u);
  ASSERT_TRUE(nodes[1].rpc().serve("echo", echo));
  EXPECT_TRUE(nodes[0].rpc().call(1, "echo", large).value() == large) << "the link is none the worse";
}

// Replies that race with their deadlines: some in time, some late, none left behind.
TEST(Rpc, LateAnswersLeaveNothingBehind) {
  const std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].rpc().serve("late", [](const RpcContext& context, std::span<const std::byte> size) -> Result<Bytes> {
    std::this_thread::sleep_until(*context.deadline() - 300us);  // the event is time itself
    return Bytes(std::get<0>(*decode_all<std::size_t>(size)));
  }));
  int ended = 0;
  for (int i = 0; i < 100; ++i) {
    const Bytes size = encode_all(i % 2 == 0 ? std::size_t{10} : std::size_t{200'000});
    ended += nodes[0].rpc().call(1, "late", size, {.deadline = 2ms}) ? 0 : 1;
  }
  EXPECT_TRUE(soon([&] { return counters(nodes[1]).serving == 0; }));
  EXPECT_EQ(counters(nodes[1]).serving_bytes, 0u);
  EXPECT_EQ(counters(nodes[0]).calling, 0u);
  ASSERT_TRUE(nodes[1].rpc().serve("echo", echo));
  EXPECT_TRUE(nodes[0].rpc().call(1, "echo", pattern(100'000, 1)).value() == pattern(100'000, 1)) << ended << " were late";
}

TEST(Rpc, AFullQueueIsRefusedAtOnce) {
  Config config;
  config.rpc_workers = 1;
  config.rpc_queue = 2;
  const std::vector<Node> nodes = world(2, config);
  Gate gate;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", [&](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
    gate.pass(context);
    return Bytes(1);
  }));
  std::vector<Operation> calls;
  calls.push_back(nodes[0].rpc().start_call(1, "hang", {}));
  ASSERT_TRUE(soon([&] { return gate.inside == 1; }));
  for (int i = 0; i < 2; ++i) calls.push_back(nodes[0].rpc().start_call(1, "hang", {}));
  const Result<Bytes> refused = nodes[0].rpc().call(1, "hang", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOverloaded);
  EXPECT_EQ(refused.error().sentence(), "rank 1 did not take the call of hang: 2 calls wait for a worker, as many as may (rpc_queue)");
  gate.open = true;
  for (Operation& call : calls) EXPECT_EQ(call.wait().value().bytes, 1u);
}

TEST(Rpc, CallsAndBytesOfAPeerAreLimitedOnBothSides) {
  Config config;
  config.rpc_calls_per_peer = 3;
  config.rpc_bytes_per_peer = 1 << 20;
  std::vector<Node> nodes = world(2, config);
  Gate gate;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", [&](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
    gate.pass(context);
    return Bytes(1);
  }));
  ASSERT_TRUE(nodes[1].rpc().serve("grow", [](const RpcContext&, std::span<const std::byte>) { return Result<Bytes>(Bytes(2 << 20)); }));
  const Result<Bytes> large = nodes[0].rpc().call(1, "hang", pattern((1 << 20) + 1, 1));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), ErrorCode::kOverloaded);
  EXPECT_NE(large.error().sentence().find("rpc_bytes_per_peer"), std::string::npos) << large.error().sentence();
  const Result<Bytes> grown = nodes[0].rpc().call(1, "grow", {});
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code(), ErrorCode::kOverloaded);
  EXPECT_TRUE(soon([&] { return counters(nodes[1]).serving_bytes == 0; })) << "the result that nobody took is let go";

  std::vector<Operation> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(nodes[0].rpc().start_call(1, "hang", {}));
  const Result<Bytes> fourth = nodes[0].rpc().call(1, "hang", {});
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().sentence(),
            "function hang was not called on rank 1: 3 calls to rank 1 are under way, as many as there may be (rpc_calls_per_peer)");
  gate.open = true;
  for (Operation& call : calls) EXPECT_TRUE(call.wait());
}

// Rank 0 calls rank 1, whose handler calls rank 0, and so on down.
void serve_chain(const std::vector<Node>& nodes) {
  for (const Node& node : nodes)
    ASSERT_TRUE(node.rpc().serve("down", [&node](const RpcContext&, std::span<const std::byte> bytes) -> Result<Bytes> {
      const int depth = std::get<0>(*decode_all<int>(bytes));
      if (depth == 0) return encode_all(0);
      const Result<Bytes> below = node.rpc().call(1 - node.rank(), "down", encode_all(depth - 1));
      if (!below) return below.error();
      return encode_all(std::get<0>(*decode_all<int>(*below)) + 1);
    }));
}

TEST(Rpc, ChainsDeeperThanThePoolComeBack) {
  Config config;
  config.rpc_workers = 2;
  config.rpc_spare_workers = 40;
  const std::vector<Node> nodes = world(2, config);
  serve_chain(nodes);
  const Result<Bytes> bottom = nodes[0].rpc().call(1, "down", encode_all(60));
  ASSERT_TRUE(bottom) << bottom.error().to_string();
  EXPECT_EQ(std::get<0>(*decode_all<int>(*bottom)), 60);
}

TEST(Rpc, AChainThatNeedsMoreThreadsThanThereMayBeIsRefusedAtOnce) {
  Config config;
  config.rpc_workers = 1;
  config.rpc_spare_workers = 3;
  config.rpc_timeout = 1h;
  const std::vector<Node> nodes = world(2, config);
  serve_chain(nodes);
  const Result<Bytes> bottom = nodes[0].rpc().call(1, "down", encode_all(100));
  ASSERT_FALSE(bottom);
  EXPECT_EQ(bottom.error().code(), ErrorCode::kRefused);
  EXPECT_NE(bottom.error().sentence().find("all 1 workers and 3 spare ones wait (rpc_workers, rpc_spare_workers)"), std::string::npos)
      << bottom.error().to_string();
  EXPECT_TRUE(nodes[0].rpc().call(1, "down", encode_all(3))) << "afterwards there are threads again";
}

TEST(Rpc, AQuickHandlerMayNotCallNexar) {
  const std::vector<Node> nodes = world(2);
  ASSERT_TRUE(nodes[1].rpc().serve("echo", echo));
  ASSERT_TRUE(nodes[1].rpc().serve(
      "quick", [&](const RpcContext&, std::span<const std::byte>) { return nodes[1].rpc().call(0, "echo", {}); }, {.quick = true}));
  const Result<Bytes> got = nodes[0].rpc().call(1, "quick", {});
  ASSERT_FALSE(got);
  ASSERT_NE(got.error().cause(), nullptr);
  EXPECT_EQ(got.error().cause()->code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(got.error().sentence().find("from inside a callback"), std::string::npos) << got.error().sentence();
}

TEST(Rpc, NamesAreScopedAndTakenOnce) {
  const std::vector<Node> nodes = world(2);
  const auto answer = [](std::string_view text) {
    return [bytes = bytes_of(text)](const RpcContext&, std::span<const std::byte>) { return Result<Bytes>(bytes); };
  };
  const Rpc node = nodes[1].rpc();
  const Rpc group = nodes[1].world().rpc();
  ASSERT_TRUE(node.serve("push", answer("the application")));
  ASSERT_TRUE(node.serve(Function("metrics", "push"), answer("metrics")));
  ASSERT_TRUE(node.serve("metrics/push", answer("a name with a slash")));
  ASSERT_TRUE(node.serve(7, answer("seven")));
  ASSERT_TRUE(group.serve("push", answer("the group")));
  const auto again = node.serve("push", answer("another"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().sentence(), "function push is registered already");
  EXPECT_FALSE(node.serve(Function("nexar.cluster", "x"), echo)) << "a scope of the runtime's own";
  EXPECT_FALSE(node.serve("", echo));
  EXPECT_FALSE(node.serve(-1, echo));
  EXPECT_FALSE(node.serve("null", RpcHandler()));
  const Rpc from = nodes[0].rpc();
  EXPECT_TRUE(from.call(1, "push", {}).value() == bytes_of("the application"));
  EXPECT_TRUE(from.call(1, Function("metrics", "push"), {}).value() == bytes_of("metrics"));
  EXPECT_TRUE(from.call(1, "metrics/push", {}).value() == bytes_of("a name with a slash"));
  EXPECT_TRUE(from.call(1, 7, {}).value() == bytes_of("seven"));
  EXPECT_TRUE(nodes[0].world().rpc().call(1, "push", {}).value() == bytes_of("the group"));
  ASSERT_TRUE(node.withdraw("push"));
  EXPECT_FALSE(node.withdraw("push"));
  EXPECT_FALSE(from.call(1, "push", {}));
  EXPECT_TRUE(nodes[0].world().rpc().call(1, "push", {})) << "the group's own stays";
}

// The world's ranks split into those of even and of odd number, each group in the opposite order.
std::vector<Group> halves(const std::vector<Group>& parents) {
  std::vector<Group> groups = parents;
  std::vector<std::thread> threads;
  for (Group& group : groups)
    threads.emplace_back([&group] { group = *group.split(group.rank() % 2, group.size() - group.rank()).value(); });
  for (std::thread& thread : threads) thread.join();
  return groups;
}

std::vector<Group> halves(const std::vector<Node>& nodes) {
  std::vector<Group> worlds;
  for (const Node& node : nodes) worlds.push_back(node.world());
  return halves(worlds);
}

TEST(RpcGroups, CallsGoByTheRanksOfASubGroup) {
  const std::vector<Node> nodes = world(6);
  const std::vector<Group> groups = halves(nodes);
  // "who is it?": the caller's rank and this one's, in the group, and this one's in the world.
  const TypedFunction<std::vector<int>()> who("who");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto handler = [self = groups[i].rank(), i](const RpcContext& context) {
      return std::vector<int>{context.caller(), self, static_cast<int>(i)};
    };
    ASSERT_TRUE(groups[i].rpc().serve(who, handler, {.quick = i % 3 == 0}));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (Rank to = 0; to < 3; ++to) {
      const Result<std::vector<int>> got = groups[i].rpc().call(to, who);
      ASSERT_TRUE(got) << got.error().to_string();
      EXPECT_EQ(*got, (std::vector<int>{groups[i].rank(), to, static_cast<int>(i) % 2 + 2 * (2 - to)}));
    }
  EXPECT_EQ(groups[0].rpc().call(3, who).error().code(), ErrorCode::kInvalidArgument) << "the world has such a rank, the group has not";
  EXPECT_EQ(nodes[0].rpc().call(1, who).error().code(), ErrorCode::kUnsupported) << "no function of the node's";
  EXPECT_EQ(nodes[0].world().rpc().call(1, who).error().code(), ErrorCode::kUnsupported) << "nor of the world's";
}

TEST(RpcGroups, ErrorsNameTheFunctionAndTheRank) {
  const std::vector<Node> nodes = world(4);
  const std::vector<Group> groups = halves(nodes);
  const auto fails = [](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> { throw std::runtime_error("no luck"); };
  ASSERT_TRUE(groups[1].rpc().serve("fails", fails));  // rank 1 of the group of odd ones
  const Result<Bytes> got = groups[3].rpc().call(1, "fails", {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kRefused);
  EXPECT_NE(got.error().sentence().find("fails"), std::string::npos) << got.error().to_string();
  EXPECT_NE(got.error().to_string().find("no luck"), std::string::npos) << got.error().to_string();
  const Result<Bytes> unknown = groups[2].rpc().call(1, "fails", {});
  ASSERT_FALSE(unknown) << "the other group's";
  EXPECT_EQ(unknown.error().code(), ErrorCode::kUnsupported);
}

TEST(RpcGroups, OverlapAndNestWithoutMixing) {
  const std::vector<Node> nodes = world(4);
  const std::vector<Group> groups = halves(nodes);
  const std::vector<Group> nested = halves(groups);  // of one rank each
  const auto answer = [](int number) {
    return [number](const RpcContext&, std::span<const std::byte>) { return Result<Bytes>(Bytes(static_cast<std::size_t>(number))); };
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ASSERT_TRUE(nodes[i].rpc().serve("f", answer(1)));
    ASSERT_TRUE(nodes[i].world().rpc().serve("f", answer(2)));
    ASSERT_TRUE(groups[i].rpc().serve("f", answer(3)));
    ASSERT_TRUE(nested[i].rpc().serve("f", answer(4)));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].rpc().call(3, "f", {}).value().size(), 1u);
    EXPECT_EQ(nodes[i].world().rpc().call(3, "f", {}).value().size(), 2u);
    EXPECT_EQ(groups[i].rpc().call(1, "f", {}).value().size(), 3u);
    EXPECT_EQ(nested[i].rpc().call(0, "f", {}).value().size(), 4u);
  }
  ASSERT_TRUE(groups[1].rpc().withdraw("f"));
  EXPECT_FALSE(groups[3].rpc().call(groups[1].rank(), "f", {}));
  EXPECT_TRUE(nested[1].rpc().call(0, "f", {}));
  EXPECT_TRUE(nodes[3].world().rpc().call(1, "f", {}));
}

// Large arguments and results, and calls that call back, from both ends of both groups at once, beside collectives on the same groups.
TEST(RpcGroups, WorkBesideCollectivesOfTheSameGroup) {
  const std::vector<Node> nodes = world(4);
  const std::vector<Group> groups = halves(nodes);
  for (const Group& group : groups) {
    ASSERT_TRUE(group.rpc().serve("echo", echo));
    ASSERT_TRUE(group.rpc().serve("through", [group](const RpcContext& context, std::span<const std::byte> arguments) {
      return group.rpc().call(context.caller(), "echo", arguments);
    }));
  }
  std::vector<std::thread> threads;
  for (const Group& group : groups) {
    threads.emplace_back([&group] {
      for (std::int64_t i = 0; i < 50; ++i) {
        std::int64_t sum = i + group.rank();
        ASSERT_TRUE(group.all_reduce(&sum, &sum, 1, DataType::kI64, ReduceOp::kSum));
        ASSERT_EQ(sum, 2 * i + 1);
      }
    });
    threads.emplace_back([&group] {
      for (unsigned i = 0; i < 20; ++i) {
        const Bytes arguments = pattern(i % 4 == 0 ? 300'000 + i : i * 100, i);
        const Result<Bytes> got = group.rpc().call(1 - group.rank(), "through", arguments);
        ASSERT_TRUE(got) << got.error().to_string();
        ASSERT_TRUE(*got == arguments);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(soon([&] { return counters(nodes[0]).serving == 0 && counters(nodes[0]).calling == 0; }));
}

TEST(Rpc, WhatCannotBeCalledIsRefusedBeforeAnythingIsSent) {
  const std::vector<Node> nodes = world(2);
  for (const Rank rank : {-1, 2}) {
    const Result<Bytes> got = nodes[0].rpc().call(rank, "echo", {});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(nodes[0].rpc().call(1, "", {}));
  EXPECT_FALSE(nodes[0].rpc().call(1, "echo", {}, {.deadline = 0ns}));
  EXPECT_EQ(nodes[0].rpc().start_call(5, "echo", {}).wait().error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(counters(nodes[0]).calls, 0u);
}

}  // namespace
}  // namespace nexar
