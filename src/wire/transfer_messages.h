// Bulk transfers: bytes that flow only under a grant, in stripes, and arrive exactly once.
//
//   sender                                      receiver
//     announce (data)                             grant(transfer, offset, bytes, stripes)
//     bulk(transfer, stripe, position) ...        watermark(stripe, bytes so far) ... watermark(final)
//                                                 a lane died: resume(stripe, bytes so far, next generation)
//     bulk of the next generation ...
//
// A transfer's number is unique on its link for the direction in which the bytes flow, and never used again. The sender chooses it when
// it announces. A collective's receiver knows what will come and may grant ahead of any announcement; then the receiver chooses it, with
// kChosenByReceiver set, and names the call and its step.
#pragma once

#include <cstdint>

#include "wire/frame.h"

namespace nexar::wire {

inline constexpr std::uint64_t kChosenByReceiver = std::uint64_t{1} << 63;

// Set in the numbers of the arguments and results of calls, which outlive an epoch.
inline constexpr std::uint64_t kOfCall = std::uint64_t{1} << 62;
constexpr bool is_of_call(std::uint64_t transfer) { return (transfer & (kChosenByReceiver | kOfCall)) == kOfCall; }

enum class ChosenBy : std::uint8_t { kSender, kReceiver, kEither };

// Null when `transfer` is a number that this end may have chosen; otherwise what is wrong with it.
const char* transfer_fault(std::uint64_t transfer, ChosenBy by);

// Bytes [begin, end) of a transfer.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

// The receiver can take bytes [offset, offset + bytes) of the transfer now, every one of them.
struct Grant {
  static constexpr FrameType kType = FrameType::kGrant;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t transfer = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0 for a message without bytes, which is complete with its grant
  std::uint16_t stripes = 1;
  std::uint16_t generation = 0;  // that the stripes start with

  // Of a grant ahead: which bytes it means, and the fingerprint of the call, never 0. Otherwise all three are 0.
  bool ahead = false;
  std::uint64_t sequence = 0;
  std::uint32_t step = 0;
  std::uint64_t fingerprint = 0;

  // The part of the granted bytes that stripe number `stripe` carries. Stripes are consecutive, cut at multiples of kBulkBytes, and
  // equal but for one frame; both ends compute them.
  ByteRange stripe(std::uint16_t stripe) const;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Grant get(const Header& header, Reader& reader);
  bool operator==(const Grant&) const = default;
};

// The sender takes its announcement back, or stops in the middle. Bulk frames of it that still arrive are dropped.
struct Withdraw {
  static constexpr FrameType kType = FrameType::kWithdraw;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t transfer = 0;

  const char* fault() const { return transfer_fault(transfer, ChosenBy::kEither); }
  void put(Header& header, Writer& writer) const;
  static Withdraw get(const Header& header, Reader& reader);
  bool operator==(const Withdraw&) const = default;
};

enum class RefuseReason : std::uint8_t {
  kTruncated = 0,  // the receive is shorter: the message is consumed, the sender succeeds
  kMismatch = 1,   // the fingerprints differ
  kCancelled = 2,  // nobody wants it any more
};

// The receiver will not take the bytes, or no more of them.
struct Refuse {
  static constexpr FrameType kType = FrameType::kRefuse;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t transfer = 0;
  RefuseReason reason = RefuseReason::kCancelled;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Refuse get(const Header& header, Reader& reader);
  bool operator==(const Refuse&) const = default;
};

// Bytes of a stripe; the payload is the bytes, 1 to kBulkBytesMax. Frames of an older generation than the stripe's are dropped.
struct Bulk {
  static constexpr FrameType kType = FrameType::kBulk;
  static constexpr bool kCarriesBytes = true;

  std::uint64_t transfer = 0;
  std::uint16_t stripe = 0;
  std::uint16_t generation = 0;
  std::uint64_t offset = 0;  // of the first byte, from the start of the transfer; the receiver checks that the end is granted

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Bulk get(const Header& header, Reader& reader);
  bool operator==(const Bulk&) const = default;
};

// The receiver has the first `bytes` of the stripe without a gap. With `final` the stripe is complete: the sender may forget it.
struct Watermark {
  static constexpr FrameType kType = FrameType::kWatermark;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t transfer = 0;
  std::uint16_t stripe = 0;
  std::uint16_t generation = 0;
  std::uint64_t bytes = 0;  // from the start of the stripe
  bool final = false;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Watermark get(const Header& header, Reader& reader);
  bool operator==(const Watermark&) const = default;
};

// The stripe's lane died: send on from `bytes`, on what is left, under this generation.
struct Resume {
  static constexpr FrameType kType = FrameType::kResume;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t transfer = 0;
  std::uint16_t stripe = 0;
  std::uint16_t generation = 0;
  std::uint64_t bytes = 0;  // received without a gap, from the start of the stripe

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Resume get(const Header& header, Reader& reader);
  bool operator==(const Resume&) const = default;
};

}  // namespace nexar::wire
