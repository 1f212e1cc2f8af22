// Bytes as letters and digits, for what people copy from one place to another.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "crypto/secret.h"

namespace nexar::cluster {

// RFC 4648 base32 in lower case, without padding. Five bits to a letter; `bytes` are a multiple of five, so that nothing is left over.
std::string to_base32(base::ByteView bytes);

// The reverse: exactly `out.size()` bytes. Nothing for any other text, also in upper case: there is one spelling.
[[nodiscard]] bool from_base32(std::string_view text, base::ByteSpan out);

// Of pairs of lower-case hexadecimal digits; nothing for any other text.
std::optional<crypto::Secret> from_hex(std::string_view text);

// Overwrites a text that was secret.
void wipe(std::string& text);

}  // namespace nexar::cluster
