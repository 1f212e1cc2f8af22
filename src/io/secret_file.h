// Files that hold secrets: nobody but their owner reads them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "nexar/result.h"

namespace nexar::io {

// Writes a file that only its owner can read, and that did not exist: kInvalidArgument when it does, kIo when it cannot be written; each
// names it. What was begun and not finished is removed.
Result<void> write_new_secret_file(const std::string& path, base::ByteView content);

// All of a file. kIo when it cannot be read, kInvalidArgument when it has more than `bytes_max`, kRefused when the group or others may read
// or write it, or when it is another user's (root reads anybody's); each names it. Whoever asked wipes the bytes.
Result<std::vector<std::byte>> read_secret_file(const std::string& path, std::size_t bytes_max);

}  // namespace nexar::io
