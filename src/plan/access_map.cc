#include "plan/access_map.h"

#include <iterator>

namespace nexar::plan {

AccessMap::Map::iterator AccessMap::carve(Extent extent) {
  auto at = intervals_.lower_bound(extent.first);
  if (at != intervals_.begin()) {
    auto before = std::prev(at);
    if (before->second.end > extent.first) {
      at = intervals_.emplace_hint(at, extent.first, before->second);
      before->second.end = extent.first;
    }
  }
  auto start = at;
  bool first = true;
  for (std::uint64_t position = extent.first; position < extent.end();) {
    if (at == intervals_.end() || at->first > position) {
      const std::uint64_t end = at == intervals_.end() || at->first > extent.end() ? extent.end() : at->first;
      at = intervals_.emplace_hint(at, position, Interval{end});
    } else if (at->second.end > extent.end()) {
      intervals_.emplace_hint(std::next(at), extent.end(), at->second);
      at->second.end = extent.end();
    }
    if (first) start = at;
    first = false;
    position = at->second.end;
    ++at;
  }
  return start;
}

void AccessMap::read(Extent extent, StepNumber step, std::vector<StepNumber>& found) {
  if (extent.count == 0) return;
  for (auto at = carve(extent); at != intervals_.end() && at->first < extent.end(); ++at) {
    if (at->second.writer != kNobody) found.push_back(at->second.writer);
    readers_.push_back({step, at->second.readers});
    at->second.readers = static_cast<std::uint32_t>(readers_.size() - 1);
  }
}

void AccessMap::write(Extent extent, StepNumber step, std::vector<StepNumber>& found) {
  if (extent.count == 0) return;
  auto at = carve(extent);
  const auto start = at;
  for (; at != intervals_.end() && at->first < extent.end(); ++at) {
    const Interval& interval = at->second;
    for (std::uint32_t reader = interval.readers; reader != kNobody; reader = readers_[reader].next)
      if (readers_[reader].step != step) found.push_back(readers_[reader].step);
    if (interval.readers == kNobody && interval.writer != kNobody && interval.writer != step) found.push_back(interval.writer);
  }
  intervals_.erase(std::next(start), at);
  start->second = {extent.end(), step, kNobody};
}

}  // namespace nexar::plan
