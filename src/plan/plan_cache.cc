#include "plan/plan_cache.h"

#include <iterator>
#include <utility>

#include "base/hash.h"

namespace nexar::plan {
namespace {

std::uint64_t hash_of(const Shape& shape, std::string_view algorithm) { return shape.hash() ^ base::hash64(algorithm); }

}  // namespace

PlanCache::Entries::iterator PlanCache::lookup(std::uint64_t hash, const Shape& shape, std::string_view algorithm) {
  const auto [first, end] = by_hash_.equal_range(hash);
  for (auto at = first; at != end; ++at)
    if (at->second->shape == shape && at->second->algorithm == algorithm) return at->second;
  return entries_.end();
}

std::shared_ptr<const Plan> PlanCache::find(const Shape& shape, std::string_view algorithm) {
  const auto entry = lookup(hash_of(shape, algorithm), shape, algorithm);
  if (entry == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->plan;
}

void PlanCache::add(const Shape& shape, std::string_view algorithm, std::shared_ptr<const Plan> plan) {
  const std::uint64_t hash = hash_of(shape, algorithm);
  if (const auto old = lookup(hash, shape, algorithm); old != entries_.end()) remove(old);
  const std::size_t bytes =
      plan->memory() + sizeof(Entry) + sizeof(std::uint64_t) * (shape.send_counts.size() + shape.receive_counts.size());
  if (bytes > bytes_max_) return;
  while (bytes_ + bytes > bytes_max_) remove(std::prev(entries_.end()));
  entries_.push_front({shape, std::string(algorithm), std::move(plan), hash, bytes});
  by_hash_.emplace(hash, entries_.begin());
  bytes_ += bytes;
}

void PlanCache::remove(Entries::iterator entry) {
  const auto [first, end] = by_hash_.equal_range(entry->hash);
  for (auto at = first; at != end; ++at) {
    if (at->second != entry) continue;
    by_hash_.erase(at);
    break;
  }
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

void PlanCache::clear() {
  by_hash_.clear();
  entries_.clear();
  bytes_ = 0;
}

}  // namespace nexar::plan
