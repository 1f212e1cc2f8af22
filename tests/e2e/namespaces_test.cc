#include "namespaces.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/network_namespace.h"
#include "io/stream_socket.h"
#include "io/udp_socket.h"

namespace nexar::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{10'000};  // for what must come
constexpr milliseconds kSilence{100};      // for what must not

bool wait_for(int fd, short events, milliseconds limit) {
  pollfd watched{fd, events, 0};
  return poll(&watched, 1, static_cast<int>(limit.count())) > 0;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// A UDP socket inside a namespace.
class Endpoint {
 public:
  Endpoint(const Namespaces& net, int i, const io::Address& address) {
    io::in_network_namespace(net.path(i), [&]() -> Result<void> {
      Result<io::UdpSocket> opened = io::UdpSocket::open(address);
      if (!opened) return opened.error();
      socket_ = std::make_unique<io::UdpSocket>(*std::move(opened));
      return {};
    }).value();
  }

  io::UdpSocket& socket() { return *socket_; }
  io::Address address() const { return socket_->local_address(); }

  io::SendOutcome send(std::string_view text, const io::Address& to) {
    const std::vector<std::byte> bytes = bytes_of(text);
    return socket_->send(bytes, bytes.size(), to).value().outcome;
  }

  // What is there, or comes within `limit`; with nothing, outcome kBlocked.
  io::Received receive(milliseconds limit) {
    io::Received received = socket_->receive(buffer_).value();
    if (received.outcome == io::ReceiveOutcome::kBlocked && limit.count() > 0 && wait_for(socket_->fd(), POLLIN, limit)) {
      received = socket_->receive(buffer_).value();
    }
    return received;
  }

  bool hears(milliseconds limit) { return receive(limit).outcome == io::ReceiveOutcome::kDatagrams; }

 private:
  std::unique_ptr<io::UdpSocket> socket_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(io::UdpSocket::kReceiveBufferMin);
};

bool passes(Endpoint& from, Endpoint& to, milliseconds limit) {
  return from.send("x", to.address()) == io::SendOutcome::kSent && to.hears(limit);
}

// Sends `count` datagrams, has them sent back, and returns how many came home. A longer one, repeated until it is back, tells that what is
// still missing was lost: a cable keeps the order.
int count_echoes(Endpoint& here, Endpoint& there, int count) {
  constexpr std::string_view kEnd = "the end";
  int home = 0;
  for (int sent = 0; sent < count;) {
    const int batch = std::min(count - sent, 50);
    for (int i = 0; i < batch; ++i) here.send("x", there.address());
    sent += batch;
    for (bool ended = false; !ended;) {
      here.send(kEnd, there.address());
      for (io::Received got = there.receive(milliseconds(20)); got.outcome != io::ReceiveOutcome::kBlocked;
           got = there.receive(milliseconds(0))) {
        there.socket().send(got.bytes, got.bytes.size(), here.address()).value();
      }
      for (io::Received got = here.receive(milliseconds(20)); got.outcome != io::ReceiveOutcome::kBlocked;
           got = here.receive(milliseconds(0))) {
        const bool is_end = got.bytes.size() == kEnd.size();
        ended = ended || is_end;
        home += is_end ? 0 : 1;
      }
    }
  }
  return home;
}

class NamespacesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  }
};

TEST_F(NamespacesTest, CarryDatagramsBetweenAllOfThem) {
  for (const int count : {2, 3, 5}) {
    const Namespaces net = Namespaces::create({.count = count}).value();
    for (const bool v6 : {false, true}) {
      std::vector<Endpoint> ends;
      for (int i = 0; i < count; ++i) ends.emplace_back(net, i, v6 ? net.v6(i) : net.v4(i));
      for (Endpoint& from : ends) {
        for (Endpoint& to : ends)
          EXPECT_TRUE(passes(from, to, kPatience)) << from.address().to_string() << " to " << to.address().to_string();
      }
    }
  }
}

TEST_F(NamespacesTest, LoseNothingUnlessTold) {
  Namespaces net = Namespaces::create().value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  EXPECT_EQ(count_echoes(here, there, 1000), 1000);
}

// 5 % each way is 9.75 % there and back: 195 of 2000, with a standard deviation of 13. The bounds are six of those away.
TEST_F(NamespacesTest, LoseAboutTheShareTheyAreTold) {
  Namespaces net = Namespaces::create().value();
  Endpoint here(net, 0, net.v6(0));
  Endpoint there(net, 1, net.v6(1));
  net.set_loss(5).value();
  const int lost = 2000 - count_echoes(here, there, 2000);
  EXPECT_GT(lost, 115);
  EXPECT_LT(lost, 275);

  net.set_loss(100).value();
  EXPECT_FALSE(passes(here, there, kSilence));
  net.set_loss(0).value();
  EXPECT_EQ(count_echoes(here, there, 500), 500);
}

