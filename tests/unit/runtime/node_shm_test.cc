// When nodes of one host share memory, when they do not, and what is said then.
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/world.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

Result<std::vector<Node>> world(int size, Transport transport, std::optional<std::uint64_t> budget = {}) {
  LocalOptions options;
  options.config.transport = transport;
  options.config.shm_budget = budget;
  options.log = [](const LogRecord&) {};
  return Node::local(size, options);
}

// Every message that there is a way for: small, eager, announced.
void expect_messages_pass(const std::vector<Node>& nodes) {
  for (const std::size_t size : {1, 60'000, 300'000}) {
    const std::vector<char> out(size, 'x');
    std::vector<char> in(size);
    Operation receive = nodes.back().world().start_recv(in.data(), size, 0, 1);
    std::thread other([&] { EXPECT_TRUE(receive.wait(20s)); });
    EXPECT_TRUE(nodes.front().world().send(out.data(), size, nodes.back().rank(), 1));
    other.join();
    EXPECT_EQ(in, out);
  }
}

int mentions(const std::string& file, const std::string& text) {
  std::ifstream lines(file);
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.find(text) != std::string::npos;
  return count;
}

int open_segments() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().find("memfd:nexar") != std::string::npos;
  }
  return count;
}

TEST(NodeShm, IsUsedWithoutBeingAsked) {
  const std::vector<Node> nodes = world(3, Transport::kAuto).value();
  for (const Node& node : nodes) {
    const NodeCounters counters = node.counters().value();
    for (const PeerCounters& peer : counters.peers) {
      EXPECT_EQ(peer.transport, peer.rank == node.rank() ? "" : "shm");
      EXPECT_EQ(peer.no_shm, "");
    }
  }
  expect_messages_pass(nodes);
}

TEST(NodeShm, IsNotUsedWhereTheNetworkIsAskedFor) {
  for (const Transport transport : {Transport::kNet, Transport::kQuic}) {
    const std::vector<Node> nodes = world(2, transport).value();
    EXPECT_EQ(nodes[0].counters().value().peers[1].transport, "quic");
    EXPECT_EQ(nodes[0].counters().value().peers[1].no_shm, "");
    expect_messages_pass(nodes);
  }
}

TEST(NodeShm, LeavesNothingBehind) {
  const int before = open_segments();
  for (int round = 0; round < 3; ++round) {
    const std::vector<Node> nodes = world(3, Transport::kShm).value();
    EXPECT_EQ(mentions("/proc/self/maps", "memfd:nexar"), 1) << "nodes of one process share one mapping";
    expect_messages_pass(nodes);
  }
  EXPECT_EQ(open_segments(), before);
  EXPECT_EQ(mentions("/proc/self/maps", "memfd:nexar"), 0);
}

// Rings for twelve ranks do not fit into half a megabyte.
TEST(NodeShm, GivesWayToTheNetworkWhenItsBudgetIsTooSmall) {
  const std::vector<Node> nodes = world(12, Transport::kAuto, 1u << 20).value();
  for (const Node& node : nodes) {
    const NodeCounters counters = node.counters().value();
    for (const PeerCounters& peer : counters.peers)
      if (peer.rank != node.rank()) {
        EXPECT_EQ(peer.transport, "quic");
        EXPECT_NE(peer.no_shm.find("budget is 1MiB"), std::string::npos) << peer.no_shm;
      }
  }
  expect_messages_pass(nodes);
}

TEST(NodeShm, ThatIsAskedForAndCannotBeHadIsAnError) {
  const Result<std::vector<Node>> none = world(12, Transport::kShm, 1u << 20);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(none.error().ranks().size(), 1u);
  EXPECT_NE(none.error().sentence().find("budget"), std::string::npos) << none.error().sentence();
}

TEST(NodeShm, ThatIsAskedForWithAnotherHostIsAnErrorThatNamesTheRank) {
  test::World hosts(2);
  Config config;
  config.transport = Transport::kShm;
  const auto core = hosts.open(0, config);
  hosts.open(1, config);
  ASSERT_TRUE(core->form(0, hosts.view));
  const Result<void> ready = core->wait_ready(20s);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code(), ErrorCode::kUnsupported);
  ASSERT_EQ(ready.error().ranks().size(), 1u);
  EXPECT_EQ(ready.error().ranks()[0], 1);
  EXPECT_NE(ready.error().sentence().find("another host"), std::string::npos) << ready.error().sentence();
}

// Small rings make every frame wait for room, in both directions at once.
TEST(NodeShm, CarriesEverythingThroughTheSmallestRings) {
  const std::vector<Node> nodes = world(8, Transport::kShm, 1u << 20).value();
  std::vector<std::thread> threads;
  for (const Node& node : nodes)
    threads.emplace_back([&node] {
      const Group group = node.world();
      const Rank next = (group.rank() + 1) % group.size();
      const Rank previous = (group.rank() + group.size() - 1) % group.size();
      for (const std::size_t size : {100, 65'536, 500'000}) {
        const std::vector<char> out(size, static_cast<char>(group.rank()));
        std::vector<char> in(size);
        ASSERT_TRUE(group.exchange(out.data(), size, next, 1, in.data(), size, previous, 1));
        EXPECT_EQ(in, std::vector<char>(size, static_cast<char>(previous)));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nexar::runtime
