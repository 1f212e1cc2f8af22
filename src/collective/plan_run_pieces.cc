// What a run over a buffer in pieces does to send it: names the pieces of a message, or gathers them first.
#include <cstring>

#include "collective/plan_run.h"
#include "wire/limits.h"

namespace nexar::collective {
namespace {

// Regions of a message are looked at one by one as it is sealed, and each takes 16 bytes in a list. Where they are shorter than this on
// average they are copied together instead.
constexpr std::uint64_t kRegionBytesMin = 1024;

std::uint64_t regions_of(const PieceList& pieces, const plan::Slice& slice) {
  return slice.empty() ? 0 : pieces.index(slice.end() - 1) - pieces.index(slice.first) + 1;
}

// Small messages lie in one place.
bool is_gathered(const PieceList& pieces, const plan::Slice& slice) {
  const std::uint64_t regions = regions_of(pieces, slice);
  const std::uint64_t bytes = slice.count * pieces.element;
  return regions > 1 && (bytes <= wire::kEagerBytesMax || regions * kRegionBytesMin > bytes);
}

bool is_of_user(plan::Buffer buffer) { return buffer == plan::Buffer::kInput || buffer == plan::Buffer::kOutput; }

}  // namespace

// As long as the buffer, of which each message has its place: whatever overwrites that waits until the message is sent.
std::uint64_t PlanRun::staging_bytes(const plan::Plan& plan, std::span<const Piece> pieces) {
  const PieceList list{pieces, plan.shape.count, plan.shape.element_bytes};
  if (pieces.empty()) return 0;
  for (const plan::Step& step : plan.steps)
    if (step.sends() && is_of_user(step.from_buffer) && is_gathered(list, step.from())) return list.count * list.element;
  return 0;
}

// In two passes: lists of regions do not move any more when they have begun.
void PlanRun::list_regions() {
  const PieceList list = pieces();
  const auto for_each_send = [&](auto work) {
    for (mesh::StepSend& send : sends_) {
      const plan::Slice from = task_.plan->steps[send.step].from();
      if (is_of_user(from.buffer) && send.data.data == nullptr && !is_gathered(list, from)) work(send, from);
    }
  };
  std::size_t total = 0;
  for_each_send([&](const mesh::StepSend&, const plan::Slice& from) { total += regions_of(list, from); });
  regions_.clear();
  regions_.reserve(total);
  for_each_send([&](mesh::StepSend& send, const plan::Slice& from) {
    const std::size_t first = regions_.size();
    list.for_each_stretch(from.first, from.count, [&](const std::byte* data, std::uint64_t, std::uint64_t count) {
      regions_.push_back({data, static_cast<std::size_t>(count * list.element)});
    });
    send.regions = std::span<const ConstRegion>(regions_).subspan(first);
  });
}

void PlanRun::gather(const plan::Step& step, mesh::StepSend& send) {
  const PieceList list = pieces();
  std::byte* there = task_.staging + step.from_first * list.element;
  list.for_each_stretch(step.from_first, step.count, [&](const std::byte* data, std::uint64_t offset, std::uint64_t count) {
    std::memcpy(there + offset * list.element, data, count * list.element);
  });
  send.data.data = there;
}

}  // namespace nexar::collective
