// Compressed all_reduce, against a model that compresses and adds up everything in one place.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/compressor.h"
#include "nexar/node.h"
#include "tensor/ranks.h"

namespace nexar {
namespace {

using test::on_all_ranks;
using Pointer = std::shared_ptr<const Compressor>;

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Whole numbers that every type holds exactly, also summed up over a few steps.
template <typename T>
std::vector<T> gradient(Rank rank, int step, std::size_t count) {
  std::mt19937 random(static_cast<std::uint32_t>(rank * 100 + step));
  std::vector<T> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(T(static_cast<float>(static_cast<int>(random() % 41) - 20)));
  return numbers;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& elements) {
  return std::as_bytes(std::span(elements));
}

// All ranks in one place: residuals, contributions, and their sum in rank order.
template <typename T>
class Model {
 public:
  Model(const Compressor& compressor, int ranks, std::size_t count)
      : compressor_(compressor), residuals_(static_cast<std::size_t>(ranks), std::vector<T>(count, T(0.0f))) {}

  std::vector<T> step(int number, ReduceOp op) {
    const std::size_t count = residuals_.front().size();
    const CompressionContext context;
    std::vector<Wide<T>> sum(count);
    for (std::size_t rank = 0; rank < residuals_.size(); ++rank) {
      std::vector<T>& residual = residuals_[rank];
      const std::vector<T> own = gradient<T>(static_cast<Rank>(rank), number, count);
      for (std::size_t i = 0; i < count; ++i) residual[i] = T(static_cast<Wide<T>>(residual[i]) + static_cast<Wide<T>>(own[i]));
      std::vector<std::byte> form(compressor_.bytes_max(count, data_type_of<T>));
      form.resize(compressor_.compress(bytes_of(residual), data_type_of<T>, context, form).value());
      compressor_.add(form, data_type_of<T>, context, std::span(sum)).value();
      compressor_.subtract(form, data_type_of<T>, context, std::as_writable_bytes(std::span(residual))).value();
    }
    std::vector<T> result;
    for (const Wide<T> number_here : sum)
      result.push_back(T(op == ReduceOp::kAvg ? number_here / static_cast<Wide<T>>(residuals_.size()) : number_here));
    return result;
  }

  const std::vector<T>& residual(Rank rank) const { return residuals_[static_cast<std::size_t>(rank)]; }

 private:
  const Compressor& compressor_;
  std::vector<std::vector<T>> residuals_;
};

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
void compare_with_model(const std::vector<Node>& nodes, const Pointer& compressor, std::size_t count, ReduceOp op) {
  const int ranks = static_cast<int>(nodes.size());
  Model<T> model(*compressor, ranks, count);
  std::vector<std::vector<T>> expected;
  for (int step = 0; step < 3; ++step) expected.push_back(model.step(step, op));
  on_all_ranks(nodes, [&](const Group& world) {
    std::vector<T> residual(count, T(0.0f));
    for (int step = 0; step < 3; ++step) {
      std::vector<T> tensor = gradient<T>(world.rank(), step, count);
      const Result<void> done = world.all_reduce_compressed(tensor.data(), count, data_type_of<T>, op, compressor, residual.data());
      ASSERT_TRUE(done) << done.error().to_string();
      ASSERT_TRUE(same_bits(tensor, expected[static_cast<std::size_t>(step)]))
          << compressor->name() << " " << to_string(data_type_of<T>) << " count " << count << " rank " << world.rank() << " of " << ranks;
    }
    ASSERT_TRUE(same_bits(residual, model.residual(world.rank())));
  });
}

class CompressedTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { nodes = Node::local(GetParam()).value(); }
  std::vector<Node> nodes;
};

TEST_P(CompressedTest, IsTheModelBitForBitWithItsResiduals) {
  for (const Pointer& compressor : {Compressor::top_k(0.01).value(), Compressor::top_k(0.3).value(), Compressor::top_k(1).value(),
                                    Compressor::int8(), Compressor::fp8(), Compressor::sign()}) {
    for (const std::size_t count : {0u, 1u, 700u}) compare_with_model<float>(nodes, compressor, count, ReduceOp::kSum);
    compare_with_model<float>(nodes, compressor, 300, ReduceOp::kAvg);
    compare_with_model<double>(nodes, compressor, 300, ReduceOp::kSum);
    compare_with_model<f16>(nodes, compressor, 300, ReduceOp::kAvg);
    compare_with_model<bf16>(nodes, compressor, 300, ReduceOp::kSum);
  }
}

// Positions follow from the sequence number, so the model is what must hold for any: nothing is lost, nothing comes twice.
TEST_P(CompressedTest, WhereElementsAreSentNothingIsLostAndAllRanksAgree) {
  for (const Pointer& compressor : {Compressor::none(), Compressor::random_k(0.1).value(), Compressor::random_k(1).value()}) {
    constexpr std::size_t kCount = 500;
    std::mutex mutex;
    std::vector<double> left(kCount);
    std::map<Rank, std::vector<std::vector<float>>> results;
    on_all_ranks(nodes, [&](const Group& world) {
      std::vector<float> residual(kCount);
      for (int step = 0; step < 4; ++step) {
        std::vector<float> tensor = gradient<float>(world.rank(), step, kCount);
        ASSERT_TRUE(world.all_reduce_compressed(tensor.data(), kCount, DataType::kF32, ReduceOp::kSum, compressor, residual.data()));
        const std::lock_guard lock(mutex);
        results[world.rank()].push_back(tensor);
      }
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < kCount; ++i) left[i] += residual[i];
    });
    std::vector<double> given(kCount);
    std::vector<double> got(kCount);
    for (int step = 0; step < 4; ++step) {
      for (Rank rank = 0; rank < GetParam(); ++rank) {
        const std::vector<float> one = gradient<float>(rank, step, kCount);
        for (std::size_t i = 0; i < kCount; ++i) given[i] += one[i];
        EXPECT_TRUE(same_bits(results[rank][static_cast<std::size_t>(step)], results[0][static_cast<std::size_t>(step)]));
      }
      for (std::size_t i = 0; i < kCount; ++i) got[i] += results[0][static_cast<std::size_t>(step)][i];
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i] + left[i], given[i]) << compressor->name() << " " << i;
    if (compressor->name() == Compressor::random_k(0.1).value()->name()) {
      EXPECT_NE(results[0][0], results[0][1]) << "other calls, other positions";
    }
  }
}

