// The k largest against plain sorting, on every instruction set.
#include "compress/selection.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "compress/model.h"
#include "reduce/kernels.h"

namespace nexar::compress {
namespace {

using test::Element64;
using test::Elements;

struct Target {
  std::string name;
  SelectKernels kernels;
};

const std::vector<Target>& targets(DataType type) {
  static std::map<DataType, std::vector<Target>> made;
  std::vector<Target>& all = made[type];
  if (all.empty())
    for (const std::int64_t target : reduce::targets())
      all.push_back({std::string(reduce::target_name(target)), select_kernels_of(target, type)});
  return all;
}

std::vector<std::uint32_t> select(const SelectKernels& kernels, const std::vector<std::byte>& bytes, std::uint32_t k) {
  const std::size_t count = bytes.size() / kernels.element_bytes;
  std::vector<std::uint32_t> selected;
  for_each_selected(kernels, bytes.data(), count, find_cut(kernels, bytes.data(), count, k),
                    [&](std::size_t i) { selected.push_back(static_cast<std::uint32_t>(i)); });
  return selected;
}

std::uint64_t low_bits(int bits) { return (std::uint64_t{1} << bits) - 1; }

// Elements that exercise every way through the digits: different ones, few different ones, all equal, and such that differ only below a
// given bit, so that every digit above it is shared.
std::vector<std::pair<std::string, Elements>> inputs(DataType type, std::size_t count, std::mt19937_64& random) {
  const int bits = 8 * static_cast<int>(size_of(type));
  std::vector<std::pair<std::string, Elements>> all;
  const auto add = [&](std::string name, const std::function<Element64(std::size_t)>& make) {
    Elements elements(count);
    for (std::size_t i = 0; i < count; ++i) elements[i] = make(i) & (low_bits(bits - 1) * 2 + 1);
    all.emplace_back(std::move(name), std::move(elements));
  };
  add("bits", [&](std::size_t) { return random(); });
  add("few", [&](std::size_t) { return (random() % 3) << (bits - 4); });
  add("equal", [&](std::size_t i) { return 0x3A3Bu | (Element64{i % 2} << (bits - 1)); });
  add("zeros", [&](std::size_t i) { return Element64{i % 2} << (bits - 1); });
  add("nans", [&](std::size_t) { return (low_bits(bits - 1) << 1 | 1) - (random() % 5 == 0 ? low_bits(bits - 2) : random() % 300); });
  add("ascending", [&](std::size_t i) { return i; });
  add("descending", [&](std::size_t i) { return count - i; });
  for (int below = 3; below < bits - 1; below += 9)
    add("below bit " + std::to_string(below), [&](std::size_t) { return (Element64{0x3C} << (bits - 8)) ^ (random() & low_bits(below)); });
  all.emplace_back("specials", test::random_elements(type, count, random));
  all.emplace_back("gradient", test::gradient_elements(type, count, random));
  return all;
}

class SelectionTest : public testing::TestWithParam<DataType> {};

TEST_P(SelectionTest, TakesWhatSortingTakesOnEveryTarget) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1, 2, 63, 64, 65, 130, 2048, 2049, 4095, 4096, 4097, 9000}) {
    for (const auto& [name, elements] : inputs(GetParam(), count, random)) {
      const std::vector<std::byte> bytes = test::to_bytes(GetParam(), elements);
      for (const std::size_t k : {std::size_t{1}, count / 100, count / 3, count - 1, count}) {
        if (k < 1) continue;
        const std::vector<std::uint32_t> wanted = test::largest(GetParam(), elements, k);
        for (const Target& target : targets(GetParam()))
          ASSERT_EQ(select(target.kernels, bytes, static_cast<std::uint32_t>(k)), wanted)
              << target.name << ", " << name << ", " << k << " of " << count;
      }
    }
  }
}

// Long enough to be sampled. In the misleading ones the largest stand where no sample looks, or only there.
TEST_P(SelectionTest, TakesWhatSortingTakesWhateverASampleShows) {
  const DataType type = GetParam();
  const std::size_t count = (1 << 18) + 77;
  std::mt19937_64 random(6);
  Elements gradient = test::gradient_elements(type, count, random);
  Elements hidden(count, test::element(type, 1.0));
  Elements shown(count, test::element(type, 1.0));
  const std::size_t stride = (count - 256) / 63;
  for (std::size_t i = 0; i < count; ++i) {
    (i % stride < 256 ? shown : hidden)[i] = test::element(type, 3.0);
    if (i % 5 == 0) hidden[i] = test::element(type, static_cast<double>(random() % 64));
  }
  for (const Elements& elements : {gradient, hidden, shown}) {
    const std::vector<std::byte> bytes = test::to_bytes(type, elements);
    for (const std::size_t k : {std::size_t{1}, std::size_t{2000}, count / 100, count / 9}) {
      const std::vector<std::uint32_t> wanted = test::largest(type, elements, k);
      for (const Target& target : targets(type))
        ASSERT_EQ(select(target.kernels, bytes, static_cast<std::uint32_t>(k)), wanted) << target.name << " " << k;
    }
  }
}

TEST_P(SelectionTest, EveryKOfASmallTensorIsRight) {
  std::mt19937_64 random(2);
  for (int repetition = 0; repetition < 20; ++repetition) {
    const Elements elements = test::random_elements(GetParam(), 70, random);
    const std::vector<std::byte> bytes = test::to_bytes(GetParam(), elements);
    for (std::uint32_t k = 1; k <= 70; ++k)
      for (const Target& target : targets(GetParam()))
        ASSERT_EQ(select(target.kernels, bytes, k), test::largest(GetParam(), elements, k)) << target.name << " " << k;
  }
}

TEST_P(SelectionTest, ReadsNothingOutsideAnUnalignedTensor) {
  std::mt19937_64 random(3);
  for (std::size_t count = 1; count < 140; ++count) {
    const Elements elements = test::random_elements(GetParam(), count, random);
    const std::vector<std::byte> aligned = test::to_bytes(GetParam(), elements);
    std::vector<std::byte> bytes(aligned.size() + 1);  // ends where the allocation does, for AddressSanitizer to see
    std::copy(aligned.begin(), aligned.end(), bytes.begin() + 1);
    const std::uint32_t k = static_cast<std::uint32_t>(count + 1) / 2;
    for (const Target& target : targets(GetParam())) {
      std::vector<std::uint32_t> selected;
      for_each_selected(target.kernels, bytes.data() + 1, count, find_cut(target.kernels, bytes.data() + 1, count, k),
                        [&](std::size_t i) { selected.push_back(static_cast<std::uint32_t>(i)); });
      ASSERT_EQ(selected, test::largest(GetParam(), elements, k)) << target.name << " " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SelectionTest, testing::ValuesIn(test::kCompressible),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

}  // namespace
}  // namespace nexar::compress
