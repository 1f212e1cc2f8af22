// What the kernel refused, as an Error. Private to io.
#pragma once

#include <string_view>

#include "nexar/error.h"

namespace nexar::io {

// `what: reason (ENAME)`, e.g. "cannot bind 10.0.0.1:80: Permission denied (EACCES)". kOverloaded when the process or the host is out of
// descriptors, because that passes; kIo for all else.
Error kernel_error(std::string_view what, int number);

}  // namespace nexar::io
