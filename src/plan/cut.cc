#include "plan/cut.h"

#include <algorithm>

#include "base/assert.h"

namespace nexar::plan {

Cut Cut::chunks(std::uint64_t count, Rank n) {
  NEXAR_ASSERT(n > 0, "a buffer is cut into at least one piece");
  Cut cut;
  cut.size_ = n;
  cut.base_ = count / static_cast<std::uint64_t>(n);
  cut.larger_ = count % static_cast<std::uint64_t>(n);
  return cut;
}

Cut Cut::slots(std::uint64_t count, Rank n) {
  NEXAR_ASSERT(n > 0, "a buffer is cut into at least one piece");
  Cut cut;
  cut.size_ = n;
  cut.base_ = count;
  return cut;
}

Cut Cut::uneven(std::span<const std::uint64_t> counts) {
  NEXAR_ASSERT(!counts.empty(), "a buffer is cut into at least one piece");
  Cut cut;
  cut.size_ = static_cast<std::int64_t>(counts.size());
  cut.starts_.reserve(counts.size() + 1);
  cut.starts_.push_back(0);
  for (const std::uint64_t count : counts) cut.starts_.push_back(cut.starts_.back() + count);
  return cut;
}

std::uint64_t Cut::start(std::int64_t i) const {
  const auto index = static_cast<std::uint64_t>(i);
  if (!starts_.empty()) return starts_[index];
  return base_ * index + std::min(index, larger_);
}

Extent Cut::piece(std::int64_t i) const {
  const std::int64_t wrapped = ((i % size_) + size_) % size_;
  return pieces(wrapped, 1);
}

Extent Cut::pieces(std::int64_t i, std::int64_t n) const {
  NEXAR_ASSERT(i >= 0 && n >= 0 && i + n <= size_, "a run of pieces lies inside its buffer");
  return {start(i), start(i + n) - start(i)};
}

std::int64_t Cut::piece_at(std::uint64_t element) const {
  NEXAR_ASSERT(starts_.empty() && element < total(), "an element lies in a piece");
  const std::uint64_t in_larger = larger_ * (base_ + 1);
  if (element < in_larger) return static_cast<std::int64_t>(element / (base_ + 1));
  return static_cast<std::int64_t>(larger_ + (element - in_larger) / base_);
}

std::uint64_t Cut::largest() const {
  if (starts_.empty()) return base_ + (larger_ > 0 ? 1 : 0);
  std::uint64_t most = 0;
  for (std::int64_t i = 0; i < size_; ++i) most = std::max(most, pieces(i, 1).count);
  return most;
}

std::uint64_t Cut::total() const { return start(size_); }

}  // namespace nexar::plan
