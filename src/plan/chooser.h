// Which algorithm a call uses, and why.
//
// All ranks of a group must choose alike without asking one another. So a choice depends on agreed values only: the operation, its count,
// the element size, the group's size and hosts, root, ordered, reproducible, average; thresholds, which are part of the configuration that
// ranks compare when they join; and the link model, which is agreed when a view is installed. Never on the rank, or on whether the call is
// in place. In v-forms counts are not agreed either: there the first legal row of the table is taken, and a fixed segment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nexar/result.h"
#include "plan/algorithms.h"
#include "plan/cost.h"
#include "plan/shape.h"

namespace nexar::plan {

// What decides until costs are measured: Config::large_msg_bytes, pipeline_segment_bytes, ring_max_world.
struct Thresholds {
  std::uint64_t small_bytes = 64 << 10;  // up to here hops cost more than bytes: what a rank may send without a grant
  std::uint64_t large_bytes = 8 << 20;   // from here on transfers are cut into segments
  std::uint64_t segment_bytes = 2 << 20;
  Rank ring_max_size = 8;
};

struct Candidate {
  const Algorithm* algorithm = nullptr;
  std::uint64_t segment = 0;  // elements; 0: transfers are not cut
  double predicted_us = 0;
};

struct Choice {
  Shape shape;  // as asked for, with the segment that was chosen
  const Algorithm* algorithm = nullptr;
  double predicted_us = 0;
  std::string_view reason;            // "cost", "thresholds", "asked for", "the only one"
  std::vector<Candidate> candidates;  // every legal algorithm with its best segment, in the order of the table
};

class Chooser {
 public:
  // Without a model thresholds decide; predictions are then those of a guessed link. Thresholds know nothing of hosts: where there are
  // levels (hosts.h), what they name is compared with the algorithm of two levels by these predictions.
  explicit Chooser(Thresholds thresholds = {}, std::optional<LinkModel> measured = {});

  // A segment that the shape has is kept. kInvalidArgument for a wrong shape, or an algorithm that does not exist or is not legal for it.
  Result<Choice> choose(const Shape& shape) const;
  Result<Choice> choose(const Shape& shape, std::string_view algorithm) const;

  const LinkModel& link() const { return link_; }

 private:
  Candidate best_segment(const Algorithm& algorithm, Shape shape) const;
  const Candidate* by_thresholds(const Shape& shape, std::vector<Candidate>& candidates) const;
  std::uint64_t threshold_segment(const Shape& shape) const;

  Thresholds thresholds_;
  bool measured_;
  LinkModel link_;
};

// A table of candidates and predictions, the chosen one marked, and the time that it took where that is known.
std::string explain(const Choice& choice, std::optional<double> measured_us = {});

}  // namespace nexar::plan
