#include "wire/header.h"

#include <string>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::wire {
namespace {

constexpr std::size_t kVersionAt = 1;
constexpr std::size_t kLaneAt = 2;
constexpr std::size_t kTypeAt = 3;
constexpr std::size_t kLengthAt = 4;
constexpr std::size_t kFlagsAt = 8;
constexpr std::size_t kGenerationAt = 10;
constexpr std::size_t kPartAt = 12;
constexpr std::size_t kGroupAt = 16;
constexpr std::size_t kEpochAt = 24;
constexpr std::size_t kKeyAt = 32;
constexpr std::size_t kIdAt = 40;
static_assert(kIdAt + 8 == kHeaderBytes);

Error refused(std::string sentence) { return Error(ErrorCode::kRefused, std::move(sentence)); }

std::uint8_t fields_used(const Header& header) {
  unsigned used = 0;
  if (header.group != 0) used |= kFieldGroup;
  if (header.key != 0) used |= kFieldKey;
  if (header.id != 0) used |= kFieldId;
  if (header.part != 0) used |= kFieldPart;
  if (header.generation != 0) used |= kFieldGeneration;
  return static_cast<std::uint8_t>(used);
}

std::string field_names(unsigned fields) {
  std::string names;
  const auto add = [&](unsigned field, const char* name) {
    if ((fields & field) != 0) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(kFieldGroup, "group");
  add(kFieldKey, "key");
  add(kFieldId, "id");
  add(kFieldPart, "part");
  add(kFieldGeneration, "generation");
  return names;
}

// What the rules of the header's type say about the rest of it.
Result<void> check(const Header& header, const FrameRules& rules) {
  if ((header.flags & ~rules.flags) != 0)
    return refused(fmt::format("a {} frame came with flags {:#x}; it may have {:#x}", rules.name, header.flags, rules.flags));
  if (header.length < rules.length_min || header.length > rules.length_max)
    return refused(fmt::format("a {} frame came with {} bytes of payload; it has {} to {}", rules.name, header.length, rules.length_min,
                               rules.length_max));
  const bool more = (header.flags & (kFlagCollective | kFlagAhead)) != 0;
  const unsigned allowed = rules.fields | (more ? rules.more_fields : 0u);
  if (const unsigned excess = fields_used(header) & ~allowed; excess != 0)
    return refused(fmt::format("a {} frame came with fields that it does not use: {}", rules.name, field_names(excess)));
  return {};
}

template <typename T>
T at(base::ByteView bytes, std::size_t offset) {
  return base::load_le<T>(bytes.data() + offset);
}

// Magic, version, type and lane: what must be right before the rest of the header means anything.
Result<const FrameRules*> check_start(base::ByteView bytes) {
  if (at<std::uint8_t>(bytes, 0) != kMagic)
    return refused(
        fmt::format("a frame starts with byte {:#04x} instead of {:#04x}: the peer does not speak nexar, or the stream lost its place",
                    at<std::uint8_t>(bytes, 0), kMagic));
  if (const auto version = at<std::uint8_t>(bytes, kVersionAt); version != kWireVersion)
    return refused(fmt::format("the peer speaks wire version {}, this node speaks {}", version, kWireVersion));
  const auto type = at<std::uint8_t>(bytes, kTypeAt);
  const FrameRules* rules = find_rules(type);
  if (rules == nullptr) return refused(fmt::format("a frame came with type {}, which wire version {} does not have", type, kWireVersion));
  const auto lane = at<std::uint8_t>(bytes, kLaneAt);
  if (lane > static_cast<std::uint8_t>(Lane::kBulk))
    return refused(fmt::format("a {} frame came with lane {}, which does not exist", rules->name, lane));
  if (lane != static_cast<std::uint8_t>(rules->lane))
    return refused(fmt::format("a {} frame names the {} lane; it belongs on {}", rules->name, to_string(static_cast<Lane>(lane)),
                               to_string(rules->lane)));
  return rules;
}

}  // namespace

void encode(const Header& header, std::span<std::byte, kHeaderBytes> out) {
  const FrameRules& rules = rules_of(header.type);
  NEXAR_ASSERT(check(header, rules), "a header keeps to the rules of its type");
  std::byte* to = out.data();
  base::store_le(to, kMagic);
  base::store_le(to + kVersionAt, kWireVersion);
  base::store_le(to + kLaneAt, static_cast<std::uint8_t>(rules.lane));
  base::store_le(to + kTypeAt, static_cast<std::uint8_t>(header.type));
  base::store_le(to + kLengthAt, header.length);
  base::store_le(to + kFlagsAt, header.flags);
  base::store_le(to + kGenerationAt, header.generation);
  base::store_le(to + kPartAt, header.part);
  base::store_le(to + kGroupAt, header.group);
  base::store_le(to + kEpochAt, header.epoch);
  base::store_le(to + kKeyAt, header.key);
  base::store_le(to + kIdAt, header.id);
}

Result<Header> decode_header(base::ByteView bytes) {
  if (bytes.size() < kHeaderBytes) return refused(fmt::format("a frame header has {} bytes, but only {} came", kHeaderBytes, bytes.size()));
  const auto rules = check_start(bytes);
  if (!rules) return rules.error();

  Header header;
  header.type = (*rules)->type;
  header.length = at<std::uint32_t>(bytes, kLengthAt);
  header.flags = at<std::uint16_t>(bytes, kFlagsAt);
  header.generation = at<std::uint16_t>(bytes, kGenerationAt);
  header.part = at<std::uint32_t>(bytes, kPartAt);
  header.group = at<std::uint64_t>(bytes, kGroupAt);
  header.epoch = at<std::uint64_t>(bytes, kEpochAt);
  header.key = at<std::uint64_t>(bytes, kKeyAt);
  header.id = at<std::uint64_t>(bytes, kIdAt);
  if (const auto kept = check(header, **rules); !kept) return kept.error();
  return header;
}

}  // namespace nexar::wire
