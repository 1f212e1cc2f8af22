// What the fuzzers share: the entry point that libFuzzer and standalone_main.cc call, and a check that stays on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace nexar::fuzz {

inline base::ByteView view(const std::uint8_t* data, std::size_t size) { return std::as_bytes(std::span(data, size)); }

}  // namespace nexar::fuzz
