// Calls and the end of things: nodes that close, leave, abort and are lost.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "nexar/node.h"
#include "nexar/rpc.h"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

template <typename F>
bool soon(F&& condition) {
  for (const auto end = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < end; std::this_thread::yield())
    if (condition()) return true;
  return condition();
}

// A handler that waits until nobody wants its result, and says so.
struct Hanging {
  std::atomic<int> inside = 0;
  std::atomic<int> told = 0;
  RpcHandler handler() {
    return [this](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
      ++inside;
      if (soon([&] { return context.cancelled(); })) ++told;
      return Bytes(3);
    };
  }
};

Result<Bytes> echo(const RpcContext&, std::span<const std::byte> arguments) { return Bytes(arguments.begin(), arguments.end()); }

TEST(RpcClosing, ANodeThatClosesTellsItsHandlersAndSendsWhatTheyReturn) {
  std::vector<Node> nodes = Node::local(2).value();
  Hanging hanging;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", hanging.handler()));
  Operation call = nodes[0].rpc().start_call(1, "hang", {});
  ASSERT_TRUE(soon([&] { return hanging.inside == 1; }));
  ASSERT_TRUE(nodes[1].close());
  EXPECT_EQ(hanging.told, 1);
  EXPECT_EQ(call.wait().value().bytes, 3u) << "it was served before the node left";
  const Result<Bytes> later = nodes[0].rpc().call(1, "hang", {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code(), ErrorCode::kPeerLost);
  EXPECT_NE(later.error().sentence().find("hang was not called on rank 1: rank 1 has left"), std::string::npos) << later.error().sentence();
}

TEST(RpcClosing, ALargeResultOfANodeThatClosesArrives) {
  std::vector<Node> nodes = Node::local(2).value();
  std::atomic<bool> inside = false;
  ASSERT_TRUE(nodes[1].rpc().serve("grow", [&](const RpcContext& context, std::span<const std::byte>) -> Result<Bytes> {
    inside = true;
    soon([&] { return context.cancelled(); });
    return Bytes(16 << 20, std::byte{7});
  }));
  Operation call = nodes[0].rpc().start_call(1, "grow", {});
  ASSERT_TRUE(soon([&] { return inside.load(); }));
  ASSERT_TRUE(nodes[1].close());
  EXPECT_EQ(call.wait().value().bytes, std::uint64_t{16} << 20);
  EXPECT_TRUE(call.take_bytes() == Bytes(16 << 20, std::byte{7}));
}

TEST(RpcClosing, CallsThatWaitForAWorkerAreRefused) {
  Config config;
  config.rpc_workers = 1;
  LocalOptions options;
  options.config = config;
  std::vector<Node> nodes = Node::local(2, options).value();
  Hanging hanging;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", hanging.handler()));
  Operation first = nodes[0].rpc().start_call(1, "hang", {});
  ASSERT_TRUE(soon([&] { return hanging.inside == 1; }));
  Operation second = nodes[0].rpc().start_call(1, "hang", {});
  ASSERT_TRUE(soon([&] { return nodes[1].counters().value().rpc.serving == 2; }));
  ASSERT_TRUE(nodes[1].close());
  EXPECT_TRUE(first.wait());
  const Result<Status> refused = second.wait();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(refused.error().sentence(), "rank 1 refused the call of hang: rank 1 closes its node");
}

TEST(RpcClosing, ACallerThatClosesEndsItsCallsAndFreesTheWorker) {
  std::vector<Node> nodes = Node::local(2).value();
  Hanging hanging;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", hanging.handler()));
  Operation call = nodes[0].rpc().start_call(1, "hang", {});
  ASSERT_TRUE(soon([&] { return hanging.inside == 1; }));
  ASSERT_TRUE(nodes[0].close());
  const Result<Status> ended = call.wait();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(soon([&] { return hanging.told == 1; }));
  EXPECT_FALSE(nodes[0].rpc().serve("late", echo)) << "a closed node serves nothing";
}

TEST(RpcClosing, AHandlerMayNotCloseItsNode) {
  std::vector<Node> nodes = Node::local(2).value();
  ASSERT_TRUE(nodes[1].rpc().serve("close", [&](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> {
    const auto closed = nodes[1].close();
    if (!closed) return closed.error();
    return Bytes();
  }));
  const Result<Bytes> got = nodes[0].rpc().call(1, "close", {});
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().sentence().find("close was called from a handler"), std::string::npos) << got.error().sentence();
}

TEST(RpcClosing, AnAbortEndsEveryCall) {
  std::vector<Node> nodes = Node::local(3).value();
  Hanging hanging;
  ASSERT_TRUE(nodes[1].rpc().serve("hang", hanging.handler()));
  Operation call = nodes[0].rpc().start_call(1, "hang", {});
  ASSERT_TRUE(soon([&] { return hanging.inside == 1; }));
  ASSERT_TRUE(nodes[2].abort("enough"));
  const Result<Status> ended = call.wait();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(ended.error().sentence(), "rank 2 aborted: enough");
  const Result<Bytes> later = nodes[0].rpc().call(1, "hang", {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(later.error().sentence(), "function hang was not called on rank 1: rank 2 aborted: enough");
  EXPECT_TRUE(soon([&] { return hanging.told == 1; }));
}

// What a handler captures is let go when its node is closed, a handle of the node itself included.
TEST(RpcClosing, HandlersThatHoldTheirNodeAreLetGo) {
  std::weak_ptr<int> held;
  {
    std::vector<Node> nodes = Node::local(1).value();
    auto token = std::make_shared<int>(1);
    held = token;
    ASSERT_TRUE(
        nodes[0].rpc().serve("holds", [token, rpc = nodes[0].rpc()](const RpcContext&, std::span<const std::byte>) -> Result<Bytes> {
          return Bytes(static_cast<std::size_t>(*token));
        }));
    EXPECT_EQ(nodes[0].rpc().call(0, "holds", {}).value().size(), 1u);
  }
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace nexar