TEST_P(CompressedTest, WithoutAResidualWhatIsLeftOutIsLost) {
  on_all_ranks(nodes, [](const Group& world) {
    std::vector<float> tensor = {1, -5, 3, 2};
    ASSERT_TRUE(world.all_reduce_compressed(tensor.data(), 4, DataType::kF32, ReduceOp::kAvg, Compressor::top_k(0.5).value(), nullptr));
    EXPECT_EQ(tensor, (std::vector<float>{0, -5, 3, 0}));
  });
}

TEST_P(CompressedTest, WhatIsNoNumberIsToldOnce) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  on_all_ranks(nodes, [&](const Group& world) {
    std::vector<float> residual(6);
    std::vector<float> tensor = {1, 2, 3, 4, 5, 6};
    if (world.rank() == 0) {
      tensor[1] = inf;
      tensor[4] = nan;
    }
    const Pointer top_2 = Compressor::top_k(0.33).value();
    ASSERT_TRUE(world.all_reduce_compressed(tensor.data(), 6, DataType::kF32, ReduceOp::kSum, top_2, residual.data()));
    EXPECT_EQ(tensor[1], inf);
    EXPECT_TRUE(std::isnan(tensor[4]));
    tensor.assign(6, 0);
    ASSERT_TRUE(world.all_reduce_compressed(tensor.data(), 6, DataType::kF32, ReduceOp::kSum, top_2, residual.data()));
    for (const float number : tensor) EXPECT_TRUE(std::isfinite(number));
  });
}

