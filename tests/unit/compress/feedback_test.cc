// Error feedback against the serial model, for every compressor and type.
#include "compress/feedback.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compress/model.h"
#include "compress/positions.h"
#include "compress/shards.h"

namespace nexar::compress {
namespace {

using test::Elements;

struct Case {
  std::string name;
  std::shared_ptr<const Compressor> compressor;
  std::function<std::vector<double>(DataType, const Elements&, const CompressionContext&)> model;
};

std::vector<Case> cases() {
  const auto without_context = [](auto model) {
    return [model](DataType type, const Elements& elements, const CompressionContext&) { return model(type, elements); };
  };
  const auto dense = [](DataType type, const Elements& elements) {
    std::vector<double> values;
    for (const test::Element64 element : elements) values.push_back(test::number(type, element));
    return values;
  };
  std::vector<Case> all = {{"none", Compressor::none(), without_context(dense)},
                           {"int8", Compressor::int8(), without_context(test::int8_model)},
                           {"fp8", Compressor::fp8(), without_context(test::fp8_model)},
                           {"sign", Compressor::sign(), without_context(test::sign_model)}};
  for (const double ratio : {1e-9, 0.1, 1.0}) {
    all.push_back(
        {"top_k(" + std::to_string(ratio) + ")", Compressor::top_k(ratio).value(),
         [ratio](DataType type, const Elements& elements, const CompressionContext&) { return test::top_k_model(type, elements, ratio); }});
    all.push_back({"random_k(" + std::to_string(ratio) + ")", Compressor::random_k(ratio).value(),
                   [ratio](DataType type, const Elements& elements, const CompressionContext& context) {
                     std::vector<double> values(elements.size());
                     Positions::draw(context, 0, static_cast<std::uint32_t>(elements.size()), kept(elements.size(), ratio))
                         .for_each([&](std::size_t i) { values[i] = test::number(type, elements[i]); });
                     return values;
                   }});
  }
  return all;
}

Elements subtract(DataType type, const Elements& residual, const std::vector<double>& values) {
  Elements rest(residual.size());
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = test::subtract_model(type, residual[i], values[i]);
  return rest;
}

Elements add(DataType type, const Elements& a, const Elements& b) {
  Elements sum(a.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const test::Element64 both[] = {a[i], b[i]};
    sum[i] = test::reduce_elements(type, ReduceOp::kSum, both, 1);
  }
  return sum;
}

class FeedbackTest : public testing::TestWithParam<DataType> {};

TEST_P(FeedbackTest, FollowsTheSerialModelStepByStep) {
  const DataType type = GetParam();
  std::mt19937_64 random(7);
  for (const Case& each : cases()) {
    for (const std::size_t count : {1, 2, 9, 255, 256, 257, 1023, 1024, 1025, 2600}) {
      for (const bool wild : {false, true}) {
        std::vector<std::byte> residual(count * size_of(type));
        Elements model(count);
        std::vector<std::byte> out(each.compressor->bytes_max(count, type));
        for (std::uint64_t step = 0; step < 4; ++step) {
          const CompressionContext context = {.group = 3, .sequence = step, .seed = 1};
          const Elements gradient = wild ? test::random_elements(type, count, random) : test::gradient_elements(type, count, random);
          const std::size_t length =
              compress_with_feedback(*each.compressor, test::to_bytes(type, gradient), residual, type, context, out).value();

          model = add(type, model, gradient);
          const std::vector<double> values = each.model(type, model, context);
          model = subtract(type, model, values);
          ASSERT_TRUE(test::same_elements(type, test::to_elements(type, residual), model))
              << each.name << ", " << count << " elements, step " << step << (wild ? ", wild" : "");
          Elements sent(count);
          for (std::size_t i = 0; i < count; ++i) sent[i] = test::element(type, values[i] == 0 ? 0.0 : values[i]);
          ASSERT_TRUE(test::same_elements(
              type, test::decompressed(*each.compressor, type, std::span(out).first(length), count, context).value(), sent))
              << each.name << ", " << count << " elements, step " << step << (wild ? ", wild" : "");
        }
      }
    }
  }
}

TEST_P(FeedbackTest, ForgetsWhatIsNotANumberOnceItIsTold) {
  const DataType type = GetParam();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& compressor :
       {Compressor::none(), Compressor::top_k(0.5).value(), Compressor::int8(), Compressor::fp8(), Compressor::sign()}) {
    Elements gradient;
    for (const double number : {infinity, -1.0, std::numeric_limits<double>::quiet_NaN(), 0.5, -infinity, 0.25})
      gradient.push_back(test::element(type, number));
    std::vector<std::byte> residual(gradient.size() * size_of(type));
    std::vector<std::byte> out(compressor->bytes_max(gradient.size(), type));
    const std::size_t length = compress_with_feedback(*compressor, test::to_bytes(type, gradient), residual, type, {}, out).value();
    const Elements told = test::decompressed(*compressor, type, std::span(out).first(length), gradient.size()).value();
    for (const std::size_t i : {0, 2, 4}) EXPECT_FALSE(std::isfinite(test::number(type, told[i]))) << compressor->name() << " " << i;
    for (const test::Element64 left : test::to_elements(type, residual))
      EXPECT_TRUE(std::isfinite(test::number(type, left))) << compressor->name();
  }
}

// Nothing is lost: what all calls sent and what the residual holds are the sum of the gradients. Small integers make that exact in f32.
TEST_P(FeedbackTest, SendsEverythingSoonerOrLater) {
  const DataType type = GetParam();
  const auto compressor = Compressor::top_k(0.05).value();
  const std::size_t count = 200;
  std::mt19937_64 random(8);
  Elements total(count);
  Elements sent(count);
  std::vector<std::byte> residual(count * size_of(type));
  std::vector<std::byte> out(compressor->bytes_max(count, type));
  for (int step = 0; step < 8; ++step) {
    Elements gradient(count);
    for (test::Element64& element : gradient) element = test::element(type, static_cast<double>(random() % 15) - 7.0);
    total = add(type, total, gradient);
    const std::size_t length = compress_with_feedback(*compressor, test::to_bytes(type, gradient), residual, type, {}, out).value();
    sent = add(type, sent, test::decompressed(*compressor, type, std::span(out).first(length), count).value());
  }
  EXPECT_TRUE(test::same_elements(type, add(type, sent, test::to_elements(type, residual)), total));
  for (int step = 0; step < 20; ++step) {
    const std::size_t length = compress_with_feedback(*compressor, test::to_bytes(type, Elements(count)), residual, type, {}, out).value();
    sent = add(type, sent, test::decompressed(*compressor, type, std::span(out).first(length), count).value());
  }
  EXPECT_TRUE(test::same_elements(type, sent, total));
}

TEST_P(FeedbackTest, WithoutAResidualCompressesTheGradientAlone) {
  std::mt19937_64 random(9);
  const Elements gradient = test::random_elements(GetParam(), 300, random);
  for (const auto& compressor : test::all_compressors()) {
    std::vector<std::byte> out(compressor->bytes_max(300, GetParam()));
    out.resize(compress_with_feedback(*compressor, test::to_bytes(GetParam(), gradient), {}, GetParam(), {}, out).value());
    EXPECT_EQ(out, test::compressed(*compressor, GetParam(), gradient)) << compressor->name();
  }
}

TEST_P(FeedbackTest, AnEmptyTensorGoesThroughEveryCompressor) {
  for (const auto& compressor : test::all_compressors()) {
    std::vector<std::byte> out(compressor->bytes_max(0, GetParam()));
    EXPECT_EQ(compress_with_feedback(*compressor, {}, {}, GetParam(), {}, out).value(), out.size()) << compressor->name();
    EXPECT_TRUE(compressor->decompress(out, GetParam(), {}, {})) << compressor->name();
    EXPECT_TRUE(compressor->subtract(out, GetParam(), {}, {})) << compressor->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FeedbackTest, testing::ValuesIn(test::kCompressible),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

TEST(Feedback, RefusesBuffersThatDoNotFit) {
  const auto top_k = Compressor::top_k(0.5).value();
  std::vector<std::byte> gradient(16), residual(12), out(64);
  EXPECT_EQ(compress_with_feedback(*top_k, gradient, residual, DataType::kF32, {}, out).error().sentence(),
            "the residual has 12 bytes and the gradient 16");
  EXPECT_EQ(compress_with_feedback(*top_k, std::span(gradient).first(15), {}, DataType::kF32, {}, out).error().sentence(),
            "15 bytes are no whole number of elements of f32");
  EXPECT_EQ(compress_with_feedback(*top_k, gradient, {}, DataType::kF32, {}, std::span(out).first(19)).error().sentence(),
            "top_k(0.5) may need 20 bytes and is given 19");
}

}  // namespace
}  // namespace nexar::compress
