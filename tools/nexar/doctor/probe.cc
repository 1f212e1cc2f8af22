#include "doctor/probe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include <poll.h>

#include "io/stream_socket.h"

namespace nexar::tool::doctor {
namespace {

using namespace std::chrono_literals;

// A hundred packets show losses that hurt; apart from each other, so that no queue on the way fills.
constexpr int kLossQuestions = 100;
constexpr auto kLossPause = 1ms;

// How long a late answer is waited for beyond twice the round trip.
constexpr auto kLateness = 250ms;

// A lost packet is not to be taken for one that was too long.
constexpr int kSizeTries = 4;

// What networks commonly carry: the least of IPv6, tunnels, PPPoE, Ethernet, and jumbo frames with and without tunnels.
constexpr std::size_t kSizes[] = {1280, 1380, 1420, 1450, 1480, 1492, 1500, 4000, 8900, 8950, 9000};

int milliseconds(std::chrono::nanoseconds time) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::max(time, 0ns)).count());
}

}  // namespace

std::vector<std::byte> QuicDialect::question(std::uint32_t number, std::size_t bytes) const {
  // Long header, a version of the kind that is reserved for this, an id for the server of eight bytes, one of ours of four: the number.
  std::array<std::uint8_t, 15> start = {0xC0, 0x1A, 0x2A, 0x3A, 0x4A, 8, 'd', 'o', 'c', 't', 'o', 'r', '?', '?', 4};
  std::vector<std::byte> packet(bytes);
  std::memcpy(packet.data(), start.data(), start.size());
  std::memcpy(packet.data() + start.size(), &number, sizeof number);
  return packet;
}

std::optional<std::uint32_t> QuicDialect::answered(base::ByteView datagram) const {
  // Long header, version 0, our id of four bytes.
  const std::byte start[] = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{4}};
  std::uint32_t number = 0;
  if (datagram.size() < 1 + sizeof start + sizeof number || std::memcmp(datagram.data() + 1, start, sizeof start) != 0) return std::nullopt;
  std::memcpy(&number, datagram.data() + 1 + sizeof start, sizeof number);
  return number;
}

Result<Prober> Prober::open(const io::Address& to, const Dialect& dialect) {
  const bool v4 = to.family() == io::Address::Family::kV4;
  Result<io::UdpSocket> socket = io::UdpSocket::open(v4 ? io::Address::any_v4(0) : io::Address::any_v6(0));
  if (!socket) return std::move(socket).error();
  if (Result<void> connected = socket->connect(to); !connected) return std::move(connected).error();
  return Prober(*std::move(socket), to, dialect);
}

bool Prober::ask(std::size_t packet) {
  const std::vector<std::byte> bytes = dialect_->question(static_cast<std::uint32_t>(questions_.size()), packet - headers());
  questions_.push_back({Clock::now(), std::nullopt, packet});
  const Result<io::Sent> sent = socket_.send(bytes, bytes.size(), to_);
  if (!sent || sent->outcome == io::SendOutcome::kUnreachable) refusal_ = Reach::kFiltered;
  if (sent && sent->outcome == io::SendOutcome::kRefused) refusal_ = Reach::kRefused;
  return !sent || sent->outcome != io::SendOutcome::kTooBig;
}

void Prober::take_answers() {
  std::vector<std::byte> buffer(io::UdpSocket::kReceiveBufferMin);
  for (;;) {
    const Result<io::Received> received = socket_.receive(buffer);
    if (!received || received->outcome == io::ReceiveOutcome::kBlocked) return;
    if (received->outcome == io::ReceiveOutcome::kRefused) {
      refusal_ = Reach::kRefused;
      continue;
    }
    for (base::ByteView rest = received->bytes; !rest.empty();) {
      const std::size_t size = std::min(received->segment, rest.size());
      const auto number = dialect_->answered(rest.first(size));
      rest = rest.subspan(size);
      if (!number || *number >= questions_.size() || questions_[*number].took) continue;
      questions_[*number].took = Clock::now() - questions_[*number].asked;
      ++answers_;
    }
  }
}

