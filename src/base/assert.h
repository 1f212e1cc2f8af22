// Asserts for what we control. They stay on in release builds: a broken promise ends the process where it is noticed, with the
// expression and a sentence, instead of corrupting a result somewhere else. What a user, a peer or the kernel controls is never
// asserted; it is answered with an Error.
#pragma once

namespace nexar::base {

// Writes `file:line: assertion failed: expression: sentence` to standard error and aborts.
[[noreturn]] void assert_failed(const char* expression, const char* sentence, const char* file, int line);

}  // namespace nexar::base

#define NEXAR_ASSERT(expression, sentence) \
  (static_cast<bool>(expression) ? void() : ::nexar::base::assert_failed(#expression, sentence, __FILE__, __LINE__))
