// What collectives should give, computed serially from values that every rank can compute for every other.
#pragma once

#include <cstdint>
#include <vector>

#include "nexar/data_type.h"
#include "nexar/ids.h"
#include "nexar/reduce_op.h"

namespace nexar::test {

// Small whole numbers, exact in every type, different for each rank and element.
template <typename T>
T value(Rank rank, std::uint64_t i) {
  return T(static_cast<float>((static_cast<std::uint64_t>(rank) * 3 + i * 5) % 7 + 1));
}

template <typename T>
std::vector<T> values(Rank rank, std::uint64_t first, std::uint64_t count) {
  std::vector<T> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(value<T>(rank, first + i));
  return all;
}

// Of ranks [first, end), in f64: the values are so small that every type holds the result exactly, except products, of which few are made.
template <typename T>
T reduced(ReduceOp op, Rank first, Rank end, std::uint64_t i) {
  double result = static_cast<double>(static_cast<float>(value<T>(first, i)));
  for (Rank rank = first + 1; rank < end; ++rank) {
    const double next = static_cast<double>(static_cast<float>(value<T>(rank, i)));
    switch (op) {
      case ReduceOp::kMin: result = next < result ? next : result; break;
      case ReduceOp::kMax: result = next > result ? next : result; break;
      case ReduceOp::kProd: result *= next; break;
      case ReduceOp::kAnd: result = static_cast<double>(static_cast<long>(result) & static_cast<long>(next)); break;
      case ReduceOp::kOr: result = static_cast<double>(static_cast<long>(result) | static_cast<long>(next)); break;
      case ReduceOp::kXor: result = static_cast<double>(static_cast<long>(result) ^ static_cast<long>(next)); break;
      default: result += next;
    }
  }
  return T(static_cast<float>(result));
}

template <typename T>
std::vector<T> reduced(ReduceOp op, Rank first, Rank end, std::uint64_t from, std::uint64_t count) {
  std::vector<T> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(reduced<T>(op, first, end, from + i));
  return all;
}

}  // namespace nexar::test