void Prober::listen(std::chrono::nanoseconds time, std::size_t enough) {
  const Clock::time_point until = Clock::now() + time;
  for (;;) {
    take_answers();
    const Clock::time_point now = Clock::now();
    if (answers_ >= enough || now >= until) return;
    pollfd readable{socket_.fd(), POLLIN, 0};
    poll(&readable, 1, milliseconds(until - now));
  }
}

Reach Prober::reach(std::chrono::nanoseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  for (std::chrono::nanoseconds pause = 50ms; answers_ == 0 && Clock::now() < until; pause *= 2) {
    refusal_ = Reach::kSilent;
    ask(kQuestionBytesMin + headers());
    listen(std::min<std::chrono::nanoseconds>(pause, until - Clock::now()), 1);
  }
  return answers_ > 0 ? Reach::kAnswered : refusal_;
}

Path Prober::examine(std::chrono::nanoseconds patience) {
  Path path;
  path.reach = reach(patience);
  if (path.reach != Reach::kAnswered) return path;
  examine_loss(path);
  examine_size(path);
  return path;
}

void Prober::examine_loss(Path& path) {
  const std::size_t first = questions_.size();
  for (int i = 0; i < kLossQuestions; ++i) {
    ask(kQuestionBytesMin + headers());
    listen(kLossPause, questions_.size());
    std::this_thread::sleep_until(questions_.back().asked + kLossPause);
  }
  std::vector<Clock::duration> times;
  const auto gather = [&] {
    times.clear();
    for (std::size_t i = first; i < questions_.size(); ++i)
      if (questions_[i].took) times.push_back(*questions_[i].took);
    std::sort(times.begin(), times.end());
  };
  gather();
  listen(kLateness + (times.empty() ? 1s : 2 * times.back()), questions_.size());
  gather();
  path.asked = kLossQuestions;
  path.lost = kLossQuestions - static_cast<int>(times.size());
  if (!times.empty()) path.round_trip = times[times.size() / 2];
}

void Prober::examine_size(Path& path) {
  path.mtu_passed = kQuestionBytesMin + headers();
  std::vector<std::size_t> sizes(std::begin(kSizes), std::end(kSizes));
  if (const Result<std::size_t> mtu = socket_.path_mtu(to_)) {
    std::erase_if(sizes, [&](std::size_t size) { return size >= *mtu; });
    sizes.push_back(std::min<std::size_t>(*mtu, io::UdpSocket::kSuperPacketBytesMax));  // loopback takes more than a datagram holds
  }
  const std::size_t first = questions_.size();
  for (int i = 0; i < kSizeTries; ++i) {
    for (const std::size_t size : sizes) ask(size);
    listen(kLateness / kSizeTries + 2 * path.round_trip, questions_.size());
    // The last is the largest: once it has passed, so have the others.
    if (questions_.back().took) break;
  }
  listen(kLateness, first + 1);
  for (std::size_t i = first; i < questions_.size(); ++i)
    if (questions_[i].took) path.mtu_passed = std::max(path.mtu_passed, questions_[i].packet);
  // Asked again: a router may have told meanwhile.
  const Result<std::size_t> assumed = socket_.path_mtu(to_);
  path.mtu_assumed = assumed ? std::min(*assumed, io::UdpSocket::kSuperPacketBytesMax) : path.mtu_passed;
}

Reach reach_tcp(const io::Address& to, std::chrono::nanoseconds patience) {
  Result<io::StreamSocket> socket = io::StreamSocket::connect(to);
  if (!socket) return Reach::kFiltered;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const Result<bool> connected = socket->finish_connect();
    if (!connected) return Reach::kRefused;
    if (*connected) return Reach::kAnswered;
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= 0ns) return Reach::kSilent;
    pollfd writable{socket->fd(), POLLOUT, 0};
    poll(&writable, 1, milliseconds(left));
  }
}

}  // namespace nexar::tool::doctor
