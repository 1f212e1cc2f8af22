#include "bench/memory.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace nexar::bench {
namespace {

// Behind each buffer, to see whether anything writes there.
constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};

constexpr std::byte kUnwritten{0xEE};

// Elements of the expected result that are made at a time.
constexpr std::uint64_t kStretch = 4096;

std::uint64_t count_different(const std::byte* a, const std::byte* b, std::uint64_t count, std::size_t element) {
  if (std::memcmp(a, b, count * element) == 0) return 0;
  std::uint64_t different = 0;
  for (std::uint64_t i = 0; i < count; ++i) different += std::memcmp(a + i * element, b + i * element, element) != 0;
  return different;
}

std::uint64_t damage(std::span<const std::byte> buffer) {
  const auto guard = buffer.last(std::min(kGuardBytes, buffer.size()));
  return static_cast<std::uint64_t>(std::count_if(guard.begin(), guard.end(), [](std::byte one) { return one != kGuard; }));
}

}  // namespace

Block from_heap(std::size_t bytes) {
  auto vector = std::make_shared<std::vector<std::byte>>(bytes);
  return {*vector, vector};
}

Memory::Memory(const Call& call, Rank rank, std::uint64_t seed, const Allocate& allocate)
    : call_(call),
      rank_(rank),
      values_(call.type, collective_of(call.operation).reduces ? std::optional(call.op) : std::nullopt, call.ranks(), seed),
      pieces_(call.output(rank)) {
  const std::size_t element = size_of(call.type);
  input_bytes_ = call.input_count(rank) * element;
  for (const Piece& piece : pieces_) output_bytes_ += piece.count * element;
  const Place place = call.place(rank);
  first_ = allocate((place == Place::kApart ? input_bytes_ : std::max(input_bytes_, output_bytes_)) + kGuardBytes);
  if (place == Place::kApart) second_ = allocate(output_bytes_ + kGuardBytes);

  const std::size_t slot = place == Place::kInputSlot || place == Place::kOutputSlot ? call.slot(rank) * element : 0;
  std::byte* input = first_.bytes.data() + (place == Place::kInputSlot ? slot : 0);
  std::byte* output = place == Place::kApart ? second_.bytes.data() : first_.bytes.data() + (place == Place::kOutputSlot ? slot : 0);
  if (input_bytes_ != 0) input_ = input;
  if (output_bytes_ != 0) output_ = output;
}

void Memory::fill() {
  for (const std::span<std::byte> buffer : {first_.bytes, second_.bytes}) {
    if (buffer.empty()) continue;
    std::fill(buffer.begin(), buffer.end() - kGuardBytes, kUnwritten);
    std::fill(buffer.end() - kGuardBytes, buffer.end(), kGuard);
  }
  if (input_ == nullptr) return;
  values_.fill(rank_, 0, call_.input_count(rank_), first_.bytes.data() + (input_ - first_.bytes.data()));
}

void Memory::expect(const Piece& piece, std::uint64_t first, std::uint64_t count, std::byte* out) const {
  if (piece.reduced) return values_.reduce(piece.ranks, first, count, out);
  values_.fill(piece.from, first, count, out);
}

std::uint64_t Memory::count_wrong(std::span<const std::byte> result) const {
  const std::size_t element = size_of(call_.type);
  if (result.size() != output_bytes_) return std::max<std::uint64_t>(1, output_bytes_ / element);
  std::vector<std::byte> expected(kStretch * element);
  std::uint64_t wrong = 0;
  const std::byte* at = result.data();
  for (const Piece& piece : pieces_) {
    for (std::uint64_t done = 0; done < piece.count; done += kStretch) {
      const std::uint64_t count = std::min(kStretch, piece.count - done);
      expect(piece, piece.first + done, count, expected.data());
      wrong += count_different(at, expected.data(), count, element);
      at += count * element;
    }
  }
  return wrong;
}

std::uint64_t Memory::count_changed() const {
  std::uint64_t wrong = damage(first_.bytes) + damage(second_.bytes);
  if (call_.place(rank_) != Place::kApart) return wrong;
  const std::size_t element = size_of(call_.type);
  const std::uint64_t all = call_.input_count(rank_);
  std::vector<std::byte> expected(kStretch * element);
  for (std::uint64_t done = 0; done < all; done += kStretch) {
    const std::uint64_t count = std::min(kStretch, all - done);
    values_.fill(rank_, done, count, expected.data());
    wrong += count_different(input_ + done * element, expected.data(), count, element);
  }
  return wrong;
}

}  // namespace nexar::bench
