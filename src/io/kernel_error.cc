#include "io/kernel_error.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace nexar::io {

Error kernel_error(std::string_view what, int number) {
  const char* reason = strerrordesc_np(number);
  const char* name = strerrorname_np(number);
  const ErrorCode code = number == EMFILE || number == ENFILE ? ErrorCode::kOverloaded : ErrorCode::kIo;
  return {code, fmt::format("{}: {} ({})", what, reason != nullptr ? reason : "unknown error",
                            name != nullptr ? name : fmt::format("{}", number).c_str())};
}

}  // namespace nexar::io
