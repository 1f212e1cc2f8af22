// What ranks give in tests of devices, what they should get, and a rank's device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/fake_adapter.h"
#include "nexar/device_group.h"
#include "nexar/ids.h"

namespace nexar::test {

using Numbers = std::vector<std::int64_t>;

// Small pieces, so that calls of a few elements have many.
inline constexpr DeviceGroupOptions kSmallPieces{.piece_bytes = 40, .slots = 3};

// What rank r gives: different everywhere.
inline Numbers given(Rank rank, std::uint64_t count) {
  Numbers numbers(count);
  for (std::uint64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<std::int64_t>((i + 1) * 1000 + static_cast<std::uint64_t>(rank) * 7 + i % 3);
  return numbers;
}

inline Numbers sum_of(int ranks, std::uint64_t count) {
  Numbers total(count);
  for (Rank r = 0; r < ranks; ++r) {
    const Numbers one = given(r, count);
    for (std::uint64_t i = 0; i < count; ++i) total[i] += one[i];
  }
  return total;
}

inline Numbers part(const Numbers& all, std::uint64_t first, std::uint64_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return Numbers(begin, begin + static_cast<std::ptrdiff_t>(count));
}

inline void append(Numbers& to, const Numbers& more) { to.insert(to.end(), more.begin(), more.end()); }

// One rank's device and the calls on it.
class Rig {
 public:
  explicit Rig(const Group& world, DeviceGroupOptions options = kSmallPieces)
      : adapter(std::make_shared<FakeAdapter>(static_cast<std::uint32_t>(world.rank() + 1))),
        group(world, options),
        rank(world.rank()),
        size(world.size()) {}

  Buffer<Device> put(const Numbers& numbers) { return Buffer<Device>(adapter, adapter->put(numbers), numbers.size() * 8); }
  Buffer<Device> room(std::uint64_t count) { return Buffer<Device>(adapter, adapter->allocate(count * 8), count * 8); }
  Numbers get(const Buffer<Device>& buffer) const { return adapter->get<std::int64_t>(buffer.at(), buffer.bytes() / 8); }

  std::shared_ptr<FakeAdapter> adapter;
  DeviceGroup group;
  Rank rank;
  int size;
};

}  // namespace nexar::test
