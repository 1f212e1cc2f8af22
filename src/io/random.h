// Random bytes: from the kernel where secrecy or uniqueness matters, from a seed where a run must be repeatable.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace nexar::io {

class Random {
 public:
  virtual ~Random() = default;

  virtual void fill(base::ByteSpan bytes) = 0;

  // Every value of the type is equally likely.
  template <std::integral T>
  T number() {
    T value;
    fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
};

// getrandom: good enough for keys. Thread: any. Lives as long as the process.
Random& system_random();

// The same bytes for the same seed, in every build. For tests and simulation, never for secrets. Thread: its owner's.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  void fill(base::ByteSpan bytes) override;

 private:
  std::uint64_t next();

  std::uint64_t state_;
};

}  // namespace nexar::io
