// Any payload under any header fields is refused, or is a message that is written as the same bytes and read as the same message.
//
// Input: a byte that chooses the type, the header from its flags on (40 bytes), the payload.
#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz.h"
#include "wire/any_message.h"

namespace nexar::wire {
namespace {

constexpr std::size_t kFieldsAt = 8;  // magic, version, lane, type and length stand before and are made right

std::array<std::byte, kHeaderBytes> header_bytes(FrameType type, base::ByteView fields, std::size_t length) {
  std::array<std::byte, kHeaderBytes> bytes{};
  base::store_le(bytes.data(), kMagic);
  base::store_le(bytes.data() + 1, kWireVersion);
  base::store_le(bytes.data() + 2, static_cast<std::uint8_t>(rules_of(type).lane));
  base::store_le(bytes.data() + 3, static_cast<std::uint8_t>(type));
  base::store_le(bytes.data() + 4, static_cast<std::uint32_t>(length));
  std::memcpy(bytes.data() + kFieldsAt, fields.data(), fields.size());
  return bytes;
}

void try_message(base::ByteView input) {
  if (input.size() < 1 + kHeaderBytes - kFieldsAt) return;
  const FrameType type = all_types()[static_cast<std::size_t>(input[0]) % all_types().size()];
  const base::ByteView payload = input.subspan(1 + kHeaderBytes - kFieldsAt);
  const auto bytes = header_bytes(type, input.subspan(1, kHeaderBytes - kFieldsAt), payload.size());
  const Result<Header> header = decode_header(bytes);
  if (!header) return;
  const Result<AnyMessage> message = decode_any(*header, payload);
  if (!message) {
    NEXAR_ASSERT(message.error().code() == ErrorCode::kRefused, "what a peer sends wrongly is refused");
    return;
  }
  const std::vector<std::byte> again = encode_any(*message, {header->group, header->epoch}, payload);
  NEXAR_ASSERT(std::ranges::equal(std::span(again).first(kHeaderBytes), bytes), "a message has one encoding: its header");
  NEXAR_ASSERT(std::ranges::equal(std::span(again).subspan(kHeaderBytes), payload), "a message has one encoding: its payload");
  NEXAR_ASSERT(*decode_any(*header, std::span(again).subspan(kHeaderBytes)) == *message, "a message is read as it was written");
}

}  // namespace
}  // namespace nexar::wire

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nexar::wire::try_message(nexar::fuzz::view(data, size));
  return 0;
}
