#include "plan/phases.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace nexar::plan {
namespace {

using enum OperationId;

Result<Shape> checked(Shape shape) {
  if (auto result = shape.check(); !result) return std::move(result).error();
  return shape;
}

// The operation that moves values of known size in the same way; kBarrier when there is none.
OperationId fixed_form(OperationId operation) {
  switch (operation) {
    case kBroadcastBytes: return kBroadcast;
    case kAllGatherBytes: return kAllGather;
    case kGatherBytes: return kGather;
    default: return kBarrier;
  }
}

Error no_phases(const Shape& shape) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{} does not have these phases", to_string(shape.operation)));
}

}  // namespace

Result<ScatterGather> scatter_and_gather(const Shape& shape) {
  if (shape.operation != kAllReduceRsAg) return no_phases(shape);
  Shape whole = shape;
  whole.operation = kAllReduce;  // for its checks: sizes, rank, flags
  whole.in_place = true;
  auto valid = checked(whole);
  if (!valid) return std::move(valid).error();

  const Cut cut = Cut::chunks(shape.count, shape.size);
  std::vector<std::uint64_t> counts;
  for (Rank rank = 0; rank < shape.size; ++rank) counts.push_back(cut.piece(rank).count);
  ScatterGather phases{whole, whole, cut.piece(shape.rank)};
  phases.scatter.operation = kReduceScatterV;
  phases.scatter.count = 0;
  phases.scatter.send_counts = counts;
  phases.gather.operation = kAllGatherV;
  phases.gather.count = 0;
  phases.gather.receive_counts = std::move(counts);
  phases.gather.ordered = phases.gather.reproducible = phases.gather.average = false;
  phases.gather.phase = 1;
  return phases;
}

Result<Shape> lengths_phase(const Shape& shape) {
  if (fixed_form(shape.operation) == kBarrier) return no_phases(shape);
  Shape lengths;
  lengths.operation = fixed_form(shape.operation);
  lengths.rank = shape.rank;
  lengths.size = shape.size;
  lengths.root = shape.root;
  lengths.count = 1;
  lengths.element_bytes = sizeof(std::uint64_t);
  return checked(std::move(lengths));
}

Result<Shape> payload_phase(const Shape& shape, std::span<const std::uint64_t> lengths) {
  if (fixed_form(shape.operation) == kBarrier) return no_phases(shape);
  const bool all = shape.operation == kAllGatherBytes || (shape.operation == kGatherBytes && shape.is_root());
  if (lengths.size() != (all ? static_cast<std::size_t>(shape.size) : 1))
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} on {} ranks was given {} lengths", to_string(shape.operation), shape.size, lengths.size()));
  Shape payload;
  payload.operation = shape.operation == kBroadcastBytes ? kBroadcast : shape.operation == kAllGatherBytes ? kAllGatherV : kGatherV;
  payload.rank = shape.rank;
  payload.size = shape.size;
  payload.root = shape.root;
  payload.segment = shape.segment;
  payload.element_bytes = 1;
  payload.phase = 1;
  if (all) payload.receive_counts.assign(lengths.begin(), lengths.end());
  if (!all) payload.count = lengths[0];
  return checked(std::move(payload));
}

}  // namespace nexar::plan
