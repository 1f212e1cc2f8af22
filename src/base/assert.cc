#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace nexar::base {

void assert_failed(const char* expression, const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "nexar: %s:%d: assertion failed: %s: %s\n", file, line, expression, sentence);
  std::abort();
}

}  // namespace nexar::base
