#include "io/stream_socket.h"

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/socket.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/bytes_of.h"
#include "io/network_namespace.h"
#include "io/two_namespaces.h"

namespace nexar::io {
namespace {

using State = Transferred::State;

bool wait_for(int fd, short events) {
  pollfd entry{fd, events, 0};
  return poll(&entry, 1, 10'000) == 1;
}

struct Connection {
  StreamSocket client, server;
};

Connection finish(StreamSocket client, StreamListener& listener) {
  EXPECT_TRUE(wait_for(listener.fd(), POLLIN));
  StreamSocket server = *std::move(listener.accept().value());
  EXPECT_TRUE(wait_for(client.fd(), POLLOUT));
  EXPECT_TRUE(client.finish_connect().value());
  return {std::move(client), std::move(server)};
}

Connection tcp(const Address& local = Address::loopback_v4(0), const StreamOptions& options = {}) {
  StreamListener listener = StreamListener::listen(local, options).value();
  return finish(StreamSocket::connect(listener.local_address(), options).value(), listener);
}

std::string unix_name(const char* what) { return fmt::format("nexar-test-{}-{}", what, getpid()); }

Connection unix_pair(const char* what) {
  StreamListener listener = StreamListener::listen_unix(unix_name(what)).value();
  return finish(StreamSocket::connect_unix(unix_name(what)).value(), listener);
}

// Sends `bytes` and receives them at the other end, with both ends blocking now and then.
void expect_round_trip(StreamSocket& from, StreamSocket& to, std::size_t length) {
  const std::vector<std::byte> bytes = pattern(length);
  std::vector<std::byte> got(length);
  std::size_t sent = 0, received = 0;
  bool blocked = false;
  while (received < length) {
    if (sent < length) {
      const Transferred out = from.write(base::ByteView(bytes).subspan(sent)).value();
      blocked = blocked || out.state == State::kBlocked;
      sent += out.bytes;
      if (out.state == State::kOpen) continue;
    }
    ASSERT_TRUE(wait_for(to.fd(), POLLIN));
    received += to.read(base::ByteSpan(got).subspan(received)).value().bytes;
  }
  EXPECT_TRUE(blocked) << "more was sent than the buffers hold";
  EXPECT_EQ(got, bytes);
}

TEST(StreamSocket, CarriesBytesOverTcp) {
  Connection c = tcp();
  EXPECT_EQ(c.client.peer(), Address::parse(c.client.peer()).value().to_string());
  EXPECT_EQ(c.server.peer(), c.client.local_address().to_string());
  expect_round_trip(c.client, c.server, std::size_t{24} << 20);
  expect_round_trip(c.server, c.client, std::size_t{24} << 20);
}

TEST(StreamSocket, CarriesBytesOverTcpOnIpv6) {
  if (!StreamListener::listen(Address::loopback_v6(0))) GTEST_SKIP() << "this host has no IPv6";
  Connection c = tcp(Address::loopback_v6(0));
  expect_round_trip(c.client, c.server, std::size_t{24} << 20);
}

TEST(StreamSocket, DualStackListenerShowsIpv4PeersAsIpv4) {
  Result<StreamListener> listener = StreamListener::listen(Address::any_v6(0));
  if (!listener) GTEST_SKIP() << "this host has no IPv6";
  const Connection c = finish(StreamSocket::connect(Address::loopback_v4(listener->local_address().port())).value(), *listener);
  EXPECT_EQ(c.server.peer(), c.client.local_address().to_string());
}

TEST(StreamSocket, CarriesBytesOverUnixSockets) {
  Connection c = unix_pair("bytes");
  expect_round_trip(c.client, c.server, std::size_t{4} << 20);
  auto [a, b] = StreamSocket::pair().value();
  expect_round_trip(a, b, std::size_t{4} << 20);
}

TEST(StreamSocket, ScattersAndGathers) {
  Connection c = tcp();
  const std::array out{region(bytes_of("one ")), region(bytes_of("")), region(bytes_of("two ")), region(bytes_of("three"))};
  EXPECT_EQ(c.client.write(out).value().bytes, 13u);
  std::array<std::byte, 6> first{};
  std::array<std::byte, 20> second{};
  const std::array in{region(first), region(second)};
  ASSERT_TRUE(wait_for(c.server.fd(), POLLIN));
  EXPECT_EQ(c.server.read(in).value().bytes, 13u);
  EXPECT_EQ(text_of(first) + text_of(base::ByteView(second).first(7)), "one two three");
}

TEST(StreamSocket, BlocksWhenThereIsNothing) {
  Connection c = tcp();
  std::array<std::byte, 4> buffer{};
  EXPECT_EQ(c.server.read(buffer).value().state, State::kBlocked);
}

TEST(StreamSocket, EndsOneDirectionAndKeepsTheOther) {
  Connection c = tcp();
  std::array<std::byte, 4> buffer{};
  ASSERT_TRUE(c.client.write(bytes_of("end")));
  ASSERT_TRUE(c.client.shutdown_write());
  ASSERT_TRUE(wait_for(c.server.fd(), POLLIN));
  EXPECT_EQ(c.server.read(buffer).value().bytes, 3u);
  ASSERT_TRUE(wait_for(c.server.fd(), POLLIN));
  EXPECT_EQ(c.server.read(buffer).value().state, State::kClosed);
  ASSERT_TRUE(c.server.write(bytes_of("ok")));
  ASSERT_TRUE(wait_for(c.client.fd(), POLLIN));
  EXPECT_EQ(c.client.read(buffer).value().bytes, 2u);
}

TEST(StreamSocket, WritingToAPeerThatIsGoneIsAnErrorAndNoSignal) {
  auto [here, there] = StreamSocket::pair().value();
  { const StreamSocket gone = std::move(there); }
  const auto result = here.write(bytes_of("hello?"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kIo);
}

TEST(StreamSocket, NamesThePeerThatRefuses) {
  const Address gone = StreamListener::listen(Address::loopback_v4(0)).value().local_address();
  Result<StreamSocket> socket = StreamSocket::connect(gone);
  Result<bool> finished = false;
  if (socket) {
    ASSERT_TRUE(wait_for(socket->fd(), POLLOUT));
    finished = socket->finish_connect();
  }
  const Error& error = socket ? finished.error() : socket.error();
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_NE(error.sentence().find(gone.to_string()), std::string::npos) << error.sentence();

  const auto nobody = StreamSocket::connect_unix(unix_name("nobody"));
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().sentence().find(unix_name("nobody")), std::string::npos);
}

TEST(StreamSocket, TakesItsOptionsAndHandsThemToWhatIsAccepted) {
  const StreamOptions options{.receive_buffer_bytes = 300'000, .send_buffer_bytes = 200'000};
  const Connection c = tcp(Address::loopback_v4(0), options);
  for (const StreamSocket* end : {&c.client, &c.server}) {
    EXPECT_EQ(end->receive_buffer_bytes(), 300'000u);
    EXPECT_EQ(end->send_buffer_bytes(), 200'000u);
  }
}

// BBR that was there for a moment has the kernel pace the connection for ever, so it must not even begin with it.
TEST(StreamSocket, IsMadeWithoutBbrWhereThatIsTheDefaultAndMayReturnToIt) {
  if (const auto reason = TwoNamespaces::unavailable()) GTEST_SKIP() << *reason;
  const TwoNamespaces namespaces;
  std::string reason;
  const Result<void> done = in_network_namespace(namespaces.left(), [&]() -> Result<void> {
    if (!(std::ofstream("/proc/sys/net/ipv4/tcp_congestion_control") << "bbr" << std::flush)) {
      reason = "needs a kernel with BBR";
      return {};
    }
    StreamListener listener = StreamListener::listen(Address::loopback_v4(0), {.without_bbr = true}).value();
    StreamSocket usual = StreamSocket::connect(listener.local_address()).value();
    StreamSocket client = StreamSocket::connect(listener.local_address(), {.without_bbr = true}).value();
    EXPECT_TRUE(wait_for(listener.fd(), POLLIN));
    StreamSocket server = *std::move(listener.accept().value());
    EXPECT_EQ(usual.congestion_control(), "bbr");
    EXPECT_FALSE(usual.return_to_bbr()) << "it has not left it";
    for (StreamSocket* end : {&client, &server}) {
      const std::string control = end->congestion_control();
      EXPECT_TRUE(control == "cubic" || control == "reno") << control;
      EXPECT_TRUE(end->return_to_bbr());
      EXPECT_EQ(end->congestion_control(), "bbr");
      EXPECT_FALSE(end->return_to_bbr()) << "it has";
    }
    return {};
  });
  ASSERT_TRUE(done) << done.error().to_string();
  if (!reason.empty()) GTEST_SKIP() << reason;
}

TEST(StreamSocket, SendsFromAWiderBufferWherePermitted) {
  Connection c = tcp(Address::loopback_v4(0), {.send_buffer_bytes = 100'000});
  const std::size_t before = c.client.send_buffer_bytes();
  if (c.client.widen_send_buffer(20'000'000))
    EXPECT_EQ(c.client.send_buffer_bytes(), 20'000'000u);
  else
    EXPECT_EQ(c.client.send_buffer_bytes(), before);
}

// Without the right to go beyond the host's limits, what fits them is fixed, and what does not is left to the kernel.
TEST(StreamSocket, LeavesABufferThatItMayNotHaveToTheKernel) {
  Connection c = tcp(Address::loopback_v4(0), {});
  const auto locked = [&] {
    int bits = -1;
    socklen_t length = sizeof bits;
    EXPECT_EQ(getsockopt(c.client.fd(), SOL_SOCKET, SO_BUF_LOCK, &bits, &length), 0);
    return bits;
  };
  std::thread([&] {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> none{};
    ASSERT_EQ(syscall(SYS_capset, &header, none.data()), 0);  // of this thread alone
    c.client.resize_receive_buffer(4096);
    EXPECT_EQ(c.client.receive_buffer_bytes(), 4096u);
    c.client.resize_send_buffer(8192);
    EXPECT_EQ(locked(), SOCK_RCVBUF_LOCK | SOCK_SNDBUF_LOCK);
    c.client.resize_receive_buffer(std::size_t{1} << 30);
    EXPECT_LT(c.client.receive_buffer_bytes(), std::size_t{1} << 30);
    EXPECT_EQ(locked(), SOCK_SNDBUF_LOCK);
    EXPECT_FALSE(c.client.widen_send_buffer(20'000'000));
    EXPECT_EQ(c.client.send_buffer_bytes(), 8192u);
  }).join();
}

TEST(StreamSocket, KnowsWhatItsPathHoldsWhenSomethingWentAlongIt) {
  Connection c = tcp(Address::loopback_v4(0), {});
  std::vector<std::byte> bytes(1 << 20);
  std::size_t received = 0;
  for (int i = 0; i < 64; ++i) {
    (void)c.client.write(bytes).value();
    received += c.server.read(bytes).value().bytes;
  }
  ASSERT_GT(received, 0u);
  const StreamPath path = c.client.path();
  EXPECT_GT(path.bytes(), 0u);
  EXPECT_LT(path.bytes(), std::size_t{1} << 30) << "a loopback is short";
  EXPECT_EQ(path.bytes_in(std::chrono::seconds(2)), 2 * path.bytes_per_second);
  EXPECT_EQ(StreamSocket::pair().value().first.path().bytes(), 0u) << "only TCP measures";
}

TEST(StreamSocket, HoldsALastPacketBackUntilItIsToldOtherwise) {
  const std::vector<std::byte> bytes = pattern(100);
  std::vector<std::byte> got(200);
  bool in_time = false;  // the kernel lets go of it by itself after 200 ms
  for (int tries = 0; tries < 50 && !in_time; ++tries) {
    Connection c = tcp();
    const auto begun = std::chrono::steady_clock::now();
    c.client.hold_back(true);
    ASSERT_EQ(c.client.write(bytes).value().bytes, 100u);
    const State at_first = c.server.read(got).value().state;
    ASSERT_EQ(c.server.write(bytes).value().bytes, 100u);  // takes an acknowledgement along
    ASSERT_TRUE(wait_for(c.client.fd(), POLLIN));
    EXPECT_EQ(c.client.read(got).value().bytes, 100u);
    const State then = c.server.read(got).value().state;
    ASSERT_EQ(c.client.write(bytes).value().bytes, 100u);
    c.client.hold_back(false);
    ASSERT_TRUE(wait_for(c.server.fd(), POLLIN));
    const std::size_t together = c.server.read(got).value().bytes;
    in_time = std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(100);
    if (!in_time) continue;
    EXPECT_EQ(at_first, State::kBlocked);
    EXPECT_EQ(then, State::kBlocked);
    EXPECT_EQ(together, 200u) << "in one packet";
    ASSERT_EQ(c.client.write(bytes).value().bytes, 100u);
    ASSERT_TRUE(wait_for(c.server.fd(), POLLIN));
    EXPECT_EQ(c.server.read(got).value().bytes, 100u) << "at once again";
  }
  EXPECT_TRUE(in_time);
}

TEST(StreamSocket, ComesFromTheAddressItIsTold) {
  StreamListener listener = StreamListener::listen(Address::loopback_v4(0)).value();
  const StreamOptions options{.local = Address::parse("127.0.0.9:0").value()};
  const Connection c = finish(StreamSocket::connect(listener.local_address(), options).value(), listener);
  EXPECT_EQ(c.client.local_address().host(), "127.0.0.9");
}

TEST(StreamListener, HasNobodyToAcceptWhenNobodyCame) {
  StreamListener listener = StreamListener::listen(Address::loopback_v4(0)).value();
  EXPECT_FALSE(listener.accept().value());
}

TEST(StreamListener, NamesTheAddressThatIsInUse) {
  const StreamListener first = StreamListener::listen(Address::loopback_v4(0)).value();
  const auto second = StreamListener::listen(first.local_address());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().sentence().find(first.local_address().to_string()), std::string::npos);
  const StreamListener third = StreamListener::listen_unix(unix_name("twice")).value();
  EXPECT_FALSE(StreamListener::listen_unix(unix_name("twice")));
}

TEST(StreamListener, TurnsClientsAwayWhenItsBacklogIsFull) {
  const StreamListener listener = StreamListener::listen_unix(unix_name("full"), {}, 1).value();
  std::vector<StreamSocket> waiting;
  for (int i = 0; i < 10; ++i) {
    Result<StreamSocket> client = StreamSocket::connect_unix(unix_name("full"));
    if (!client) {
      EXPECT_EQ(client.error().code(), ErrorCode::kOverloaded);
      EXPECT_GT(waiting.size(), 0u);
      return;
    }
    waiting.push_back(*std::move(client));
  }
  ADD_FAILURE() << "ten clients wait in a backlog of one";
}

TEST(StreamListener, IsOverloadedWithoutDescriptors) {
  StreamListener listener = StreamListener::listen_unix(unix_name("limit")).value();
  const StreamSocket client = StreamSocket::connect_unix(unix_name("limit")).value();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto result = listener.accept();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kOverloaded);
  EXPECT_TRUE(listener.accept().value()) << "nothing is lost";
}

TEST(UnixName, HasAtMost107Bytes) {
  const std::string longest(StreamSocket::kNameBytesMax - 12, 'n');
  EXPECT_TRUE(StreamListener::listen_unix(fmt::format("{}{:012}", longest, getpid())));
  for (const std::string& name : {std::string(), std::string(StreamSocket::kNameBytesMax + 1, 'n')}) {
    EXPECT_EQ(StreamListener::listen_unix(name).error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(StreamSocket::connect_unix(name).error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST(UnixSocket, KnowsWhoIsThere) {
  const Connection c = unix_pair("who");
  for (const StreamSocket* end : {&c.client, &c.server}) {
    const PeerCredentials peer = end->peer_credentials().value();
    EXPECT_EQ(peer.process, getpid());
    EXPECT_EQ(peer.user, geteuid());
    EXPECT_EQ(peer.group, getegid());
  }
}

TEST(UnixSocket, PassesDescriptorsWithBytes) {
  auto [here, there] = StreamSocket::pair().value();
  std::array<int, 2> pipe_fds{};
  ASSERT_EQ(pipe2(pipe_fds.data(), O_CLOEXEC), 0);
  const FileDescriptor out(pipe_fds[0]);
  FileDescriptor in(pipe_fds[1]);
  ASSERT_EQ(here.write_with_descriptors(bytes_of("pipe"), std::array{in.get()}).value().bytes, 4u);
  in.reset();

  std::array<std::byte, 16> buffer{};
  const ReceivedDescriptors received = there.read_with_descriptors(buffer).value();
  EXPECT_EQ(text_of(base::ByteView(buffer).first(received.transferred.bytes)), "pipe");
  ASSERT_EQ(received.descriptors.size(), 1u);
  EXPECT_NE(fcntl(received.descriptors[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(received.descriptors[0].get(), "!", 1), 1);
  char c = 0;
  ASSERT_EQ(::read(out.get(), &c, 1), 1);
  EXPECT_EQ(c, '!');
}

TEST(UnixSocket, ReadsBytesWithoutDescriptorsAndTheEnd) {
  auto [here, there] = StreamSocket::pair().value();
  std::array<std::byte, 16> buffer{};
  EXPECT_EQ(there.read_with_descriptors(buffer).value().transferred.state, State::kBlocked);
  ASSERT_TRUE(here.write(bytes_of("plain")));
  EXPECT_TRUE(there.read_with_descriptors(buffer).value().descriptors.empty());
  ASSERT_TRUE(here.shutdown_write());
  EXPECT_EQ(there.read_with_descriptors(buffer).value().transferred.state, State::kClosed);
}

TEST(UnixSocket, PassesAsManyDescriptorsAsItSays) {
  auto [here, there] = StreamSocket::pair().value();
  const std::vector<int> many(StreamSocket::kDescriptorsMax, here.fd());
  ASSERT_TRUE(here.write_with_descriptors(bytes_of("x"), many));
  std::array<std::byte, 1> buffer{};
  EXPECT_EQ(there.read_with_descriptors(buffer).value().descriptors.size(), many.size());
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
  return count;
}

TEST(UnixSocket, RefusesAFloodOfDescriptorsAndKeepsNone) {
  auto [here, there] = StreamSocket::pair().value();
  const std::vector<int> flood(StreamSocket::kDescriptorsMax + 1, here.fd());
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * (StreamSocket::kDescriptorsMax + 1))> control{};
  iovec bytes = region(bytes_of("x"));
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(flood.size() * sizeof(int));
  std::memcpy(CMSG_DATA(entry), flood.data(), flood.size() * sizeof(int));
  ASSERT_EQ(sendmsg(here.fd(), &message, 0), 1);

  const int before = open_descriptors();
  std::array<std::byte, 1> buffer{};
  const auto result = there.read_with_descriptors(buffer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kRefused);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(StreamSocket, ChangesAConnectionThatIsMadeAlready) {
  Connection made = tcp();
  made.server.resize_receive_buffer(300'000);
  made.server.resize_send_buffer(200'000);
  EXPECT_EQ(made.server.receive_buffer_bytes(), 300'000u);
  EXPECT_EQ(made.server.send_buffer_bytes(), 200'000u);
}

TEST(StreamSocket, SaysHowMuchIsNotAcknowledged) {
  Connection made = tcp(Address::loopback_v4(0), {.receive_buffer_bytes = 16 * 1024});
  EXPECT_EQ(made.client.unacknowledged_bytes(), 0u);
  const std::vector<std::byte> bytes = pattern(1'000'000);
  // Nobody reads, so the window closes and the rest stays here.
  while (made.client.write(bytes).value().state == State::kOpen) continue;
  EXPECT_GT(made.client.unacknowledged_bytes(), 0u);
}

}  // namespace
}  // namespace nexar::io
