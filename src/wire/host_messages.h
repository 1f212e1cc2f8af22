// How two ranks of one host agree to share memory: on the control lane of their link, before anything else travels on it.
//
//   lower rank (has called)                      higher rank
//     host_offer(name, nonce)  ------------------>   connects to that unix socket
//     <------------------  host_answer(ready or why not)
//     host_verdict(memory or network)  ---------->
//
// After its verdict the lower rank takes frames by the link that it names, and sends none before one has come; the higher rank takes and
// sends from the verdict on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "wire/frame.h"

namespace nexar::wire {

using HostName = std::array<std::byte, 16>;   // random: of the unix socket
using HostNonce = std::array<std::byte, 16>;  // random: for this peer alone, used once

// The sender listens there.
struct HostOffer {
  static constexpr FrameType kType = FrameType::kHostOffer;
  static constexpr bool kCarriesBytes = false;

  HostName name{};
  HostNonce nonce{};

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static HostOffer get(const Header& header, Reader& reader);
  bool operator==(const HostOffer&) const = default;
};

// Whether the sender could use the memory.
struct HostAnswer {
  static constexpr FrameType kType = FrameType::kHostAnswer;
  static constexpr bool kCarriesBytes = false;

  bool ready = false;
  bool reads = false;  // the sender has read memory of the receiver's process: it can be told where bytes are
  std::string why;     // not; at most kTextBytesMax

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static HostAnswer get(const Header& header, Reader& reader);
  bool operator==(const HostAnswer&) const = default;
};

// What is used from here on.
struct HostVerdict {
  static constexpr FrameType kType = FrameType::kHostVerdict;
  static constexpr bool kCarriesBytes = false;

  bool memory = false;
  bool reads = false;  // as in the answer
  std::string why;     // not memory; at most kTextBytesMax

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static HostVerdict get(const Header& header, Reader& reader);
  bool operator==(const HostVerdict&) const = default;
};

}  // namespace nexar::wire
