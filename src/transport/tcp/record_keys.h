// The keys of a TCP lane: what seals and opens its records.
//
// Each direction of each generation of each lane has keys of its own, and numbers its records from 0; the number is the nonce. Every
// kRecordsPerKey records the next key follows from the secret of the last, which is forgotten. So no key ever sees a number twice, and
// none sees too much.
//
// Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/secret.h"
#include "wire/lane_messages.h"
#include "wire/limits.h"

namespace nexar::transport::tcp {

// A record is longer than what it holds by its tag.
inline constexpr std::size_t kRecordTagBytes = crypto::kAeadTagBytes;

// A frame's header as a record.
inline constexpr std::size_t kSealedHeaderBytes = wire::kHeaderBytes + kRecordTagBytes;

// The exporter's output that a link's lanes are keyed from.
inline constexpr std::size_t kMaterialBytes = 32;

// Which end of the lane this is.
enum class Side : std::uint8_t { kConnects = 0, kListens = 1 };

// What both ends know of a lane before it begins. Ends that disagree on anything here cannot read each other.
struct LaneTerms {
  wire::LaneName name = {};
  bool plain = false;  // payload in clear
};

// Sees every record that is sealed. For tests, which count: no pair may come twice.
class SealObserver {
 public:
  virtual ~SealObserver() = default;
  virtual void on_seal(const crypto::Sha256& digest_of_key_and_iv, std::uint64_t number) = 0;
};

struct RecordLimits {
  std::uint64_t records_per_key = wire::kRecordsPerKey;

  // A lane that has sent this many is closed. Nobody gets there: it is 9 exabytes.
  std::uint64_t records_max = std::uint64_t{1} << 48;

  SealObserver* observer = nullptr;  // outlives the keys
};

// The keys of one direction, one after the other. One end only seals with them, the other only opens.
class RecordKeys {
 public:
  RecordKeys(base::ByteView material, const LaneTerms& terms, Side sender, const RecordLimits& limits = {});

  // Seals the next record; false, without doing anything, when all numbers are used.
  [[nodiscard]] bool seal(base::ByteSpan out, base::ByteView plain);

  // Opens the next record. False when it is not that: the number stays, and nothing was delivered.
  [[nodiscard]] bool open(std::span<const base::ByteSpan> out, base::ByteView sealed);
  [[nodiscard]] bool open(base::ByteSpan out, base::ByteView sealed) { return open(std::span(&out, 1), sealed); }

  // Of the next record.
  std::uint64_t number() const { return number_; }

  // Of a record that did not open: the number under which it does, if that is one of the few around the one that was due.
  std::optional<std::uint64_t> number_of(base::ByteView sealed) const;

 private:
  void derive();
  bool prepare();
  crypto::Nonce nonce(std::uint64_t number) const;

  RecordLimits limits_;
  crypto::Secret secret_;
  crypto::Secret iv_;
  std::optional<crypto::AeadKey> key_;
  std::optional<crypto::Sha256> digest_;  // with an observer
  std::uint64_t number_ = 0;
  std::uint64_t key_ends_;  // the first number that this key does not seal
};

// Both directions, as one end has them.
struct LaneKeys {
  // `material` has kMaterialBytes, exported from the link's TLS session; the peer has the same.
  static LaneKeys derive(base::ByteView material, const LaneTerms& terms, Side side, const RecordLimits& limits = {});

  LaneTerms terms;
  RecordKeys seal;
  RecordKeys open;
};

}  // namespace nexar::transport::tcp
