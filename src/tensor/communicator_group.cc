#include <utility>

#include <fmt/format.h>

#include "nexar/communicator.h"

namespace nexar {

Result<void> ParallelLayout::check(int world) const {
  if (tp < 1 || pp < 1 || dp < 1 || ep < 1)
    return Error(ErrorCode::kInvalidArgument, fmt::format("parallel sizes are at least 1, not tp {}, pp {}, dp {}, ep {}", tp, pp, dp, ep));
  if (static_cast<std::int64_t>(tp) * pp > world || static_cast<std::int64_t>(tp) * pp * dp != world)
    return Error(ErrorCode::kInvalidArgument, fmt::format("tp {} * pp {} * dp {} are not the {} ranks of the world", tp, pp, dp, world));
  if (dp % ep != 0) return Error(ErrorCode::kInvalidArgument, fmt::format("ep {} does not divide dp {}", ep, dp));
  return {};
}

ParallelLayout::Place ParallelLayout::place(Rank rank) const {
  const int dp_index = rank / (pp * tp);
  return {.tp_index = rank % tp, .pp_index = rank / tp % pp, .dp_index = dp_index, .ep_index = dp_index % ep};
}

int ParallelLayout::color(Rank rank, Axis axis) const {
  const Place at = place(rank);
  const int replica = at.pp_index * tp + at.tp_index;  // which data-parallel group
  switch (axis) {
    case Axis::kTensor: return rank / tp;
    case Axis::kPipeline: return at.dp_index * tp + at.tp_index;
    case Axis::kData: return replica;
    case Axis::kExpert: return replica * (dp / ep) + at.dp_index / ep;
  }
  return 0;
}

int ParallelLayout::index(Rank rank, Axis axis) const {
  const Place at = place(rank);
  switch (axis) {
    case Axis::kTensor: return at.tp_index;
    case Axis::kPipeline: return at.pp_index;
    case Axis::kData: return at.dp_index;
    case Axis::kExpert: return at.ep_index;
  }
  return 0;
}

int ParallelLayout::size(Axis axis) const {
  switch (axis) {
    case Axis::kTensor: return tp;
    case Axis::kPipeline: return pp;
    case Axis::kData: return dp;
    case Axis::kExpert: return ep;
  }
  return 0;
}

Result<CommunicatorGroup> CommunicatorGroup::make(Communicator& world, const ParallelLayout& layout) {
  if (auto checked = layout.check(world.world_size()); !checked) return std::move(checked).error();
  CommunicatorGroup made(layout);
  for (std::size_t i = 0; i < made.parts_.size(); ++i) {
    const auto axis = static_cast<ParallelLayout::Axis>(i);
    Result<std::unique_ptr<Communicator>> part = world.split(layout.color(world.rank(), axis), layout.index(world.rank(), axis));
    if (!part) return std::move(part).error();
    made.parts_[i] = *std::move(part);
  }
  return made;
}

}  // namespace nexar
