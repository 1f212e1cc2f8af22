// Reductions do not depend on the floating-point modes of the thread that runs them.
#include <cfenv>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/reducer.h"
#include "reduce/widen.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nexar::reduce {
namespace {

TEST(FloatEnvironment, RoundingModeOfTheCallerIsIgnoredAndKept) {
  const std::vector<float> a = {1.0f};
  const std::vector<float> b = {1e-10f};
  std::vector<float> sum(1);
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const Result<void> done = Reducer::make(DataType::kF32, ReduceOp::kSum).value().combine(a.data(), b.data(), sum.data(), 1);
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  ASSERT_TRUE(done);
  EXPECT_EQ(sum[0], 1.0f);
  EXPECT_EQ(after, FE_UPWARD);
}

#if defined(__SSE__)
TEST(FloatEnvironment, SubnormalsAreKeptWhenTheCallerFlushesThem) {
  constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<float> a = {least};
  std::vector<float> sum(1);
  const std::vector<f16> small = {f16::from_bits(1)};
  std::vector<float> widened(1);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushAndDenormalsAreZero);
  const Result<void> done = Reducer::make(DataType::kF32, ReduceOp::kSum).value().combine(a.data(), a.data(), sum.data(), 1);
  widen(DataType::kF16, small.data(), widened.data(), 1);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  ASSERT_TRUE(done);
  EXPECT_EQ(sum[0], 2 * least);
  EXPECT_EQ(widened[0], 0x1p-24f);
  EXPECT_EQ(after & kFlushAndDenormalsAreZero, kFlushAndDenormalsAreZero);
}
#endif

}  // namespace
}  // namespace nexar::reduce
