#include "wire/frame.h"

#include <fmt/format.h>

namespace nexar::wire::detail {

Error malformed(FrameType type, const char* fault) {
  return Error(ErrorCode::kRefused, fmt::format("a {} frame {}", to_string(type), fault));
}

}  // namespace nexar::wire::detail
