// Compression does not depend on the floating-point modes of the thread that runs it.
#include <cfenv>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "compress/accumulator.h"
#include "compress/feedback.h"
#include "compress/model.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nexar::compress {
namespace {

using Bytes = std::vector<std::byte>;

struct Outcome {
  Bytes sent;
  Bytes residual;
  Bytes reduced;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(const Compressor& compressor, DataType type, const Bytes& gradient) {
  Outcome outcome;
  outcome.residual.resize(gradient.size());
  outcome.reduced.resize(gradient.size());
  const std::size_t count = gradient.size() / size_of(type);
  for (int step = 0; step < 2; ++step) {
    outcome.sent.assign(compressor.bytes_max(count, type), {});
    outcome.sent.resize(compress_with_feedback(compressor, gradient, outcome.residual, type, {}, outcome.sent).value());
  }
  Accumulator sum = Accumulator::make(compressor, outcome.reduced, type, ReduceOp::kAvg, {}).value();
  for (int rank = 0; rank < 3; ++rank) sum.add(outcome.sent).value();
  sum.finish().value();
  return outcome;
}

// Gradients that rounding and subnormals show in, and a length of which a tenth is no whole number.
Bytes gradient(DataType type) {
  std::mt19937_64 random(12);
  test::Elements elements = test::gradient_elements(type, 1237, random);
  for (std::size_t i = 0; i < elements.size(); i += 3) elements[i] &= 0x3FF;
  for (std::size_t i = 300; i < 600; ++i) elements[i] &= 0x3FF;
  return test::to_bytes(type, elements);
}

void expect_the_same_with(const std::function<void()>& set, const std::function<void()>& restore) {
  for (const DataType type : test::kCompressible) {
    const Bytes input = gradient(type);
    for (const auto& compressor : test::all_compressors()) {
      const Outcome wanted = run(*compressor, type, input);
      set();
      const Outcome got = run(*compressor, type, input);
      restore();
      EXPECT_TRUE(got == wanted) << compressor->name() << " of " << to_string(type);
    }
  }
}

TEST(CompressionEnvironment, RoundingModeOfTheCallerIsIgnored) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    expect_the_same_with([&] { std::fesetround(mode); }, [] { std::fesetround(FE_TONEAREST); });
}

#if defined(__SSE__)
TEST(CompressionEnvironment, SubnormalsAreKeptWhenTheCallerFlushesThem) {
  const unsigned before = _mm_getcsr();
  expect_the_same_with([&] { _mm_setcsr(before | 0x8040); }, [&] { _mm_setcsr(before); });
}
#endif

}  // namespace
}  // namespace nexar::compress
