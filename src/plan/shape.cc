#include "plan/shape.h"

#include <cstddef>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace nexar::plan {
namespace {

using enum OperationId;

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

// Whether the input, or the output, of this rank has a slot for each rank.
bool slots_in_input(const Shape& shape) {
  switch (shape.operation) {
    case kReduceScatter:
    case kReduceScatterV:
    case kAllToAll:
    case kAllToAllV: return true;
    case kScatter:
    case kScatterV: return shape.is_root();
    default: return false;
  }
}

bool slots_in_output(const Shape& shape) {
  switch (shape.operation) {
    case kAllGather:
    case kAllGatherV:
    case kAllToAll:
    case kAllToAllV: return true;
    case kGather:
    case kGatherV: return shape.is_root();
    default: return false;
  }
}

bool is_v(OperationId operation) {
  return operation == kAllGatherV || operation == kReduceScatterV || operation == kAllToAllV || operation == kGatherV ||
         operation == kScatterV;
}

bool is_planned(OperationId operation) {
  switch (operation) {
    case kAllReduce:
    case kReduceScatter:
    case kAllGather:
    case kBroadcast:
    case kReduce:
    case kGather:
    case kScatter:
    case kAllToAll:
    case kAllGatherV:
    case kReduceScatterV:
    case kAllToAllV:
    case kGatherV:
    case kScatterV:
    case kScan:
    case kExclusiveScan:
    case kBarrier: return true;
    default: return false;
  }
}

// Elements of all slots together; an error when they are not one for each rank or do not fit.
Result<void> check_counts(const Shape& shape, std::span<const std::uint64_t> counts, bool wanted, const char* which) {
  if (!wanted && !counts.empty()) return invalid(fmt::format("{} has no {}_counts here", to_string(shape.operation), which));
  if (!wanted) return {};
  if (counts.size() != static_cast<std::size_t>(shape.size))
    return invalid(fmt::format("{} on {} ranks was given {} {}_counts", to_string(shape.operation), shape.size, counts.size(), which));
  std::uint64_t room = kShapeBytesMax / shape.element_bytes;
  for (const std::uint64_t count : counts) {
    if (count > room) return invalid(fmt::format("the {}_counts of {} are too large together", which, to_string(shape.operation)));
    room -= count;
  }
  return {};
}

void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;  // an odd number near 2^64 / golden ratio: spreads neighbouring values
  hash ^= hash >> 29;
}

// Four at a time, each quarter by itself: one multiplication does not wait for the one before, and a thousand counts cost less than a
// microsecond.
void mix(std::uint64_t& hash, const std::vector<std::uint64_t>& values) {
  if (values.empty()) return mix(hash, 0);
  std::uint64_t quarters[4] = {hash, 1, 2, 3};
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) mix(quarters[lane], values[i + lane]);
  for (; i < values.size(); ++i) mix(quarters[0], values[i]);
  for (const std::uint64_t quarter : quarters) mix(hash, quarter);
  mix(hash, values.size());
}

}  // namespace

bool has_root(OperationId operation) {
  return operation == kBroadcast || operation == kReduce || operation == kGather || operation == kGatherV || operation == kScatter ||
         operation == kScatterV;
}

bool reduces(OperationId operation) {
  return operation == kAllReduce || operation == kReduceScatter || operation == kReduceScatterV || operation == kReduce ||
         operation == kScan || operation == kExclusiveScan;
}

