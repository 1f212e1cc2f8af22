// Plans that were made before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plan/plan.h"
#include "plan/shape.h"

namespace nexar::plan {

// Bounded by the bytes of the plans in it; the one that was not used for longest makes way.
//
// Thread: engine. Owned by a Planner. Whoever runs a plan shares it: it may leave the cache meanwhile.
class PlanCache {
 public:
  explicit PlanCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Null when there is none. `algorithm` is what the caller asked for, empty when it left the choice open.
  std::shared_ptr<const Plan> find(const Shape& shape, std::string_view algorithm);

  // A plan larger than the bound is not kept.
  void add(const Shape& shape, std::string_view algorithm, std::shared_ptr<const Plan> plan);

  void clear();
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Shape shape;
    std::string algorithm;
    std::shared_ptr<const Plan> plan;
    std::uint64_t hash;
    std::size_t bytes;
  };
  using Entries = std::list<Entry>;  // the last used first

  Entries::iterator lookup(std::uint64_t hash, const Shape& shape, std::string_view algorithm);
  void remove(Entries::iterator entry);

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Entries entries_;
  std::unordered_multimap<std::uint64_t, Entries::iterator> by_hash_;
};

}  // namespace nexar::plan
