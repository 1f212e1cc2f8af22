#include "wire/matching_messages.h"

#include "wire/transfer_messages.h"

namespace nexar::wire {
namespace {

Kind kind_of(const Header& header) { return (header.flags & kFlagCollective) != 0 ? Kind::kCollective : Kind::kPointToPoint; }

std::uint16_t flags_of(Kind kind) { return kind == Kind::kCollective ? kFlagCollective : 0; }

// A collective is checked before any of its bytes is used, so it always says what it is; nothing else has a fingerprint or steps.
const char* call_fault(Kind kind, std::uint32_t step, std::uint64_t fingerprint) {
  if (kind == Kind::kCollective) return fingerprint == 0 ? "belongs to a collective and has no fingerprint" : nullptr;
  return step != 0 || fingerprint != 0 ? "is point-to-point and has a step or a fingerprint" : nullptr;
}

}  // namespace

const char* EagerMessage::fault() const { return call_fault(kind, step, fingerprint); }

void EagerMessage::put(Header& header, Writer&) const {
  header.flags = flags_of(kind);
  header.key = key;
  header.part = step;
  header.id = fingerprint;
}

EagerMessage EagerMessage::get(const Header& header, Reader&) {
  return {.kind = kind_of(header), .key = header.key, .step = header.part, .fingerprint = header.id};
}

const char* Announce::fault() const {
  if (const char* fault = call_fault(kind, step, fingerprint); fault != nullptr) return fault;
  return transfer_fault(transfer, ChosenBy::kSender);
}

void Announce::put(Header& header, Writer& writer) const {
  header.flags = flags_of(kind);
  header.key = key;
  header.part = step;
  header.id = transfer;
  writer.number(bytes);
  writer.number(fingerprint);
}

Announce Announce::get(const Header& header, Reader& reader) {
  Announce announce{.kind = kind_of(header), .key = header.key, .step = header.part, .transfer = header.id};
  announce.bytes = reader.number<std::uint64_t>();
  announce.fingerprint = reader.number<std::uint64_t>();
  return announce;
}

const char* Want::fault() const {
  if (any_tag && (kind == Kind::kCollective || key != 0)) return "wants any tag and names one";
  if (kind == Kind::kPointToPoint && step != 0) return "is point-to-point and has a step";
  return nullptr;
}

void Want::put(Header& header, Writer&) const {
  header.flags = static_cast<std::uint16_t>(flags_of(kind) | (any_tag ? kFlagAnyTag : 0));
  header.key = key;
  header.part = step;
}

Want Want::get(const Header& header, Reader&) {
  return {.kind = kind_of(header), .any_tag = (header.flags & kFlagAnyTag) != 0, .key = header.key, .step = header.part};
}

void Queued::put(Header& header, Writer& writer) const {
  header.flags = flags_of(kind);
  writer.number(messages);
}

Queued Queued::get(const Header& header, Reader& reader) { return {.kind = kind_of(header), .messages = reader.number<std::uint32_t>()}; }

void Credit::put(Header& header, Writer& writer) const {
  header.flags = flags_of(kind);
  writer.number(bytes);
  writer.number(messages);
}

Credit Credit::get(const Header& header, Reader& reader) {
  Credit credit{.kind = kind_of(header)};
  credit.bytes = reader.number<std::uint64_t>();
  credit.messages = reader.number<std::uint32_t>();
  return credit;
}

}  // namespace nexar::wire