TEST_P(CompressedTest, ManyAreInFlight) {
  on_all_ranks(nodes, [&](const Group& world) {
    std::vector<std::vector<float>> tensors(20);
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].assign(100 + i, static_cast<float>(i + 1));
      operations.push_back(world.start_all_reduce_compressed(tensors[i].data(), tensors[i].size(), DataType::kF32, ReduceOp::kSum,
                                                             Compressor::sign(), nullptr));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_TRUE(operations[i].wait());
      for (const float number : tensors[i]) ASSERT_EQ(number, static_cast<float>((i + 1) * static_cast<std::size_t>(world.size())));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CompressedTest, testing::Range(1, 10), [](const auto& ranks) { return std::to_string(ranks.param); });

// The same by messages: what is added up does not depend on how it came.
class CompressedOverNet : public testing::TestWithParam<int> {};

TEST_P(CompressedOverNet, IsTheModelBitForBitWithItsResiduals) {
  LocalOptions options;
  options.config.transport = Transport::kNet;
  const std::vector<Node> nodes = Node::local(GetParam(), options).value();
  for (const Pointer& compressor : {Compressor::top_k(0.1).value(), Compressor::int8(), Compressor::sign()}) {
    compare_with_model<float>(nodes, compressor, 300, ReduceOp::kSum);
    compare_with_model<bf16>(nodes, compressor, 100, ReduceOp::kAvg);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CompressedOverNet, testing::Range(1, 10), [](const auto& ranks) { return std::to_string(ranks.param); });

// Sends what is not zero, so that lengths differ between ranks.
class NonZeros : public Compressor {
 public:
  std::string_view name() const override { return "non_zeros"; }
  bool supports(DataType type) const override { return type == DataType::kF32; }
  std::uint64_t bytes_max(std::uint64_t count, DataType) const override { return count * 8; }

  Result<std::size_t> compress(std::span<const std::byte> tensor, DataType, const CompressionContext&,
                               std::span<std::byte> out) const override {
    std::size_t length = 0;
    for (std::uint32_t i = 0; i < tensor.size() / 4; ++i) {
      float value = 0;
      std::memcpy(&value, tensor.data() + i * 4, 4);
      if (value == 0) continue;
      std::memcpy(out.data() + length, &i, 4);
      std::memcpy(out.data() + length + 4, &value, 4);
      length += 8;
    }
    return length;
  }

  Result<void> add(std::span<const std::byte> compressed, DataType, const CompressionContext&, SumView sum) const override {
    for (std::size_t at = 0; at < compressed.size(); at += 8) {
      std::uint32_t index = 0;
      float value = 0;
      std::memcpy(&index, compressed.data() + at, 4);
      std::memcpy(&value, compressed.data() + at + 4, 4);
      if (value == 666) return Error(ErrorCode::kInvalidArgument, "that is no gradient");
      std::get<std::span<float>>(sum)[index] += value;
    }
    return {};
  }
};

class Throwing final : public NonZeros {
 public:
  Result<std::size_t> compress(std::span<const std::byte>, DataType, const CompressionContext&, std::span<std::byte>) const override {
    throw std::runtime_error("out of ideas");
  }
};

TEST(Compressed, AnApplicationsOwnCompressorMaySendAsMuchAsItNeeds) {
  const std::vector<Node> nodes = Node::local(3).value();
  on_all_ranks(nodes, [](const Group& world) {
    std::vector<float> tensor(10);
    for (Rank i = 0; i <= world.rank(); ++i) tensor[static_cast<std::size_t>(i * 2)] = 1;
    ASSERT_TRUE(world.all_reduce_compressed(tensor.data(), 10, DataType::kF32, ReduceOp::kSum, std::make_shared<NonZeros>(), nullptr));
    EXPECT_EQ(tensor, (std::vector<float>{3, 0, 2, 0, 1, 0, 0, 0, 0, 0}));
  });
}

// How a call ended on each rank, and that the group works afterwards.
std::vector<Result<void>> outcomes(const std::vector<Node>& nodes, const std::function<Result<void>(const Group&)>& call) {
  std::vector<Result<void>> results(nodes.size());
  on_all_ranks(nodes, [&](const Group& world) {
    results[static_cast<std::size_t>(world.rank())] = call(world);
    std::int32_t one = 1;
    std::int32_t all = 0;
    const Result<void> after = world.all_reduce(&one, &all, 1, DataType::kI32, ReduceOp::kSum);
    EXPECT_TRUE(after) << after.error().to_string();
    EXPECT_EQ(all, world.size());
  });
  return results;
}

void expect_all(const std::vector<Result<void>>& results, ErrorCode code, const std::string& part) {
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code) << result.error().to_string();
    EXPECT_NE(result.error().to_string().find(part), std::string::npos) << result.error().to_string();
  }
}

// Each finds it out by itself, or from a rank that was earlier.
void expect_refused(const std::vector<Result<void>>& results, ErrorCode code, const std::string& part) {
  int by_themselves = 0;
  for (const Result<void>& result : results) {
    ASSERT_FALSE(result);
    const bool by_itself = result.error().code() == code;
    by_themselves += by_itself;
    EXPECT_TRUE(by_itself || result.error().code() == ErrorCode::kCancelled) << result.error().to_string();
    EXPECT_NE(result.error().to_string().find(part), std::string::npos) << result.error().to_string();
  }
  EXPECT_GT(by_themselves, 0);
}

