#include "io/random.h"

#include <algorithm>
#include <cerrno>

#include <sys/random.h>
#include <sys/types.h>

#include "base/assert.h"

namespace nexar::io {
namespace {

class SystemRandom final : public Random {
 public:
  // There is nothing sensible to do without randomness and nothing that a caller could do about it, so a failure is not an Error:
  // getrandom cannot fail once the kernel has started, except by a signal.
  void fill(base::ByteSpan bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = getrandom(bytes.data(), bytes.size(), 0);
      NEXAR_ASSERT(count > 0 || errno == EINTR, "the kernel has random bytes");
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
};

}  // namespace

Random& system_random() {
  static SystemRandom random;
  return random;
}

void SeededRandom::fill(base::ByteSpan bytes) {
  while (!bytes.empty()) {
    const std::uint64_t word = next();
    const std::size_t count = std::min(bytes.size(), sizeof word);
    std::memcpy(bytes.data(), &word, count);
    bytes = bytes.subspan(count);
  }
}

// splitmix64: passes the usual tests, any seed will do, and a few lines that will never change.
std::uint64_t SeededRandom::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

}  // namespace nexar::io
