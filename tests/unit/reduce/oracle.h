// What a reduction must give, one element at a time, written as the contract says it and nothing faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "nexar/data_type.h"
#include "nexar/reduce_op.h"

namespace nexar::test {

// One element of any type: its bytes, in the lowest ones.
using Element64 = std::uint64_t;

// The inputs reduced from left to right; avg is divided by `divisor`.
Element64 reduce_elements(DataType type, ReduceOp op, std::span<const Element64> inputs, std::uint64_t divisor);

// Equal bits, or two NaNs.
bool same_element(DataType type, Element64 a, Element64 b);

// Elements of a buffer at any alignment.
Element64 load_element(DataType type, const std::uint8_t* buffer, std::size_t index);
void store_element(DataType type, std::uint8_t* buffer, std::size_t index, Element64 element);

// The ops that have a meaning on a type.
std::vector<ReduceOp> ops_of(DataType type);

// Where arithmetic goes wrong: zeros, ones, extremes, infinities, NaN, subnormals.
std::vector<Element64> special_elements(DataType type);

// A special one now and then, otherwise random bits or a number of moderate size.
Element64 random_element(DataType type, std::mt19937_64& random);

}  // namespace nexar::test
