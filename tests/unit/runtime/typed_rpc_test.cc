// Calls with types: a parameter server in a few lines, and what happens when ends disagree.
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "nexar/node.h"
#include "nexar/rpc.h"

namespace nexar {
namespace {

struct Update {
  std::string name;
  std::vector<float> values;
  static constexpr auto kFields = std::tuple(&Update::name, &Update::values);
};

const TypedFunction<std::uint64_t(Update)> kPush("push");
const TypedFunction<std::vector<float>(std::string)> kPull("pull");
const TypedFunction<void(std::string)> kForget("forget");
const TypedFunction<Rank()> kWho("who");

TEST(TypedRpc, AParameterServer) {
  const std::vector<Node> nodes = Node::local(3).value();
  std::mutex mutex;
  std::map<std::string, std::vector<float>> parameters;
  std::uint64_t version = 0;
  const Rpc server = nodes[0].rpc();
  ASSERT_TRUE(server.serve(kPush, [&](const Update& update) {
    const std::lock_guard lock(mutex);
    std::vector<float>& values = parameters[update.name];
    values.resize(update.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += update.values[i];
    return ++version;
  }));
  ASSERT_TRUE(server.serve(kPull, [&](const std::string& name) -> Result<std::vector<float>> {
    const std::lock_guard lock(mutex);
    const auto found = parameters.find(name);
    if (found == parameters.end()) return Error(ErrorCode::kInvalidArgument, "there is no parameter " + name);
    return found->second;
  }));
  ASSERT_TRUE(server.serve(kForget, [&](const std::string& name) {
    const std::lock_guard lock(mutex);
    parameters.erase(name);
  }));
  ASSERT_TRUE(server.serve(kWho, [](const RpcContext& context) { return context.caller(); }, {.quick = true}));

  std::vector<std::thread> workers;
  for (const Rank rank : {1, 2})
    workers.emplace_back([&, rank] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(nodes[static_cast<std::size_t>(rank)].rpc().call(0, kPush, Update{"w", {1, 2, 3}}));
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(nodes[1].rpc().call(0, kPull, "w").value(), (std::vector<float>{100, 200, 300}));
  TypedCall<std::vector<float>> pull = nodes[2].rpc().start_call(0, kPull, "w");
  EXPECT_EQ(pull.wait().value().size(), 3u);
  EXPECT_EQ(nodes[2].rpc().call(0, kWho).value(), 2);
  EXPECT_TRUE(nodes[2].rpc().call_within({.deadline = std::chrono::seconds(30)}, 0, kForget, "w"));
  const Result<std::vector<float>> gone = nodes[1].rpc().call(0, kPull, "w");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().sentence(), "function pull failed on rank 0: there is no parameter w");
}

TEST(TypedRpc, EndsThatDisagreeAreTold) {
  const std::vector<Node> nodes = Node::local(2).value();
  ASSERT_TRUE(nodes[1].rpc().serve(TypedFunction<int(int)>("f"), [](int value) { return value + 1; }));
  const Result<int> arguments = nodes[0].rpc().call(1, TypedFunction<int(std::string)>("f"), "text");
  ASSERT_FALSE(arguments);
  ASSERT_NE(arguments.error().cause(), nullptr);
  EXPECT_EQ(arguments.error().cause()->code(), ErrorCode::kMismatch);
  EXPECT_NE(arguments.error().sentence().find("the arguments of f have 12 bytes"), std::string::npos) << arguments.error().sentence();
  const Result<std::string> result = nodes[0].rpc().call(1, TypedFunction<std::string(int)>("f"), 1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kMismatch);
  EXPECT_EQ(nodes[0].rpc().call(1, TypedFunction<int(int)>("f"), 41).value(), 42);
}

}  // namespace
}  // namespace nexar
