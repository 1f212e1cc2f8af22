// Rounding to nearest and subnormals kept, whatever the calling thread has set.
//
// Reductions run on the application's threads too. One that flushes subnormals to zero (-ffast-math, a framework's switch) or rounds
// another way would give its rank other bits than its peers. The usual case costs reading one register.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nexar::reduce {

class FloatEnvironment {
 public:
#if defined(__SSE__)
  FloatEnvironment() : before_(_mm_getcsr()) {
    if ((before_ & kControl) != kStandard) _mm_setcsr(kStandard | (before_ & ~kControl));
  }
  ~FloatEnvironment() {
    if ((before_ & kControl) != kStandard) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kControl = 0xFFC0;   // flush to zero, rounding, exception masks, denormals are zero
  static constexpr unsigned kStandard = 0x1F80;  // all exceptions masked, nothing else
  unsigned before_;
#elif defined(__aarch64__)
  FloatEnvironment() : before_(__builtin_aarch64_get_fpcr()) {
    if (before_ != 0) __builtin_aarch64_set_fpcr(0);
  }
  ~FloatEnvironment() {
    if (before_ != 0) __builtin_aarch64_set_fpcr(before_);
  }

 private:
  unsigned before_;
#endif

 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};

}  // namespace nexar::reduce
