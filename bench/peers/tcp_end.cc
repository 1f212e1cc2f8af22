#include "tcp_end.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace nexar::bench {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // odd and without pattern: words that follow each other differ in most bytes

std::uint64_t word_at(std::uint64_t seed, std::size_t index) { return (seed + index) * kGolden; }

std::uint64_t seed_of(End::Side from, int repetition) {
  return (static_cast<std::uint64_t>(repetition) * 2 + (from == End::Side::kServer ? 1 : 0) + 1) << 40;
}

std::uint64_t stamp_of(End::Side from, std::uint64_t number) { return word_at(from == End::Side::kServer ? 1 : 2, number); }

End::Side other(End::Side side) { return side == End::Side::kServer ? End::Side::kClient : End::Side::kServer; }

// Calls visit(offset, word, length) for each word of a message, the last one perhaps shorter.
template <typename Visit>
void for_each_word(std::size_t bytes, std::uint64_t seed, Visit&& visit) {
  for (std::size_t at = 0; at < bytes; at += kWord) visit(at, word_at(seed, at / kWord), std::min(kWord, bytes - at));
}

std::uint64_t count_differences(const std::byte* got, std::uint64_t word, std::size_t length) {
  std::array<std::byte, kWord> wanted;
  std::memcpy(wanted.data(), &word, kWord);
  if (std::memcmp(got, wanted.data(), length) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < length; ++i) wrong += got[i] != wanted[i] ? 1 : 0;
  return wrong;
}

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// What both ends must agree on before the first byte of a message.
struct Greeting {
  std::uint64_t magic = 0x6e78722d74637031;  // "nxr-tcp1"
  std::uint64_t mode = 0;
  std::uint64_t repetitions = 0;
  std::uint64_t work = 0;  // digest of sizes and counts

  bool operator==(const Greeting&) const = default;
};

Greeting greeting_of(const Options& options) {
  Greeting mine;
  mine.mode = static_cast<std::uint64_t>(options.mode);
  mine.repetitions = static_cast<std::uint64_t>(options.repetitions);
  const auto add = [&mine](std::uint64_t value) { mine.work = (mine.work ^ value) * kGolden + 1; };
  for (const std::size_t bytes : options.sizes) {
    add(bytes);
    add(static_cast<std::uint64_t>(options.iterations_for(bytes)));
    add(static_cast<std::uint64_t>(options.warmup_for(bytes)));
  }
  return mine;
}

struct Summary {
  std::uint64_t wrong;
  std::uint64_t count;
};

}  // namespace

End::End(const Options& options, Side side, Descriptor socket)
    : options_(options),
      side_(side),
      socket_(std::move(socket)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      out_memory_(options.largest(), std::byte{1}),
      in_memory_(options.largest(), std::byte{1}) {
  if (epoll_.get() < 0) fail_with_errno("cannot create an epoll");
  // Edge-triggered: an iteration sleeps only after the kernel has said "not now" to what is left, and is woken when that changes.
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLOUT | EPOLLET;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd(), &interest) != 0) fail_with_errno("cannot watch the socket");
  greet();
}

void End::greet() {
  const Greeting mine = greeting_of(options_);
  Greeting theirs;
  transfer(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&theirs, 1)));
  if (theirs.magic != mine.magic) throw Failure("the other end is not tcp_exchange");
  if (theirs != mine) throw Failure("the other end was given another --mode, --bytes, --iters, --warmup or --repeat");
}

void End::meet() {
  const std::byte mine{};
  std::byte theirs{};
  transfer({&mine, 1}, {&theirs, 1});
}

Sample End::measure(std::size_t bytes, int repetition) {
  out_ = Span(out_memory_).first(bytes);
  in_ = Span(in_memory_).first(bytes);
  for_each_word(bytes, seed_of(side_, repetition),
                [this](std::size_t at, std::uint64_t word, std::size_t length) { std::memcpy(out_.data() + at, &word, length); });
  std::fill(in_.begin(), in_.end(), std::byte{});
  wrong_stamps_ = 0;

  const auto warmup = static_cast<std::uint64_t>(options_.warmup_for(bytes));
  const std::uint64_t total = warmup + static_cast<std::uint64_t>(options_.iterations_for(bytes));
  Sample mine;
  mine.nanoseconds.reserve(total - warmup);
  meet();
  for (std::uint64_t number = 0; number < total; ++number) {
    const std::uint64_t begin = now();
    iterate(number);
    if (number >= warmup) mine.nanoseconds.push_back(now() - begin);
  }
  mine.wrong = wrong_stamps_ + count_wrong(repetition);
  if (side_ == Side::kServer) {
    give(mine);
  } else {
    merge_other(mine);
  }
  return mine;
}

