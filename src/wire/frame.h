// From a message to the bytes of its frame and back.
//
//   std::vector<std::byte> space(frame_bytes_max<Ping>());      or any buffer that large
//   std::size_t bytes = encode_frame(Ping{nonce, now}, {.epoch = 3}, space);
//   Result<Ping> ping = decode_frame<Ping>(header, payload);
//
// A message is a struct with
//   kType                             its FrameType
//   put(Header&, Writer&) const       its values, into header fields and payload
//   static get(const Header&, Reader&)
//   fault() const                     null, or what is wrong with the values: asserted when sent, answered with an error when received
// A *carrier* (kCarriesBytes) describes in its header what the payload belongs to; the payload is the user's and is not looked at.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/bytes.h"
#include "nexar/result.h"
#include "wire/header.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace nexar::wire {

// What a frame belongs to, whatever its type. Types that concern no group leave it 0.
struct Scope {
  std::uint64_t group = 0;
  Epoch epoch = 0;
};

template <typename M>
concept Message = requires(const M& message, Header& header, Writer& writer, Reader& reader) {
  { M::kType } -> std::convertible_to<FrameType>;
  { message.fault() } -> std::same_as<const char*>;
  message.put(header, writer);
  { M::get(header, reader) } -> std::same_as<M>;
};

template <typename M>
concept Carrier = Message<M> && M::kCarriesBytes;

template <typename M>
concept Described = Message<M> && !Carrier<M>;

namespace detail {
// kRefused: `a grant frame has no stripes`.
Error malformed(FrameType type, const char* fault);
}  // namespace detail

// Bytes that hold any frame of this message.
template <Described M>
std::size_t frame_bytes_max() {
  return kHeaderBytes + rules_of(M::kType).length_max;
}

// Writes header and payload to the front of `out`, which holds at least frame_bytes_max, and returns how many bytes they are.
template <Described M>
std::size_t encode_frame(const M& message, Scope scope, base::ByteSpan out) {
  NEXAR_ASSERT(message.fault() == nullptr, "a message that is sent keeps its own rules");
  NEXAR_ASSERT(out.size() >= kHeaderBytes, "a frame's buffer holds its header");
  Header header{.type = M::kType, .group = scope.group, .epoch = scope.epoch};
  Writer writer(out.subspan(kHeaderBytes));
  message.put(header, writer);
  header.length = static_cast<std::uint32_t>(writer.size());
  encode(header, out.first<kHeaderBytes>());
  return kHeaderBytes + writer.size();
}

// The message of a frame whose header was decoded, from all of its payload.
template <Described M>
Result<M> decode_frame(const Header& header, base::ByteView payload) {
  NEXAR_ASSERT(header.type == M::kType && header.length == payload.size(), "a frame is decoded as what it is, whole");
  Reader reader(payload);
  M message = M::get(header, reader);
  if (const char* fault = reader.finish(); fault != nullptr) return detail::malformed(M::kType, fault);
  if (const char* fault = message.fault(); fault != nullptr) return detail::malformed(M::kType, fault);
  return message;
}

// The header of a frame that carries `length` bytes of the user's.
template <Carrier M>
Header header_of(const M& message, Scope scope, std::uint32_t length) {
  NEXAR_ASSERT(message.fault() == nullptr, "a message that is sent keeps its own rules");
  Header header{.type = M::kType, .length = length, .group = scope.group, .epoch = scope.epoch};
  Writer nothing({});
  message.put(header, nothing);
  return header;
}

// What a carrier's header says.
template <Carrier M>
Result<M> read_header(const Header& header) {
  NEXAR_ASSERT(header.type == M::kType, "a frame is decoded as what it is");
  Reader nothing({});
  M message = M::get(header, nothing);
  if (const char* fault = message.fault(); fault != nullptr) return detail::malformed(M::kType, fault);
  return message;
}

}  // namespace nexar::wire
