// The header that opens every frame, on every lane and every kind of link.
//
//    0        1        2        3        4                       8           10           12                    16
//    +--------+--------+--------+--------+-----------------------+-----------+------------+---------------------+
//    | magic  | version|  lane  |  type  |        length         |   flags   | generation |        part         |
//    +--------+--------+--------+--------+-----------------------+-----------+------------+---------------------+
//    |                      group                                |                    epoch                     |  32
//    +-----------------------------------------------------------+----------------------------------------------+
//    |                       key                                 |                     id                       |  48
//    +-----------------------------------------------------------+----------------------------------------------+
//
// Everything is little-endian. The first two bytes keep their place and meaning in every version. A field that a type does not use is
// zero, which is checked, so that a later version can give it a meaning.
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "wire/frame_type.h"
#include "wire/limits.h"

namespace nexar::wire {

inline constexpr std::uint8_t kMagic = 0x4e;  // 'N'

// Raised with every change of a layout, number or meaning. Both ends of a link have the same.
inline constexpr std::uint8_t kWireVersion = 1;

// What key, id and part mean depends on the type; the message structs give them their names.
struct Header {
  FrameType type = FrameType::kPing;
  std::uint16_t flags = 0;
  std::uint16_t generation = 0;  // of a stripe: one more each time its lane dies
  std::uint32_t length = 0;      // bytes of payload after the header
  std::uint32_t part = 0;        // step of a collective, stripe of a transfer, deadline or status of a call
  std::uint64_t group = 0;
  Epoch epoch = 0;        // of the sender; in a revocation the epoch that ends
  std::uint64_t key = 0;  // tag, sequence number, position in bytes, or function
  std::uint64_t id = 0;   // transfer, call, or fingerprint

  // The lane follows from the type; on the wire it stands as well, so that a frame on the wrong stream is noticed.
  Lane lane() const { return rules_of(type).lane; }

  bool operator==(const Header&) const = default;
};

// The header must be one that decode_header accepts.
void encode(const Header& header, std::span<std::byte, kHeaderBytes> out);

// Reads the first kHeaderBytes of `bytes`. kRefused, saying what was seen, for everything that this version does not send.
Result<Header> decode_header(base::ByteView bytes);

}  // namespace nexar::wire
