// Any 48 bytes are refused, or are a header that is written as the same 48 bytes.
#include <algorithm>
#include <array>

#include "fuzz.h"
#include "wire/header.h"

namespace nexar::wire {
namespace {

void try_header(base::ByteView bytes) {
  const Result<Header> header = decode_header(bytes);
  if (!header) {
    NEXAR_ASSERT(header.error().code() == ErrorCode::kRefused, "what a peer sends wrongly is refused");
    return;
  }
  std::array<std::byte, kHeaderBytes> again{};
  encode(*header, again);
  NEXAR_ASSERT(std::ranges::equal(again, bytes.first(kHeaderBytes)), "a header has one encoding");
}

}  // namespace
}  // namespace nexar::wire

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nexar::wire::try_header(nexar::fuzz::view(data, size));
  return 0;
}
