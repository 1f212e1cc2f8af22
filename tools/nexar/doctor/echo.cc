#include "doctor/echo.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <poll.h>

#include "io/thread.h"

namespace nexar::tool::doctor {
namespace {

struct Note {
  char kind[4];
  std::uint32_t number;
  std::uint64_t run;
  std::int32_t rank;
};

constexpr char kQuestion[4] = {'n', 'x', 'd', 'q'};
constexpr char kAnswer[4] = {'n', 'x', 'd', 'a'};

std::optional<Note> read(base::ByteView datagram, const char (&kind)[4]) {
  Note note;
  if (datagram.size() < sizeof note) return std::nullopt;
  std::memcpy(&note, datagram.data(), sizeof note);
  if (std::memcmp(note.kind, kind, sizeof note.kind) != 0) return std::nullopt;
  return note;
}

std::vector<std::byte> write(const char (&kind)[4], std::uint32_t number, std::uint64_t run, Rank rank, std::size_t bytes) {
  Note note{};
  std::memcpy(note.kind, kind, sizeof note.kind);
  note.number = number;
  note.run = run;
  note.rank = static_cast<std::int32_t>(rank);
  std::vector<std::byte> datagram(std::max(bytes, sizeof note));
  std::memcpy(datagram.data(), &note, sizeof note);
  return datagram;
}

}  // namespace

std::vector<std::byte> EchoDialect::question(std::uint32_t number, std::size_t bytes) const {
  return write(kQuestion, number, run_, rank_, bytes);
}

std::optional<std::uint32_t> EchoDialect::answered(base::ByteView datagram) const {
  const auto note = read(datagram, kAnswer);
  if (!note || note->run != run_ || note->rank != rank_) return std::nullopt;
  return note->number;
}

std::optional<std::vector<std::byte>> EchoDialect::answer(base::ByteView datagram) const {
  const auto note = read(datagram, kQuestion);
  if (!note || note->run != run_) return std::nullopt;
  return write(kAnswer, note->number, run_, rank_, 0);
}

Result<std::unique_ptr<Echo>> Echo::open(const Ports& ports, const EchoDialect& dialect) {
  // With IPv6, which takes IPv4 as well, or with IPv4 alone.
  const auto open_one = [&](auto open) {
    auto opened = open_in(ports, io::Address::any_v6(0), open);
    return opened ? std::move(opened) : open_in(ports, io::Address::any_v4(0), open);
  };
  auto udp = open_one([](const io::Address& at) { return io::UdpSocket::open(at); });
  if (!udp) return std::move(udp).error();
  auto tcp = open_one([](const io::Address& at) { return io::StreamListener::listen(at); });
  if (!tcp) return std::move(tcp).error();
  auto stop = io::EventDescriptor::open();
  if (!stop) return std::move(stop).error();
  std::unique_ptr<Echo> echo(new Echo(*std::move(udp), *std::move(tcp), *std::move(stop), dialect));
  auto thread = io::start_thread("nexar-echo", [&echo = *echo] { echo.serve(); });
  if (!thread) return std::move(thread).error();
  echo->thread_ = *std::move(thread);
  return echo;
}

Echo::~Echo() {
  stop_.signal();
  if (thread_.joinable()) thread_.join();
}

void Echo::serve() {
  for (;;) {
    pollfd descriptors[] = {{stop_.fd(), POLLIN, 0}, {udp_.fd(), POLLIN, 0}, {tcp_.fd(), POLLIN, 0}};
    poll(descriptors, 3, -1);
    if (descriptors[0].revents != 0) return;
    if (descriptors[1].revents != 0) answer_datagrams();
    // A connection that stands has told its other end all it wants to know, and is closed by going out of scope.
    if (descriptors[2].revents != 0) static_cast<void>(tcp_.accept());
  }
}

void Echo::answer_datagrams() {
  std::vector<std::byte> buffer(io::UdpSocket::kReceiveBufferMin);
  for (;;) {
    const Result<io::Received> received = udp_.receive(buffer);
    if (!received || received->outcome == io::ReceiveOutcome::kBlocked) return;
    for (base::ByteView rest = received->bytes; !rest.empty();) {
      const std::size_t size = std::min(received->segment, rest.size());
      // An answer that cannot be sent is one that is lost, which the other end counts.
      if (const auto answer = dialect_.answer(rest.first(size))) static_cast<void>(udp_.send(*answer, answer->size(), received->from));
      rest = rest.subspan(size);
    }
  }
}

}  // namespace nexar::tool::doctor
