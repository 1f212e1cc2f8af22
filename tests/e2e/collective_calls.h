// Every collective of a group, called by each of its ranks and compared with what a serial program gives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "collectives_oracle.h"
#include "nexar/group.h"
#include "nexar/operation.h"

namespace nexar::test {

template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  EXPECT_TRUE(got.empty() || std::memcmp(got.data(), wanted.data(), got.size() * sizeof(T)) == 0) << what;
}

template <typename T>
void reductions(const Group& group, std::uint64_t count, ReduceOp op) {
  const Rank n = group.size();
  const Rank rank = group.rank();
  constexpr DataType kType = data_type_of<T>;
  const std::uint64_t all = count * static_cast<std::uint64_t>(n);

  std::vector<T> got(count);
  group.all_reduce(values<T>(rank, 0, count).data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, 0, count), "all_reduce");

  got = values<T>(rank, 0, count);
  group.all_reduce(got.data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, 0, count), "all_reduce in place");

  got.assign(count, T{});
  group.reduce_scatter(values<T>(rank, 0, all).data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, count * static_cast<std::uint64_t>(rank), count), "reduce_scatter");

  got.assign(count, T{});
  group.reduce(values<T>(rank, 0, count).data(), rank == n - 1 ? got.data() : nullptr, count, kType, op, n - 1).value();
  if (rank == n - 1) expect_same(got, reduced<T>(op, 0, n, 0, count), "reduce");

  got.assign(count, T{});
  group.scan(values<T>(rank, 0, count).data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, rank + 1, 0, count), "scan");

  got = values<T>(rank, 0, count);
  group.exclusive_scan(got.data(), got.data(), count, kType, op).value();
  if (rank > 0) expect_same(got, reduced<T>(op, 0, rank, 0, count), "exclusive_scan");

  std::vector<std::uint64_t> counts;
  std::uint64_t before = 0;
  std::uint64_t total = 0;
  for (Rank one = 0; one < n; ++one) {
    counts.push_back(one == 1 ? 0 : count + static_cast<std::uint64_t>(one));
    if (one < rank) before += counts.back();
    total += counts.back();
  }
  got.assign(counts[static_cast<std::size_t>(rank)], T{});
  group.reduce_scatter_v(values<T>(rank, 0, total).data(), got.data(), counts, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, before, got.size()), "reduce_scatter_v");

  got = values<T>(rank, 0, count);
  std::uint64_t middles = 0;
  group.all_reduce_rs_ag(got.data(), count, kType, op, [&](void*, std::uint64_t, std::uint64_t chunk) { middles += chunk; }).value();
  expect_same(got, reduced<T>(op, 0, n, 0, count), "all_reduce_rs_ag");
  EXPECT_EQ(middles, count / static_cast<std::uint64_t>(n) + (static_cast<std::uint64_t>(rank) < count % static_cast<std::uint64_t>(n)));
}