Result<void> Shape::check() const {
  if (!is_planned(operation)) return Error(ErrorCode::kUnsupported, fmt::format("{} has no plan of its own", to_string(operation)));
  if (size < 1 || size > kShapeSizeMax) return invalid(fmt::format("a group of {} ranks: there are 1 to {}", size, kShapeSizeMax));
  if (rank < 0 || rank >= size) return invalid(fmt::format("rank {} in a group of {}", rank, size));
  if (root < 0 || root >= size || (!has_root(operation) && root != 0))
    return invalid(fmt::format("root {} of {} on {} ranks", root, to_string(operation), size));
  if (hosts.has_levels() && hosts.size() != size)
    return invalid(fmt::format("the hosts of {} ranks were given for a group of {}", hosts.size(), size));
  if (phase >= kPhasesMax) return invalid(fmt::format("phase {}: an operation has at most {}", phase, kPhasesMax));
  if (element_bytes == 0) return invalid("an element has at least one byte");
  const std::uint64_t bytes = static_cast<std::uint64_t>(size) * element_bytes;
  if (bytes > kShapeBytesMax || count > kShapeBytesMax / bytes)
    return invalid(fmt::format("{} of {} elements of {} bytes on {} ranks does not fit", to_string(operation), count, element_bytes, size));
  if (in_place && (operation == kAllToAll || operation == kAllToAllV))
    return invalid(fmt::format("{} cannot be in place", to_string(operation)));
  if ((ordered || reproducible || average) && !reduces(operation)) return invalid(fmt::format("{} reduces nothing", to_string(operation)));
  if (operation == kBarrier && count != 0) return invalid("a barrier has no elements");
  const bool v = is_v(operation);
  if (auto result = check_counts(*this, send_counts, v && slots_in_input(*this), "send"); !result) return result;
  return check_counts(*this, receive_counts, v && slots_in_output(*this), "receive");
}

Alias Shape::alias() const {
  if (operation == kBroadcast) return Alias::kSame;
  if (!in_place) return Alias::kNone;
  switch (operation) {
    case kAllReduce:
    case kScan:
    case kExclusiveScan: return Alias::kSame;
    case kReduce: return is_root() ? Alias::kSame : Alias::kNone;
    case kAllGather:
    case kAllGatherV: return Alias::kInputInOutput;
    case kGather:
    case kGatherV: return is_root() ? Alias::kInputInOutput : Alias::kNone;
    case kReduceScatter:
    case kReduceScatterV: return Alias::kOutputInInput;
    case kScatter:
    case kScatterV: return is_root() ? Alias::kOutputInInput : Alias::kNone;
    default: return Alias::kNone;
  }
}

Cut Shape::input_slots() const { return is_v(operation) ? Cut::uneven(send_counts) : Cut::slots(count, size); }
Cut Shape::output_slots() const { return is_v(operation) ? Cut::uneven(receive_counts) : Cut::slots(count, size); }

std::uint64_t Shape::input_count() const {
  if (operation == kBarrier) return 0;
  if (slots_in_input(*this)) return input_slots().total();
  if ((operation == kScatter || operation == kScatterV) && !is_root()) return 0;
  if (slots_in_output(*this)) return output_slots().piece(rank).count;
  return count;
}

std::uint64_t Shape::output_count() const {
  if (operation == kBarrier) return 0;
  if (slots_in_output(*this)) return output_slots().total();
  if ((operation == kReduce || operation == kGather || operation == kGatherV) && !is_root()) return 0;
  if (slots_in_input(*this)) return input_slots().piece(rank).count;
  return count;
}

std::uint64_t Shape::divisor() const {
  if (operation == kScan) return static_cast<std::uint64_t>(rank) + 1;
  if (operation == kExclusiveScan) return rank > 0 ? static_cast<std::uint64_t>(rank) : 1;
  return static_cast<std::uint64_t>(size);
}

std::uint64_t Shape::hash() const {
  std::uint64_t hash = static_cast<std::uint64_t>(operation);
  mix(hash, static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint64_t>(size));
  mix(hash, static_cast<std::uint64_t>(root) << 32 | element_bytes);
  mix(hash, count);
  mix(hash, segment);
  mix(hash, hosts.hash());
  mix(hash, static_cast<std::uint64_t>(in_place) | static_cast<std::uint64_t>(ordered) << 1 |
                static_cast<std::uint64_t>(reproducible) << 2 | static_cast<std::uint64_t>(average) << 3 |
                static_cast<std::uint64_t>(phase) << 8);
  mix(hash, send_counts);
  mix(hash, receive_counts);
  return hash;
}

std::string Shape::to_text() const {
  std::string text = fmt::format("{}, rank {} of {}", to_string(operation), rank, size);
  if (has_root(operation)) text += fmt::format(", root {}", root);
  if (!is_v(operation) && operation != kBarrier) text += fmt::format(", count {}", count);
  if (hosts.has_levels()) text += ", " + hosts.to_text();
  if (segment > 0) text += fmt::format(", segments of {}", segment);
  if (in_place) text += ", in place";
  if (ordered) text += ", ordered";
  if (reproducible) text += ", reproducible";
  return text;
}

}  // namespace nexar::plan