void End::iterate(std::uint64_t number) {
  std::byte reply{};
  const bool client = side_ == Side::kClient;
  stamp(number);
  if (options_.mode == Mode::kExchange) {
    transfer(out_, in_);
    wrong_stamps_ += count_wrong_stamp(number);
    return;
  }
  if (client) transfer(out_, {});
  if (options_.mode == Mode::kOneway && client) return transfer({}, {&reply, 1});
  transfer({}, in_);
  wrong_stamps_ += count_wrong_stamp(number);
  if (client) return;
  if (options_.mode == Mode::kOneway) return transfer({&reply, 1}, {});
  transfer(out_, {});
}

void End::stamp(std::uint64_t number) {
  const std::uint64_t word = stamp_of(side_, number);
  std::memcpy(out_.data(), &word, std::min(kWord, out_.size()));
}

std::uint64_t End::count_wrong_stamp(std::uint64_t number) const {
  return count_differences(in_.data(), stamp_of(other(side_), number), std::min(kWord, in_.size()));
}

// Of the last message, beyond its stamp.
std::uint64_t End::count_wrong(int repetition) const {
  if (options_.mode == Mode::kOneway && side_ == Side::kClient) return 0;  // it received nothing but replies
  std::uint64_t wrong = 0;
  for_each_word(in_.size(), seed_of(other(side_), repetition), [&](std::size_t at, std::uint64_t word, std::size_t length) {
    if (at > 0) wrong += count_differences(in_.data() + at, word, length);
  });
  return wrong;
}

void End::give(const Sample& mine) {
  const Summary summary{mine.wrong, mine.nanoseconds.size()};
  transfer(std::as_bytes(std::span(&summary, 1)), {});
  transfer(std::as_bytes(std::span(mine.nanoseconds)), {});
}

void End::merge_other(Sample& mine) {
  Summary summary{};
  transfer({}, std::as_writable_bytes(std::span(&summary, 1)));
  if (summary.count != mine.nanoseconds.size()) throw Failure("the other end counted another number of iterations");
  std::vector<std::uint64_t> theirs(mine.nanoseconds.size());
  transfer({}, std::as_writable_bytes(std::span(theirs)));
  mine.wrong += summary.wrong;
  if (options_.mode != Mode::kExchange) return;  // the client sees the whole of it, the server only its half
  for (std::size_t i = 0; i < theirs.size(); ++i) mine.nanoseconds[i] = (mine.nanoseconds[i] + theirs[i]) / 2;
}

// Sends all of `out` and fills all of `in`, both at once.
void End::transfer(View out, Span in) {
  while (!out.empty() || !in.empty()) {
    const std::size_t sent = out.empty() ? 0 : send_some(out);
    const std::size_t received = in.empty() ? 0 : receive_some(in);
    out = out.subspan(sent);
    in = in.subspan(received);
    if (sent + received == 0 && options_.wait == Wait::kBlock) sleep();
  }
}

std::size_t End::send_some(View bytes) {
  const ssize_t count = send(fd(), bytes.data(), std::min(bytes.size(), options_.call_bytes), MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail_with_errno("cannot send to the other end");
}

std::size_t End::receive_some(Span bytes) {
  const ssize_t count = recv(fd(), bytes.data(), std::min(bytes.size(), options_.call_bytes), 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) throw Failure("the other end went away");
  if (errno == EAGAIN || errno == EINTR) return 0;
  fail_with_errno("cannot receive from the other end");
}

void End::sleep() {
  epoll_event event{};
  if (epoll_wait(epoll_.get(), &event, 1, -1) < 0 && errno != EINTR) fail_with_errno("cannot wait for the socket");
}

}  // namespace nexar::bench
