#include "transport/tcp/record_keys.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/assert.h"

namespace nexar::transport::tcp {
namespace {

// How far from its place a record is looked for when it does not open: a frame has three at most, so this covers a dozen frames each way.
constexpr std::uint64_t kSearch = 40;

crypto::Secret direction_secret(base::ByteView material, const LaneTerms& terms, Side sender) {
  NEXAR_ASSERT(material.size() == kMaterialBytes, "a lane's keying material is what its end exported");
  std::array<std::byte, 10> context;
  base::store_le(context.data(), terms.name.lane);
  base::store_le(context.data() + 4, terms.name.generation);
  base::store_le(context.data() + 8, static_cast<std::uint8_t>(sender));
  base::store_le(context.data() + 9, static_cast<std::uint8_t>(terms.plain ? 1 : 0));
  return crypto::hkdf_expand_label(material, "nexar lane", context, kMaterialBytes);
}

}  // namespace

RecordKeys::RecordKeys(base::ByteView material, const LaneTerms& terms, Side sender, const RecordLimits& limits)
    : limits_(limits), secret_(direction_secret(material, terms, sender)), key_ends_(limits.records_per_key) {
  NEXAR_ASSERT(limits.records_per_key > 0, "a key seals something");
  derive();
}

void RecordKeys::derive() {
  const crypto::Secret key = crypto::hkdf_expand_label(secret_.view(), "key", {}, crypto::kAeadKeyBytes);
  iv_ = crypto::hkdf_expand_label(secret_.view(), "iv", {}, crypto::kAeadNonceBytes);
  key_.emplace(key.view());
  if (limits_.observer == nullptr) return;
  crypto::Sha256Stream digest;
  digest.update(key.view());
  digest.update(iv_.view());
  digest_ = digest.finish();
}

// Makes the key of the next number ready; false when there is no such number.
bool RecordKeys::prepare() {
  if (number_ >= limits_.records_max) return false;
  if (number_ < key_ends_) return true;
  secret_ = crypto::hkdf_expand_label(secret_.view(), "next", {}, kMaterialBytes);
  key_ends_ += limits_.records_per_key;
  derive();
  return true;
}

crypto::Nonce RecordKeys::nonce(std::uint64_t number) const {
  crypto::Nonce nonce;
  std::memcpy(nonce.data(), iv_.view().data(), nonce.size());
  base::store_le(nonce.data(), base::load_le<std::uint64_t>(nonce.data()) ^ number);
  return nonce;
}

bool RecordKeys::seal(base::ByteSpan out, base::ByteView plain) {
  if (!prepare()) return false;
  if (digest_) limits_.observer->on_seal(*digest_, number_);
  key_->seal(out, plain, nonce(number_), {});
  ++number_;
  return true;
}

bool RecordKeys::open(std::span<const base::ByteSpan> out, base::ByteView sealed) {
  if (!prepare() || !key_->open(out, sealed, nonce(number_), {})) return false;
  ++number_;
  return true;
}

std::optional<std::uint64_t> RecordKeys::number_of(base::ByteView sealed) const {
  if (sealed.size() < kRecordTagBytes) return std::nullopt;
  std::vector<std::byte> nowhere(sealed.size() - kRecordTagBytes);
  const std::uint64_t first = std::max(key_ends_ - limits_.records_per_key, number_ - std::min(number_, kSearch));
  const std::uint64_t end = std::min(key_ends_, number_ + kSearch);
  std::optional<std::uint64_t> found;
  for (std::uint64_t number = first; number < end && !found; ++number)
    if (number != number_ && key_->open(nowhere, sealed, nonce(number), {})) found = number;
  crypto::wipe(nowhere);
  return found;
}

LaneKeys LaneKeys::derive(base::ByteView material, const LaneTerms& terms, Side side, const RecordLimits& limits) {
  const Side other = side == Side::kConnects ? Side::kListens : Side::kConnects;
  return {terms, RecordKeys(material, terms, side, limits), RecordKeys(material, terms, other, limits)};
}

}  // namespace nexar::transport::tcp