template <typename T>
void movements(const Group& group, std::uint64_t count) {
  const Rank n = group.size();
  const Rank rank = group.rank();
  const auto slot = static_cast<std::uint64_t>(rank) * count;
  constexpr DataType kType = data_type_of<T>;
  const Rank root = n / 2;
  const std::uint64_t all = count * static_cast<std::uint64_t>(n);
  std::vector<T> gathered;
  for (Rank one = 0; one < n; ++one) {
    const std::vector<T> theirs = values<T>(one, 0, count);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }

  std::vector<T> got(all);
  group.all_gather(values<T>(rank, 0, count).data(), got.data(), count, kType).value();
  expect_same(got, gathered, "all_gather");
  got.assign(all, T{});
  std::copy_n(gathered.begin() + static_cast<std::ptrdiff_t>(slot), count, got.begin() + static_cast<std::ptrdiff_t>(slot));
  group.all_gather(got.data() + slot, got.data(), count, kType).value();
  expect_same(got, gathered, "all_gather in place");

  got = rank == root ? values<T>(root, 0, count) : std::vector<T>(count);
  group.broadcast(got.data(), count, kType, root).value();
  expect_same(got, values<T>(root, 0, count), "broadcast");

  got.assign(rank == root ? all : 0, T{});
  group.gather(values<T>(rank, 0, count).data(), got.data(), count, kType, root).value();
  if (rank == root) expect_same(got, gathered, "gather");

  got.assign(count, T{});
  group.scatter(rank == root ? values<T>(root, 0, all).data() : nullptr, got.data(), count, kType, root).value();
  expect_same(got, values<T>(root, slot, count), "scatter");

  got.assign(all, T{});
  group.all_to_all(values<T>(rank, 0, all).data(), got.data(), count, kType).value();
  std::vector<T> wanted;
  for (Rank one = 0; one < n; ++one) {
    const std::vector<T> theirs = values<T>(one, slot, count);
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  expect_same(got, wanted, "all_to_all");
  group.barrier().value();
}

// Rank r has count + r elements, rank 1 none.
template <typename T>
void uneven_movements(const Group& group, std::uint64_t count) {
  const Rank n = group.size();
  const Rank rank = group.rank();
  constexpr DataType kType = data_type_of<T>;
  std::vector<std::uint64_t> counts;
  std::vector<T> gathered;
  std::uint64_t before = 0;
  for (Rank one = 0; one < n; ++one) {
    counts.push_back(one == 1 ? 0 : count + static_cast<std::uint64_t>(one));
    if (one < rank) before += counts.back();
    const std::vector<T> theirs = values<T>(one, 0, counts.back());
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }
  const std::uint64_t own = counts[static_cast<std::size_t>(rank)];

  std::vector<T> got(gathered.size());
  group.all_gather_v(values<T>(rank, 0, own).data(), got.data(), counts, kType).value();
  expect_same(got, gathered, "all_gather_v");

  const auto& at_root = rank == 0 ? counts : std::vector<std::uint64_t>();
  got.assign(rank == 0 ? gathered.size() : 0, T{});
  group.gather_v(values<T>(rank, 0, own).data(), own, got.data(), at_root, kType, 0).value();
  if (rank == 0) expect_same(got, gathered, "gather_v");

  got.assign(own, T{});
  group.scatter_v(values<T>(0, 0, gathered.size()).data(), at_root, got.data(), own, kType, 0).value();
  expect_same(got, values<T>(0, before, own), "scatter_v");

  // To rank j go counts[j] elements, from everybody.
  std::vector<std::uint64_t> from_each(static_cast<std::size_t>(n), own);
  got.assign(own * static_cast<std::uint64_t>(n), T{});
  group.all_to_all_v(values<T>(rank, 0, gathered.size()).data(), counts, got.data(), from_each, kType).value();
  std::vector<T> wanted;
  for (Rank one = 0; one < n; ++one) {
    const std::vector<T> theirs = values<T>(one, before, own);
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  expect_same(got, wanted, "all_to_all_v");
}

inline std::vector<std::byte> string_of(Rank rank) {
  return std::vector<std::byte>(static_cast<std::size_t>(rank) * 40000, std::byte(rank));
}

inline void byte_strings(const Group& group) {
  const Rank n = group.size();
  const std::vector<std::byte> mine = string_of(group.rank());
  EXPECT_EQ(group.broadcast_bytes(mine, n - 1).value(), string_of(n - 1));
  const std::vector<std::vector<std::byte>> all = group.all_gather_bytes(mine).value();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(n));
  for (Rank one = 0; one < n; ++one) EXPECT_EQ(all[static_cast<std::size_t>(one)], string_of(one));
  EXPECT_EQ(group.gather_bytes(mine, 0).value().size(), group.rank() == 0 ? static_cast<std::size_t>(n) : 0);
  Operation started = group.start_gather_bytes(mine, n - 1);
  ASSERT_TRUE(started.wait());
  const std::vector<std::vector<std::byte>> taken = started.take_strings();
  if (group.rank() == n - 1) {
    EXPECT_EQ(taken, all);
  }
}

}  // namespace nexar::test