TEST_F(NamespacesTest, EnforceTheMtu) {
  for (const int mtu : {1280, 1500, 9000}) {
    const Namespaces net = Namespaces::create({.mtu = mtu}).value();
    for (const bool v6 : {false, true}) {
      Endpoint here(net, 0, v6 ? net.v6(0) : net.v4(0));
      Endpoint there(net, 1, v6 ? net.v6(1) : net.v4(1));
      const auto room = static_cast<std::size_t>(mtu - (v6 ? 48 : 28));
      EXPECT_EQ(here.socket().path_mtu(there.address()).value(), static_cast<std::size_t>(mtu));
      EXPECT_EQ(here.send(std::string(room + 1, 'x'), there.address()), io::SendOutcome::kTooBig);
      EXPECT_EQ(here.send(std::string(room, 'x'), there.address()), io::SendOutcome::kSent);
      EXPECT_EQ(there.receive(kPatience).bytes.size(), room);
    }
  }
}

TEST_F(NamespacesTest, CutSuperPacketsWithoutOffload) {
  const Namespaces net = Namespaces::create({.offload = false}).value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  const std::vector<std::byte> bytes(10'000, std::byte{7});
  ASSERT_EQ(here.socket().send(bytes, 1000, there.address()).value().bytes, bytes.size());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(there.receive(kPatience).bytes.size(), 1000U);
}

TEST_F(NamespacesTest, CarryNothingOverALinkThatIsDown) {
  for (const int count : {2, 3}) {
    Namespaces net = Namespaces::create({.count = count}).value();
    for (const bool v6 : {false, true}) {
      Endpoint here(net, 0, v6 ? net.v6(0) : net.v4(0));
      Endpoint there(net, 1, v6 ? net.v6(1) : net.v4(1));
      ASSERT_TRUE(passes(here, there, kPatience));

      net.link_down(0).value();
      EXPECT_FALSE(passes(here, there, kSilence));
      EXPECT_FALSE(passes(there, here, kSilence));

      net.link_up(0).value();
      EXPECT_TRUE(passes(here, there, kPatience));
      EXPECT_TRUE(passes(there, here, kPatience));
    }
  }
}

TEST_F(NamespacesTest, ComeUpInAnyOrder) {
  Namespaces net = Namespaces::create().value();
  net.link_down(0).value();
  net.link_down(1).value();
  net.link_up(0).value();
  net.link_up(1).value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  EXPECT_TRUE(passes(here, there, kPatience));
}

TEST_F(NamespacesTest, BlockUdpSilently) {
  Namespaces net = Namespaces::create().value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  net.block(1, Protocol::kUdp).value();
  EXPECT_FALSE(passes(here, there, kSilence));
  EXPECT_TRUE(passes(there, here, kPatience));
  net.block(Protocol::kUdp).value();
  EXPECT_FALSE(passes(there, here, kSilence));
  net.unblock(Protocol::kUdp).value();
  EXPECT_TRUE(passes(here, there, kPatience));
}

TEST_F(NamespacesTest, BlockUdpAndSaySo) {
  Namespaces net = Namespaces::create().value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  net.block(Protocol::kUdp, Blocking::kRejected).value();
  here.socket().connect(there.address()).value();
  here.send("x", there.address());
  EXPECT_EQ(here.receive(kPatience).outcome, io::ReceiveOutcome::kRefused);
}

// Whether a TCP connection from 0 to 1 came about within `limit`; an error when it was refused.
Result<bool> connects(const Namespaces& net, milliseconds limit) {
  bool connected = false;
  const Result<void> done = io::in_network_namespace(net.path(1), [&]() -> Result<void> {
    const Result<io::StreamListener> listener = io::StreamListener::listen(net.v4(1));
    if (!listener) return listener.error();
    return io::in_network_namespace(net.path(0), [&]() -> Result<void> {
      Result<io::StreamSocket> socket = io::StreamSocket::connect(listener->local_address());
      if (!socket) return socket.error();
      wait_for(socket->fd(), POLLOUT, limit);
      const Result<bool> finished = socket->finish_connect();
      if (!finished) return finished.error();
      connected = *finished;
      return {};
    });
  });
  if (!done) return done.error();
  return connected;
}

TEST_F(NamespacesTest, BlockTcpAndLetUdpPass) {
  Namespaces net = Namespaces::create().value();
  EXPECT_TRUE(connects(net, kPatience).value());

  net.block(Protocol::kTcp).value();
  EXPECT_FALSE(connects(net, kSilence).value());
  net.block(Protocol::kTcp, Blocking::kRejected).value();
  const Result<bool> refused = connects(net, kPatience);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().sentence().find("ECONNREFUSED"), std::string::npos) << refused.error().to_string();

  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  EXPECT_TRUE(passes(here, there, kPatience));
}

