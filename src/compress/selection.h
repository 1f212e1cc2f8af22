// The k elements of largest magnitude, in time linear in their number.
//
// The magnitude of the k-th largest is found digit by digit, from the top: a pass counts how often each value of a digit occurs among the
// elements that share the digits found so far, and the counts say which value the k-th has. When few elements are left they are taken out
// and the k-th among them is found directly. One more pass takes everything above it, and of those equal to it the first ones.
//
// Comparing is several times faster than counting. So where few of many are selected, a sample tells which elements are certainly too small
// to be counted at first. Should the sample mislead, everything is counted: it decides on the time only.
//
// Thread: any. No heap.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "compress/select_kernels.h"

namespace nexar::compress {

// Selects elements of larger magnitude than `magnitude`, and the first `ties` of those of equal.
struct Cut {
  std::uint64_t magnitude = 0;
  std::uint64_t ties = 0;

  friend bool operator==(const Cut&, const Cut&) = default;
};

// The cut that selects k of `count` elements, 1 <= k <= count < 2^32.
Cut find_cut(const SelectKernels& kernels, const std::byte* elements, std::size_t count, std::uint32_t k);

// f(index) for each selected element, ascending.
template <typename F>
void for_each_selected(const SelectKernels& kernels, const std::byte* elements, std::size_t count, Cut cut, F&& f) {
  std::uint64_t low[kCompareWords];
  std::uint64_t high[kCompareWords];
  for (std::size_t first = 0; first < count; first += kCompareMax) {
    const std::size_t n = count - first < kCompareMax ? count - first : kCompareMax;
    kernels.compare(elements + first * kernels.element_bytes, n, cut.magnitude, kernels.limit(cut.magnitude + 1), low, high);
    for (std::size_t word = 0; word * 64 < n; ++word) {
      for (std::uint64_t bits = cut.ties > 0 ? low[word] : high[word]; bits != 0; bits &= bits - 1) {
        const std::uint64_t bit = bits & ~(bits - 1);
        if ((high[word] & bit) == 0) {
          if (cut.ties == 0) continue;
          --cut.ties;
        }
        f(first + word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  }
}

}  // namespace nexar::compress
