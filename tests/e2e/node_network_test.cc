// Nodes in network namespaces: small and large frames, both families, losses, cuts.
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "namespaces.h"
#include "nexar/node.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

enum class Family { kV4, kV6 };

class NodeNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  }

  void make(const NamespacesOptions& options, Family family = Family::kV4) {
    network.emplace(Namespaces::create(options).value());
    LocalOptions local;
    for (int i = 0; i < options.count; ++i)
      local.places.push_back({network->path(i), (family == Family::kV4 ? network->v4(i) : network->v6(i)).host()});
    nodes = Node::local(options.count, local).value();
  }

  // Sends messages of many sizes both ways at once and compares every byte.
  void exchange_everything(std::size_t largest) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{65536}, std::size_t{65537}, largest}) {
      const std::vector<std::byte> a = pattern(size, size + 1);
      const std::vector<std::byte> b = pattern(size, size + 2);
      std::vector<std::byte> at_a(size);
      std::vector<std::byte> at_b(size);
      std::thread other([&] { ASSERT_TRUE(nodes[1].world().exchange(b.data(), size, 0, 3, at_b.data(), size, 0, 3)); });
      const Result<Status> result = nodes[0].world().exchange(a.data(), size, 1, 3, at_a.data(), size, 1, 3);
      other.join();
      ASSERT_TRUE(result) << result.error().to_string();
      ASSERT_TRUE(at_a == b && at_b == a) << size;
    }
  }

  // A thousand small messages, which must come in order.
  void stream_small_messages(int count) {
    std::thread sender([&] {
      for (int i = 0; i < count; ++i) ASSERT_TRUE(nodes[0].world().send(&i, sizeof i, 1, 4));
    });
    for (int i = 0; i < count; ++i) {
      int got = -1;
      ASSERT_TRUE(nodes[1].world().recv(&got, sizeof got, 0, 4));
      ASSERT_EQ(got, i);
    }
    sender.join();
  }

  std::optional<Namespaces> network;
  std::vector<Node> nodes;
};

TEST_F(NodeNetworkTest, EthernetFramesOverIpv4) {
  make({.mtu = 1500});
  exchange_everything(16 << 20);
  stream_small_messages(1000);
}

TEST_F(NodeNetworkTest, EthernetFramesOverIpv6) {
  make({.mtu = 1500}, Family::kV6);
  exchange_everything(4 << 20);
}

TEST_F(NodeNetworkTest, JumboFramesOverIpv4) {
  make({.mtu = 9000});
  exchange_everything(16 << 20);
}

TEST_F(NodeNetworkTest, JumboFramesOverIpv6) {
  make({.mtu = 9000}, Family::kV6);
  exchange_everything(4 << 20);
}

TEST_F(NodeNetworkTest, WithoutOffloads) {
  make({.mtu = 1500, .offload = false});
  exchange_everything(4 << 20);
}

TEST_F(NodeNetworkTest, ThreeHosts) {
  make({.count = 3});
  for (Rank from = 0; from < 3; ++from)
    for (Rank to = 0; to < 3; ++to) {
      if (from == to) continue;
      const int sent = from * 10 + to;
      int got = -1;
      Operation receive = nodes[static_cast<std::size_t>(to)].world().start_recv(&got, sizeof got, from, 1);
      ASSERT_TRUE(nodes[static_cast<std::size_t>(from)].world().send(&sent, sizeof sent, to, 1));
      ASSERT_TRUE(receive.wait());
      EXPECT_EQ(got, sent);
    }
}

TEST_F(NodeNetworkTest, OnePercentLost) {
  make({.mtu = 1500, .offload = false});
  ASSERT_TRUE(network->set_loss(1));
  exchange_everything(4 << 20);
  stream_small_messages(1000);
}

TEST_F(NodeNetworkTest, FivePercentLost) {
  make({.mtu = 1500, .offload = false});
  ASSERT_TRUE(network->set_loss(5));
  exchange_everything(1 << 20);
  stream_small_messages(300);
}

// A page that is given back to the kernel the moment wait() has returned: a late read or write of it would fault.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes), data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void* data() { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_;
};

TEST_F(NodeNetworkTest, BuffersAreTheUsersAgainWhenWaitReturnsWhateverIsBeingSentAgain) {
  make({.mtu = 1500, .offload = false});
  ASSERT_TRUE(network->set_loss(5));
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const std::size_t size = i % 3 == 0 ? 300'000 : 20'000;
    const auto limit = std::chrono::microseconds(random() % 4000);
    Operation receive;
    {
      Pages out(size);
      Pages in(size);
      std::memset(out.data(), i, size);
      Operation send = nodes[0].world().start_send(out.data(), size, 1, static_cast<Tag>(i));
      receive = nodes[1].world().start_recv(in.data(), size, 0, static_cast<Tag>(i));
      switch (i % 4) {
        case 0:
          ASSERT_TRUE(receive.wait());
          ASSERT_TRUE(send.wait());
          break;
        case 1:
          (void)receive.wait(limit);
          (void)send.wait(limit);
          break;
        case 2:
          receive.cancel();
          send.cancel();
          break;
        default:
          (void)send.wait(limit);
          receive.cancel();
          break;
      }
      ASSERT_TRUE(send.done() && receive.done());
    }  // unmapped here, with retransmissions under way
  }
  ASSERT_TRUE(network->set_loss(0));
  stream_small_messages(10);
}

TEST_F(NodeNetworkTest, APathThatIsNarrowerThanItsInterfacesPromiseStillCarriesEverything) {
  make({.mtu = 9000, .offload = false});
  ASSERT_TRUE(network->set_black_hole(1500));
  exchange_everything(4 << 20);
  ASSERT_TRUE(network->set_black_hole(0));
  exchange_everything(4 << 20);
}

TEST_F(NodeNetworkTest, ALinkThatIsDownForAMomentGoesOn) {
  make({.mtu = 1500});
  stream_small_messages(10);
  ASSERT_TRUE(network->link_down(1));
  const std::vector<std::byte> bytes = pattern(100'000, 1);
  std::vector<std::byte> got(bytes.size());
  Operation receive = nodes[1].world().start_recv(got.data(), got.size(), 0, 9);
  Operation send = nodes[0].world().start_send(bytes.data(), bytes.size(), 1, 9);
  EXPECT_EQ(receive.wait(100ms).error().code(), ErrorCode::kTimeout);
  receive = nodes[1].world().start_recv(got.data(), got.size(), 0, 9);
  ASSERT_TRUE(network->link_up(1));
  ASSERT_TRUE(receive.wait());
  ASSERT_TRUE(send.wait());
  EXPECT_TRUE(got == bytes);
}

}  // namespace
}  // namespace nexar::test