// 200 datagrams of 1250 bytes at 20 Mbit/s take 100 ms. Nothing can be faster than the limit and its burst; a busy machine can be slower.
TEST_F(NamespacesTest, KeepToTheRate) {
  Namespaces net = Namespaces::create().value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  net.set_rate(20'000'000, 10'000, milliseconds(400)).value();

  const std::string text(1250, 'x');
  const base::Time begin = io::real_clock().now();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(here.send(text, there.address()), io::SendOutcome::kSent);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(there.hears(kPatience)) << i;
  const base::Duration took = io::real_clock().now() - begin;
  EXPECT_GT(took, milliseconds(70));
  EXPECT_LT(took, milliseconds(1000));

  net.clear_rate().value();
  net.clear_rate().value();
  EXPECT_TRUE(passes(here, there, kPatience));
}

// A queue of 10 ms at 8 Mbit/s holds 10 kB: of 100 kB sent at once most are dropped.
TEST_F(NamespacesTest, DropWhatWouldWaitTooLong) {
  Namespaces net = Namespaces::create().value();
  Endpoint here(net, 0, net.v4(0));
  Endpoint there(net, 1, net.v4(1));
  net.set_rate(8'000'000, 5'000, milliseconds(10)).value();
  for (int i = 0; i < 100; ++i) here.send(std::string(1000, 'x'), there.address());
  int arrived = 0;
  while (there.hears(kSilence)) ++arrived;
  EXPECT_GT(arrived, 5);
  EXPECT_LT(arrived, 60);
}

std::vector<std::string> names_of(pid_t pid) {
  std::vector<std::string> names = Namespaces::existing();
  std::erase_if(names, [pid](const std::string& name) { return !name.starts_with(fmt::format("nexar-test-{}-", pid)); });
  return names;
}

TEST_F(NamespacesTest, LeaveNothingBehind) {
  {
    Namespaces net = Namespaces::create({.count = 3}).value();
    EXPECT_EQ(names_of(getpid()).size(), 4U);  // and the bridge
    EXPECT_TRUE(std::filesystem::exists(net.path(2)));
    const Namespaces moved = std::move(net);
    EXPECT_TRUE(std::filesystem::exists(moved.path(2)));
  }
  EXPECT_TRUE(names_of(getpid()).empty());
}

TEST_F(NamespacesTest, RemoveWhatAKilledTestLeft) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<Namespaces> net = Namespaces::create();
    _exit(net ? 0 : 1);  // without the destructor, as a killed process does
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);

  static_cast<void>(Namespaces::create().value());
  EXPECT_TRUE(names_of(child).empty());
}

// A tool of that name which refuses every command that has `word` in it, in front of the real one for as long as this lives.
class RefusingTool {
 public:
  RefusingTool(const std::string& name, const std::string& real, const std::string& word) {
    std::string folder = testing::TempDir() + "nexar-tool-XXXXXX";
    folder_ = mkdtemp(folder.data());
    const std::string file = folder_ + "/" + name;
    std::ofstream(file) << "#!/bin/sh\ncase \"$*\" in *" << word << "*) echo none of that >&2; exit 7;; esac\nexec " << real << " \"$@\"\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  RefusingTool(const RefusingTool&) = delete;
  RefusingTool& operator=(const RefusingTool&) = delete;
  ~RefusingTool() {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::string path_ = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  std::string folder_;
};

TEST_F(NamespacesTest, LeaveNothingBehindWhenTheyCannotBeMade) {
  const RefusingTool no_bridge("ip", "/usr/sbin/ip", "master");
  const Result<Namespaces> net = Namespaces::create({.count = 3});
  ASSERT_FALSE(net);
  EXPECT_NE(net.error().sentence().find("master br0 up` exited with 7: none of that"), std::string::npos) << net.error().to_string();
  EXPECT_TRUE(names_of(getpid()).empty());
}

TEST(NamespacesOptions, AreRefusedOutOfTheirBounds) {
  for (const Namespaces::Options& wrong : {Namespaces::Options{.count = 1}, Namespaces::Options{.count = Namespaces::kCountMax + 1},
                                           Namespaces::Options{.mtu = 1279}, Namespaces::Options{.mtu = 65536}}) {
    const Result<Namespaces> net = Namespaces::create(wrong);
    ASSERT_FALSE(net);
    EXPECT_EQ(net.error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(NamespacesTest, RefuseSettingsWithoutMeaning) {
  Namespaces net = Namespaces::create().value();
  EXPECT_FALSE(net.set_loss(-1));
  EXPECT_FALSE(net.set_loss(100.1));
  EXPECT_FALSE(net.set_rate(0, 1000, milliseconds(1)));
}

}  // namespace
}  // namespace nexar::test
