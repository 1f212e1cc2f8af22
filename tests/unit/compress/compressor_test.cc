// The interface: what is refused, the memory bound, and compressors of the application's own.
#include "nexar/compressor.h"

#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compress/accumulator.h"
#include "compress/feedback.h"
#include "compress/model.h"

namespace nexar {
namespace {

using compress::Accumulator;
using compress::compress_with_feedback;

TEST(Compressor, TakesFloatsOf16BitsAndMoreAndNamesWhatItRefuses) {
  for (const auto& compressor : test::all_compressors()) {
    for (const DataType type : kDataTypes) {
      const bool taken = type == DataType::kF32 || type == DataType::kF64 || type == DataType::kF16 || type == DataType::kBf16;
      EXPECT_EQ(compressor->supports(type), taken);
      for (const ReduceOp op : kReduceOps)
        EXPECT_EQ(check_compressible(*compressor, type, op).has_value(), taken && (op == ReduceOp::kSum || op == ReduceOp::kAvg));
      if (taken) continue;
      const std::string sentence =
          std::string(compressor->name()) + " compresses f32, f64, f16 and bf16, not " + std::string(to_string(type));
      std::vector<std::byte> buffer(64);
      std::vector<float> sum(4);
      EXPECT_EQ(compressor->compress(buffer, type, {}, buffer).error().sentence(), sentence);
      EXPECT_EQ(compressor->add(buffer, type, {}, std::span(sum)).error().sentence(), sentence);
      EXPECT_EQ(compressor->subtract(buffer, type, {}, buffer).error().sentence(), sentence);
      EXPECT_EQ(compressor->decompress(buffer, type, {}, buffer).error().sentence(), sentence);
      EXPECT_EQ(compress_with_feedback(*compressor, buffer, buffer, type, {}, buffer).error().sentence(), sentence);
      EXPECT_EQ(compressed_all_reduce_bytes(2, 4, type, *compressor).error().sentence(), sentence);
    }
  }
}

TEST(Compressor, HasANameThatHoldsItsParameters) {
  EXPECT_EQ(Compressor::none()->name(), "none");
  EXPECT_EQ(Compressor::top_k(0.01).value()->name(), "top_k(0.01)");
  EXPECT_EQ(Compressor::random_k(1).value()->name(), "random_k(1)");
  EXPECT_EQ(Compressor::int8()->name(), "int8");
  EXPECT_EQ(Compressor::fp8()->name(), "fp8");
  EXPECT_EQ(Compressor::sign()->name(), "sign");
}

TEST(Compressor, SaysHowMuchMemoryAnAllReduceTakes) {
  const auto top_k = Compressor::top_k(0.01).value();
  // 8 contributions of 4 + 10 * (4 + 4) bytes, and nothing else: f32 is added up in place.
  EXPECT_EQ(compressed_all_reduce_bytes(8, 1000, DataType::kF32, *top_k).value(), 8 * (84 + 8u));
  // 8 of 4 + 10 * (4 + 2), and the sum in f32.
  EXPECT_EQ(compressed_all_reduce_bytes(8, 1000, DataType::kF16, *top_k).value(), 8 * (64 + 8) + 4000u);
  // 10 * 8, and the bitmap: elements are reduced, so there is one contribution.
  EXPECT_EQ(compressed_all_reduce_bytes(8, 1000, DataType::kF64, *Compressor::random_k(0.01).value()).value(), 80 + 8 + 128u);
  EXPECT_EQ(compressed_all_reduce_bytes(2, 1000, DataType::kBf16, *Compressor::int8()).value(), 2 * (4 * 4 + 1000 + 8) + 4000u);
  EXPECT_EQ(compressed_all_reduce_bytes(2, 1000, DataType::kF64, *Compressor::sign()).value(), 2 * (8 + 125 + 8u));
  EXPECT_EQ(compressed_all_reduce_bytes(3, 0, DataType::kF32, *top_k).value(), 3 * (4 + 8u));
}

TEST(Compressor, RefusesAMemoryBoundThatNoNumberHolds) {
  for (const auto& compressor : test::all_compressors()) {
    const std::uint64_t most = ~std::uint64_t{0};
    if (compressor->sends_elements()) continue;  // does not grow with the ranks
    EXPECT_FALSE(compressed_all_reduce_bytes(most, most / 2, DataType::kF64, *compressor)) << compressor->name();
  }
  EXPECT_EQ(compressed_all_reduce_bytes(4, std::uint64_t{1} << 62, DataType::kF32, *Compressor::none()).error().sentence(),
            "4611686018427387904 elements of f32 from 4 ranks are more bytes than there are numbers for");
}

// Sends the first element of f32 tensors. Has only what every compressor must have.
class FirstElement final : public Compressor {
 public:
  enum class Fault { kNone, kThrows, kNoMemory, kTooLong };
  explicit FirstElement(Fault fault = Fault::kNone) : fault_(fault) {}

