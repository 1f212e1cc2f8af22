// What compressors must do, one element at a time, written as docs/compression.md says it and nothing faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/compressor.h"
#include "reduce/oracle.h"

namespace nexar::test {

inline constexpr DataType kCompressible[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBf16};

using Elements = std::vector<Element64>;

std::vector<std::byte> to_bytes(DataType type, const Elements& elements);
Elements to_elements(DataType type, std::span<const std::byte> bytes);

// The number that an element is, and the element nearest to a number of f32 (of f64 for f64).
double number(DataType type, Element64 element);
Element64 element(DataType type, double number);

// Orders elements by magnitude, all NaNs alike and above infinity.
std::uint64_t magnitude(DataType type, Element64 element);

// The positions of the k largest magnitudes, ascending, ties by lower index.
std::vector<std::uint32_t> largest(DataType type, const Elements& elements, std::size_t k);

// decompress(compress(elements)), each a number of f32 (of f64 for f64). For random_k the positions are given.
std::vector<double> top_k_model(DataType type, const Elements& elements, double ratio);
std::vector<double> int8_model(DataType type, const Elements& elements);
std::vector<double> fp8_model(DataType type, const Elements& elements);
std::vector<double> sign_model(DataType type, const Elements& elements);

// residual - value, rounded to the type, +0 where it is not a number and the value is not zero.
Element64 subtract_model(DataType type, Element64 residual, double value);

// Special elements, moderate numbers and random bits.
Elements random_elements(DataType type, std::size_t count, std::mt19937_64& random);
// Of a narrow range, as gradients are.
Elements gradient_elements(DataType type, std::size_t count, std::mt19937_64& random);

// Names the element at which two lists differ.
testing::AssertionResult same_elements(DataType type, const Elements& got, const Elements& wanted);

// compress() into a buffer of exactly bytes_max() bytes.
std::vector<std::byte> compressed(const Compressor& compressor, DataType type, const Elements& elements,
                                  const CompressionContext& context = {});
// decompress(), of as many elements as are wanted.
Result<Elements> decompressed(const Compressor& compressor, DataType type, std::span<const std::byte> bytes, std::size_t count,
                              const CompressionContext& context = {});

// Every built-in compressor, the sparse ones with some ratios.
std::vector<std::shared_ptr<const Compressor>> all_compressors();

}  // namespace nexar::test
