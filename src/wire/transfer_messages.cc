#include "wire/transfer_messages.h"

#include <algorithm>
#include <limits>

namespace nexar::wire {
namespace {

// The stripe as it stands in a header; one that does not fit stays out of range, so that fault() sees it.
std::uint16_t stripe_of(const Header& header) { return static_cast<std::uint16_t>(std::min<std::uint32_t>(header.part, kStripesMax)); }

const char* stripe_fault(std::uint64_t transfer, std::uint16_t stripe) {
  if (stripe >= kStripesMax) return "names a stripe past the last possible one";
  return transfer_fault(transfer, ChosenBy::kEither);
}

}  // namespace

const char* transfer_fault(std::uint64_t transfer, ChosenBy by) {
  if (transfer == 0) return "names no transfer";
  const bool by_receiver = (transfer & kChosenByReceiver) != 0;
  if (by == ChosenBy::kSender && by_receiver) return "names a transfer that only the receiver of its bytes could have chosen";
  if (by == ChosenBy::kReceiver && !by_receiver) return "names a transfer that only the sender of its bytes could have chosen";
  return nullptr;
}

ByteRange Grant::stripe(std::uint16_t stripe) const {
  NEXAR_ASSERT(stripe < stripes, "a stripe is one of its grant's");
  const std::uint64_t frames = bytes / kBulkBytes + (bytes % kBulkBytes != 0 ? 1 : 0);
  const std::uint64_t each = frames / stripes;
  const std::uint64_t longer = frames % stripes;  // so many stripes have one frame more
  const auto start = [&](std::uint64_t number) {
    const std::uint64_t first = number * each + std::min(number, longer);
    return offset + (first == frames ? bytes : first * kBulkBytes);
  };
  return {start(stripe), start(stripe + std::uint64_t{1})};
}

const char* Grant::fault() const {
  if (stripes == 0 || stripes > kStripesMax) return "has no stripes, or more than are possible";
  if (bytes > std::numeric_limits<std::uint64_t>::max() - offset) return "ends past the last possible byte";
  if (ahead && fingerprint == 0) return "is ahead and has no fingerprint";
  if (!ahead && (sequence != 0 || step != 0 || fingerprint != 0)) return "answers an announcement and names a call";
  return transfer_fault(transfer, ahead ? ChosenBy::kReceiver : ChosenBy::kSender);
}

void Grant::put(Header& header, Writer& writer) const {
  header.flags = ahead ? kFlagAhead : 0;
  header.id = transfer;
  header.generation = generation;
  header.key = sequence;
  header.part = step;
  writer.number(offset);
  writer.number(bytes);
  writer.number(stripes);
  writer.number(fingerprint);
}

Grant Grant::get(const Header& header, Reader& reader) {
  Grant grant;
  grant.transfer = header.id;
  grant.generation = header.generation;
  grant.ahead = (header.flags & kFlagAhead) != 0;
  grant.sequence = header.key;
  grant.step = header.part;
  grant.offset = reader.number<std::uint64_t>();
  grant.bytes = reader.number<std::uint64_t>();
  grant.stripes = reader.number<std::uint16_t>();
  grant.fingerprint = reader.number<std::uint64_t>();
  return grant;
}

void Withdraw::put(Header& header, Writer&) const { header.id = transfer; }

Withdraw Withdraw::get(const Header& header, Reader&) { return {.transfer = header.id}; }

const char* Refuse::fault() const {
  if (reason > RefuseReason::kCancelled) return "has a reason that does not exist";
  return transfer_fault(transfer, ChosenBy::kEither);
}

void Refuse::put(Header& header, Writer& writer) const {
  header.id = transfer;
  writer.number(static_cast<std::uint8_t>(reason));
}

Refuse Refuse::get(const Header& header, Reader& reader) {
  return {.transfer = header.id, .reason = static_cast<RefuseReason>(reader.number<std::uint8_t>())};
}

const char* Bulk::fault() const {
  if (offset > std::numeric_limits<std::uint64_t>::max() - kBulkBytesMax) return "ends past the last possible byte";
  return stripe_fault(transfer, stripe);
}

void Bulk::put(Header& header, Writer&) const {
  header.id = transfer;
  header.part = stripe;
  header.generation = generation;
  header.key = offset;
}

Bulk Bulk::get(const Header& header, Reader&) {
  return {.transfer = header.id, .stripe = stripe_of(header), .generation = header.generation, .offset = header.key};
}

const char* Watermark::fault() const { return stripe_fault(transfer, stripe); }

void Watermark::put(Header& header, Writer&) const {
  header.flags = final ? kFlagFinal : 0;
  header.id = transfer;
  header.part = stripe;
  header.generation = generation;
  header.key = bytes;
}

Watermark Watermark::get(const Header& header, Reader&) {
  return {.transfer = header.id,
          .stripe = stripe_of(header),
          .generation = header.generation,
          .bytes = header.key,
          .final = (header.flags & kFlagFinal) != 0};
}

const char* Resume::fault() const { return stripe_fault(transfer, stripe); }

void Resume::put(Header& header, Writer&) const {
  header.id = transfer;
  header.part = stripe;
  header.generation = generation;
  header.key = bytes;
}

Resume Resume::get(const Header& header, Reader&) {
  return {.transfer = header.id, .stripe = stripe_of(header), .generation = header.generation, .bytes = header.key};
}

}  // namespace nexar::wire