  std::string_view name() const override { return "first_element"; }
  bool supports(DataType type) const override { return type == DataType::kF32 || type == DataType::kI32; }
  std::uint64_t bytes_max(std::uint64_t, DataType) const override { return 4; }
  Result<std::size_t> compress(std::span<const std::byte> tensor, DataType, const CompressionContext&,
                               std::span<std::byte> out) const override {
    if (fault_ == Fault::kThrows) throw std::runtime_error("no luck");
    if (fault_ == Fault::kNoMemory) throw std::bad_alloc();
    if (fault_ == Fault::kTooLong) return std::size_t{5};
    if (tensor.empty()) return std::size_t{0};
    std::memcpy(out.data(), tensor.data(), 4);
    return std::size_t{4};
  }
  Result<void> add(std::span<const std::byte> compressed, DataType, const CompressionContext&, SumView sum) const override {
    if (fault_ == Fault::kThrows) throw 7;
    if (compressed.empty()) return {};
    float value;
    std::memcpy(&value, compressed.data(), 4);
    std::get<std::span<float>>(sum)[0] += value;
    return {};
  }

 private:
  Fault fault_;
};

TEST(UserCompressor, WorksWithWhatEveryCompressorHas) {
  const FirstElement compressor;
  std::vector<float> gradient = {3, 4, 5};
  std::vector<float> residual = {1, 1, 1};
  std::byte out[4];
  ASSERT_EQ(compress_with_feedback(compressor, std::as_bytes(std::span(gradient)), std::as_writable_bytes(std::span(residual)),
                                   DataType::kF32, {}, out)
                .value(),
            4u);
  EXPECT_EQ(residual, (std::vector<float>{0, 5, 6}));
  Accumulator sum = Accumulator::make(compressor, std::as_writable_bytes(std::span(gradient)), DataType::kF32, ReduceOp::kAvg, {}).value();
  for (int rank = 0; rank < 2; ++rank) sum.add(out).value();
  sum.finish().value();
  EXPECT_EQ(gradient, (std::vector<float>{4, 0, 0}));
  EXPECT_EQ(compressed_all_reduce_bytes(2, 3, DataType::kF32, compressor).value(), 2 * (4 + 8) + 12u);
}

TEST(UserCompressor, CannotAddTypes) {
  const FirstElement compressor;
  EXPECT_EQ(check_compressible(compressor, DataType::kI32, ReduceOp::kSum).error().sentence(),
            "first_element compresses f32, f64, f16 and bf16, not i32");
  EXPECT_EQ(check_compressible(compressor, DataType::kF64, ReduceOp::kSum).error().sentence(), "first_element does not compress f64");
}

TEST(UserCompressor, ThatFailsEndsInAnError) {
  using Fault = FirstElement::Fault;
  std::vector<float> gradient(3);
  std::byte out[4] = {};
  const auto outcome = [&](Fault fault) {
    return compress_with_feedback(FirstElement(fault), std::as_bytes(std::span(gradient)), {}, DataType::kF32, {}, out).error().to_string();
  };
  EXPECT_EQ(outcome(Fault::kThrows), "internal: compressor first_element threw: no luck");
  EXPECT_EQ(outcome(Fault::kNoMemory), "overloaded: no memory for compressor first_element");
  EXPECT_EQ(outcome(Fault::kTooLong), "internal: compressor first_element wrote 5 bytes, more than its bound");
  const FirstElement throws(Fault::kThrows);
  EXPECT_EQ(throws.decompress(out, DataType::kF32, {}, std::as_writable_bytes(std::span(gradient))).error().to_string(),
            "internal: compressor first_element threw: something that is no std::exception");
}

}  // namespace
}  // namespace nexar