TEST(Compressed, WhatCannotBeCompressedIsRefused) {
  const std::vector<Node> nodes = Node::local(3).value();
  std::vector<double> memory(8);
  const auto call = [&](std::uint64_t count, DataType type, ReduceOp op, Pointer compressor, bool null = false) {
    return outcomes(nodes, [=, &memory](const Group& world) {
      std::vector<double> own = memory;
      return world.all_reduce_compressed(null ? nullptr : own.data(), count, type, op, compressor, nullptr);
    });
  };
  const Pointer top_k = Compressor::top_k(0.5).value();
  expect_refused(call(4, DataType::kI32, ReduceOp::kSum, top_k), ErrorCode::kInvalidArgument, "not i32");
  expect_refused(call(4, DataType::kF32, ReduceOp::kMax, top_k), ErrorCode::kInvalidArgument, "not max");
  expect_refused(call(4, DataType::kF32, ReduceOp::kSum, nullptr), ErrorCode::kInvalidArgument, "no compressor");
  expect_refused(call(4, DataType::kF32, ReduceOp::kSum, top_k, true), ErrorCode::kInvalidArgument, "null");
  expect_refused(call(~std::uint64_t{0} / 2, DataType::kF32, ReduceOp::kSum, top_k), ErrorCode::kInvalidArgument, "do not fit");
  expect_refused(call(4, DataType::kF64, ReduceOp::kSum, std::make_shared<NonZeros>()), ErrorCode::kInvalidArgument,
                 "does not compress f64");
}

TEST(Compressed, MoreMemoryThanAllowedIsRefusedBeforeItIsTaken) {
  LocalOptions options;
  options.config.compressed_all_reduce_max_bytes = 1000;
  const std::vector<Node> nodes = Node::local(3, options).value();
  const Pointer int8 = Compressor::int8();
  std::vector<float> memory(500);
  expect_refused(outcomes(nodes,
                          [&](const Group& world) {
                            // Nothing of the tensor is touched: a terabyte at an address that is not there is refused as well.
                            return world.all_reduce_compressed(memory.data(), std::uint64_t{1} << 38, DataType::kF32, ReduceOp::kSum, int8,
                                                               nullptr);
                          }),
                 ErrorCode::kOverloaded, "compressed_all_reduce_max_bytes is 1000");
}

TEST(Compressed, ARankThatFailsAloneEndsItForAllAndIsNamed) {
  const std::vector<Node> nodes = Node::local(3).value();
  const std::vector<Result<void>> results = outcomes(nodes, [](const Group& world) {
    std::vector<float> tensor(10, 1.0f);
    Pointer compressor = std::make_shared<NonZeros>();
    if (world.rank() == 1) compressor = std::make_shared<Throwing>();
    return world.all_reduce_compressed(tensor.data(), 10, DataType::kF32, ReduceOp::kSum, compressor, nullptr);
  });
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code(), ErrorCode::kInternal);
  for (const std::size_t other : {0u, 2u}) {
    ASSERT_FALSE(results[other]);
    EXPECT_EQ(results[other].error().code(), ErrorCode::kCancelled);
    EXPECT_NE(results[other].error().to_string().find("rank 1"), std::string::npos) << results[other].error().to_string();
    EXPECT_NE(results[other].error().to_string().find("out of ideas"), std::string::npos) << results[other].error().to_string();
  }
}

TEST(Compressed, RanksThatCompressDifferentlyAreToldSo) {
  const std::vector<Node> nodes = Node::local(3).value();
  expect_all(outcomes(nodes,
                      [](const Group& world) {
                        std::vector<float> tensor(10, 1.0f);
                        return world.all_reduce_compressed(tensor.data(), 10, DataType::kF32, ReduceOp::kSum,
                                                           world.rank() == 2 ? Compressor::fp8() : Compressor::int8(), nullptr);
                      }),
             ErrorCode::kMismatch, "all_reduce_compressed");
}

TEST(Compressed, AContributionThatIsRefusedIsRefusedByAll) {
  const std::vector<Node> nodes = Node::local(3).value();
  expect_all(outcomes(nodes,
                      [](const Group& world) {
                        std::vector<float> tensor(10, world.rank() == 1 ? 666.0f : 1.0f);
                        return world.all_reduce_compressed(tensor.data(), 10, DataType::kF32, ReduceOp::kSum, std::make_shared<NonZeros>(),
                                                           nullptr);
                      }),
             ErrorCode::kInvalidArgument, "that is no gradient");
}

}  // namespace
}  // namespace nexar
