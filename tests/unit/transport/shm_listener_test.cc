#include "transport/shm/listener.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "io/epoll_loop.h"
#include "io/host.h"

namespace nexar::transport::shm {
namespace {

class ShmListener : public testing::Test {
 protected:
  void run_until(const std::function<bool()>& done) {
    const base::Time deadline = loop->refresh() + std::chrono::minutes(1);
    while (!done() && loop->refresh() < deadline) loop->turn(std::chrono::milliseconds(5));
  }
  Channel connect() { return Channel::connect(channel_name(listener->name())).value(); }
  static wire::HostNonce nonce(unsigned char fill) {
    wire::HostNonce bytes;
    bytes.fill(static_cast<std::byte>(fill));
    return bytes;
  }
  // Whether the other end has closed without a word.
  static bool is_closed(Channel& channel) {
    std::vector<transport::shm::ReceivedLoan> loans;
    const std::optional<Channel::Last> last = channel.read(loans);
    return last && !last->word;
  }

  std::unique_ptr<io::EpollLoop> loop = io::EpollLoop::open().value();
  std::unique_ptr<Listener> listener = Listener::open(*loop, io::system_random()).value();
  io::EventDescriptor bell = io::EventDescriptor::open().value();
};

TEST_F(ShmListener, HandsOverWhoShowsANonceOnce) {
  std::vector<Channel> arrived;
  listener->expect(nonce(1), [&](Channel channel) { arrived.push_back(std::move(channel)); });
  Channel first = connect();
  ASSERT_TRUE(first.greet({nonce(1), {5, 6}, 0}, bell.fd(), -1));
  run_until([&] { return !arrived.empty(); });
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].process, io::this_process());
  EXPECT_EQ(arrived[0].peer.proof.address, 5u);
  EXPECT_EQ(arrived[0].peer.proof.word, 6u);
  arrived[0].bell->ring();
  std::uint64_t rung = 0;
  EXPECT_GT(::read(bell.fd(), &rung, sizeof rung), 0) << "its doorbell came along";

  Channel second = connect();
  ASSERT_TRUE(second.greet({nonce(1), {}, 0}, bell.fd(), -1));
  run_until([&] { return is_closed(second); });
  EXPECT_EQ(arrived.size(), 1u);
  EXPECT_EQ(listener->counters().unknown_nonces, 1u);
}

TEST_F(ShmListener, ClosesWhoSaysAnythingElse) {
  listener->expect(nonce(1), [](Channel) { ADD_FAILURE(); });
  Channel unknown = connect();
  ASSERT_TRUE(unknown.greet({nonce(2), {}, 0}, bell.fd(), -1));
  Channel rude = connect();
  rude.say_last(LastWord::kClosed, "this is no greeting");
  Channel lying = connect();
  ASSERT_TRUE(lying.greet({nonce(1), {}, 4096}, bell.fd(), -1)) << "it says that a segment comes along, and none does";
  for (Channel* channel : {&unknown, &rude, &lying}) {
    run_until([&] { return is_closed(*channel); });
    EXPECT_TRUE(is_closed(*channel));
  }
  EXPECT_EQ(listener->counters().accepted, 0u);
}

TEST_F(ShmListener, KeepsABoundedNumberOfThoseWhoSayNothing) {
  std::vector<Channel> silent;
  for (std::size_t i = 0; i < kPendingMax + 5; ++i) silent.push_back(connect());
  run_until([&] { return listener->counters().made_way == 5; });
  EXPECT_EQ(listener->counters().made_way, 5u);
  for (std::size_t i = 0; i < silent.size(); ++i) EXPECT_EQ(is_closed(silent[i]), i < 5) << i;
}

TEST_F(ShmListener, IsGoneWithItsOwner) {
  const std::string name = channel_name(listener->name());
  listener.reset();
  const Result<Channel> channel = Channel::connect(name);
  ASSERT_FALSE(channel);
  EXPECT_NE(channel.error().sentence().find("nexar-"), std::string::npos);
}

}  // namespace
}  // namespace nexar::transport::shm
