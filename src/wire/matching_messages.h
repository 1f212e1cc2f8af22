// Messages that are paired with receives, and the credit under which they travel.
//
//   sender                                  receiver
//     message        eager, under credit      credit      gives bytes and messages back
//     announce       too large, or no credit  grant, refuse (transfer_messages.h)
//     queued         announcements are spent  want        a receive that found nothing here: announce the first match
//
// message and announce travel on the data lane, in the order of sending; the others on control.
#pragma once

#include <cstdint>

#include "wire/frame.h"

namespace nexar::wire {

// Collectives and point-to-point messages never match each other and have credit of their own.
enum class Kind : std::uint8_t { kPointToPoint, kCollective };

// An eager message; the payload is its bytes, at most kEagerBytesMax.
struct EagerMessage {
  static constexpr FrameType kType = FrameType::kMessage;
  static constexpr bool kCarriesBytes = true;

  Kind kind = Kind::kPointToPoint;
  std::uint64_t key = 0;          // tag; of a collective the sequence number
  std::uint32_t step = 0;         // of a collective: which step or channel of its plan
  std::uint64_t fingerprint = 0;  // of a collective: of the call (call.h), never 0

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static EagerMessage get(const Header& header, Reader& reader);
  bool operator==(const EagerMessage&) const = default;
};

// A message whose bytes wait with the sender until they are granted.
struct Announce {
  static constexpr FrameType kType = FrameType::kAnnounce;
  static constexpr bool kCarriesBytes = false;

  Kind kind = Kind::kPointToPoint;
  std::uint64_t key = 0;
  std::uint32_t step = 0;
  std::uint64_t transfer = 0;  // chosen by the sender (transfer_messages.h)
  std::uint64_t bytes = 0;     // of the whole message
  std::uint64_t fingerprint = 0;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Announce get(const Header& header, Reader& reader);
  bool operator==(const Announce&) const = default;
};

// A posted receive, an entered operation or a probe that found no match, told to senders that queue.
struct Want {
  static constexpr FrameType kType = FrameType::kWant;
  static constexpr bool kCarriesBytes = false;

  Kind kind = Kind::kPointToPoint;
  bool any_tag = false;  // point-to-point only; the key is 0 then
  std::uint64_t key = 0;
  std::uint32_t step = 0;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Want get(const Header& header, Reader& reader);
  bool operator==(const Want&) const = default;
};

// The sender has spent its announcements in this group and keeps messages to itself; 0 says that it no longer does.
struct Queued {
  static constexpr FrameType kType = FrameType::kQueued;
  static constexpr bool kCarriesBytes = false;

  Kind kind = Kind::kPointToPoint;
  std::uint32_t messages = 0;

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Queued get(const Header& header, Reader& reader);
  bool operator==(const Queued&) const = default;
};

// Eager credit that the receiver gives back, in addition to what the sender has.
struct Credit {
  static constexpr FrameType kType = FrameType::kCredit;
  static constexpr bool kCarriesBytes = false;

  Kind kind = Kind::kPointToPoint;
  std::uint64_t bytes = 0;
  std::uint32_t messages = 0;

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Credit get(const Header& header, Reader& reader);
  bool operator==(const Credit&) const = default;
};

}  // namespace nexar::wire
