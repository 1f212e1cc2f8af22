#include "compress/selection.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/assert.h"

namespace nexar::compress {
namespace {

// So many candidates are taken out and ordered directly: they fit on the stack and in the first-level cache, and ordering them costs less
// than another pass over anything that does not.
constexpr std::size_t kCandidatesMax = 2048;

// A sample is so many parts of so many elements, evenly spread: 16,384 elements tell the k-th largest within a percent or two of the
// tensor, and take no time beside a tensor of kSampledMin.
constexpr std::size_t kSampleParts = 64;
constexpr std::size_t kSamplePart = 256;
constexpr std::size_t kSampledMin = std::size_t{1} << 18;
// With more than one element in so many selected, picking out those to be counted costs more than counting all.
constexpr std::size_t kSampledShare = 8;

using Counts = std::array<std::uint32_t, std::size_t{1} << kDigitBitsMax>;

// Elements with low <= magnitude < high, among which the k-th largest of all is the rank-th largest.
struct Range {
  std::uint64_t low;
  std::uint64_t high;
  std::uint64_t rank;
  std::uint64_t elements;
};

template <typename F>
void for_each_in(const SelectKernels& kernels, const std::byte* elements, std::size_t count, const Range& range, F&& f) {
  std::uint64_t low[kCompareWords];
  std::uint64_t high[kCompareWords];
  for (std::size_t first = 0; first < count; first += kCompareMax) {
    const std::size_t n = std::min(count - first, kCompareMax);
    const std::byte* part = elements + first * kernels.element_bytes;
    kernels.compare(part, n, range.low, kernels.limit(range.high), low, high);
    for (std::size_t word = 0; word * 64 < n; ++word)
      for (std::uint64_t bits = low[word] & ~high[word]; bits != 0; bits &= bits - 1)
        f(kernels.magnitude(part + (word * 64 + static_cast<std::size_t>(std::countr_zero(bits))) * kernels.element_bytes));
  }
}

// The part of the range whose digit is that of the rank-th largest.
Range narrow(const Range& range, Digit digit, const Counts& counts) {
  std::uint64_t rank = range.rank;
  std::uint64_t value = (std::uint64_t{1} << digit.bits) - 1;
  for (; counts[value] < rank; --value) {
    NEXAR_ASSERT(value > 0, "the rank-th largest is among those counted");
    rank -= counts[value];
  }
  const std::uint64_t low = range.low + (value << digit.shift);
  return {.low = low, .high = low + (std::uint64_t{1} << digit.shift), .rank = rank, .elements = counts[value]};
}

// A value of the top digit that probably fewer than k elements lie above: the sample's, and some more for what a sample may be wrong by.
std::uint64_t guess_top_digit(const SelectKernels& kernels, const std::byte* elements, std::size_t count, std::uint32_t k, Digit digit) {
  Counts counts{};
  for (std::size_t part = 0; part < kSampleParts; ++part) {
    const std::size_t first = (count - kSamplePart) / (kSampleParts - 1) * part;
    kernels.count_top_digit(elements + first * kernels.element_bytes, kSamplePart, digit, counts.data());
  }
  const std::uint64_t expected = std::uint64_t{k} * kSampleParts * kSamplePart / count;
  std::uint64_t wanted = expected + expected / 8 + 64;
  std::uint64_t value = (std::uint64_t{1} << digit.bits) - 1;
  for (; value > 0 && counts[value] < wanted; --value) wanted -= counts[value];
  return value;
}

// How often each value of the top digit occurs, at least from that of the k-th largest on.
void count_first(const SelectKernels& kernels, const std::byte* elements, std::size_t count, std::uint32_t k, Digit digit, Counts& counts) {
  if (count >= kSampledMin && k <= count / kSampledShare) {
    const std::uint64_t low = guess_top_digit(kernels, elements, count, k, digit) << digit.shift;
    const Range above = {.low = low, .high = std::uint64_t{1} << kernels.magnitude_bits, .rank = k, .elements = count};
    std::uint64_t counted = 0;
    for_each_in(kernels, elements, count, above, [&](std::uint64_t magnitude) {
      ++counts[digit.of(magnitude)];
      ++counted;
    });
    if (counted >= k) return;
    counts.fill(0);
  }
  kernels.count_top_digit(elements, count, digit, counts.data());
}

Cut cut_among_candidates(const SelectKernels& kernels, const std::byte* elements, std::size_t count, const Range& range) {
  std::array<std::uint64_t, kCandidatesMax> candidates;
  std::size_t found = 0;
  for_each_in(kernels, elements, count, range, [&](std::uint64_t magnitude) { candidates[found++] = magnitude; });
  NEXAR_ASSERT(found == range.elements, "the candidates were counted before");
  const auto begin = candidates.begin();
  const auto kth = begin + static_cast<std::ptrdiff_t>(range.rank - 1);
  std::nth_element(begin, kth, begin + static_cast<std::ptrdiff_t>(found), std::greater<>());
  const auto above = std::count_if(begin, kth, [&](std::uint64_t magnitude) { return magnitude > *kth; });
  return {.magnitude = *kth, .ties = range.rank - static_cast<std::uint64_t>(above)};
}

}  // namespace

Cut find_cut(const SelectKernels& kernels, const std::byte* elements, std::size_t count, std::uint32_t k) {
  NEXAR_ASSERT(k >= 1 && k <= count, "some of the elements are selected");
  NEXAR_ASSERT(count <= 0xFFFFFFFFu, "a histogram counts in 32 bits");
  Range range = {.low = 0, .high = std::uint64_t{1} << kernels.magnitude_bits, .rank = k, .elements = count};
  Digit digit = {.shift = kernels.magnitude_bits, .bits = 0};
  while (digit.shift > 0) {
    if (range.rank == range.elements) return {.magnitude = range.low, .ties = range.elements};  // all of them: which is least is no matter
    if (range.elements <= kCandidatesMax) return cut_among_candidates(kernels, elements, count, range);
    const bool first = digit.bits == 0;
    digit.bits = std::min(kDigitBitsMax, digit.shift);
    digit.shift -= digit.bits;
    Counts counts{};
    if (first)
      count_first(kernels, elements, count, k, digit, counts);
    else
      for_each_in(kernels, elements, count, range, [&](std::uint64_t magnitude) { ++counts[digit.of(magnitude)]; });
    range = narrow(range, digit, counts);
  }
  return {.magnitude = range.low, .ties = range.rank};
}

}  // namespace nexar::compress
