#include "plan/chooser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace nexar::plan {
namespace {

using enum OperationId;

// Segments that are tried: below 128 KiB a message costs more than what overlapping saves, above 4 MiB nothing is left to overlap.
constexpr std::array<std::uint64_t, 6> kSegmentBytes = {128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20};

bool counts_are_agreed(OperationId operation) {
  return operation != kAllGatherV && operation != kReduceScatterV && operation != kAllToAllV && operation != kGatherV &&
         operation != kScatterV;
}

std::uint64_t elements(std::uint64_t bytes, const Shape& shape) { return std::max<std::uint64_t>(1, bytes / shape.element_bytes); }

// Names in the order in which they are wanted.
std::vector<std::string_view> wanted(const Shape& shape, const Thresholds& thresholds) {
  const std::uint64_t bytes = shape.count * shape.element_bytes;
  const bool small = bytes <= thresholds.small_bytes;
  const bool large = bytes >= thresholds.large_bytes;
  const bool few = shape.size <= thresholds.ring_max_size;
  switch (shape.operation) {
    case kAllReduce:
      if (shape.size == 2 && small) return {"direct"};
      if (small) return {"recursive_doubling", "direct"};
      if (large) return {"pipelined_ring", "rank_ordered"};
      return few ? std::vector<std::string_view>{"ring", "rank_ordered"}
                 : std::vector<std::string_view>{"halving_doubling", "rank_ordered"};
    case kReduceScatter:
      if (small || !few) return {large ? "ring" : "halving", "rank_ordered"};
      return {"ring", "rank_ordered"};
    case kAllGather:
      if (small) return {"recursive_doubling", "bruck"};
      return {"ring"};
    case kBroadcast:
    case kReduce: return {large ? "chain" : "binomial", "flat"};
    case kGather:
    case kScatter: return {small && !few ? "binomial" : "flat"};
    case kAllToAll:
      return {bytes <= 256 && !few ? "bruck" : "pairwise"};  // Bruck moves everything log2(n)/2 times: only where a message's cost is all
    default: return {};
  }
}

}  // namespace

Chooser::Chooser(Thresholds thresholds, std::optional<LinkModel> measured)
    : thresholds_(thresholds), measured_(measured.has_value()), link_(measured.value_or(LinkModel{})) {}

std::uint64_t Chooser::threshold_segment(const Shape& shape) const {
  if (shape.segment > 0) return shape.segment;
  const bool cut = !counts_are_agreed(shape.operation) || shape.count * shape.element_bytes >= thresholds_.large_bytes;
  return cut ? elements(thresholds_.segment_bytes, shape) : 0;
}

Candidate Chooser::best_segment(const Algorithm& algorithm, Shape shape) const {
  const auto with_segment = [&](std::uint64_t segment) {
    shape.segment = segment;
    return Candidate{&algorithm, segment, predict_us(algorithm.work(shape), link_)};
  };
  const std::uint64_t asked = shape.segment;
  if (asked > 0) return with_segment(algorithm.has(kSegmented) ? asked : 0);
  Candidate best = with_segment(0);
  if (!algorithm.has(kSegmented)) return best;
  if (!measured_ || !counts_are_agreed(shape.operation)) return with_segment(threshold_segment(shape));
  for (const std::uint64_t bytes : kSegmentBytes) {
    const Candidate next = with_segment(elements(bytes, shape));
    if (next.predicted_us < best.predicted_us) best = next;
  }
  return best;
}

const Candidate* Chooser::by_thresholds(const Shape& shape, std::vector<Candidate>& candidates) const {
  for (const std::string_view name : wanted(shape, thresholds_))
    for (const Candidate& candidate : candidates)
      if (candidate.algorithm->name == name) return &candidate;
  return candidates.data();
}

Result<Choice> Chooser::choose(const Shape& shape) const {
  if (auto checked = shape.check(); !checked) return std::move(checked).error();
  Choice choice;
  choice.shape = shape;
  for (const Algorithm& algorithm : algorithms_of(shape.operation))
    if (algorithm.legal(shape)) choice.candidates.push_back(best_segment(algorithm, shape));
  if (choice.candidates.empty()) return Error(ErrorCode::kUnsupported, fmt::format("no algorithm does what is asked: {}", shape.to_text()));

  const Candidate* chosen = choice.candidates.data();
  choice.reason = "the only one";
  if (choice.candidates.size() > 1 && measured_ && counts_are_agreed(shape.operation)) {
    choice.reason = "cost";
    for (const Candidate& candidate : choice.candidates)
      if (candidate.predicted_us < chosen->predicted_us) chosen = &candidate;
  } else if (choice.candidates.size() > 1) {
    choice.reason = "thresholds";
    chosen = by_thresholds(shape, choice.candidates);
    for (const Candidate& candidate : choice.candidates) {
      if (!candidate.algorithm->has(kTwoLevel) || candidate.predicted_us >= chosen->predicted_us) continue;
      choice.reason = "cost";
      chosen = &candidate;
    }
  }
  choice.algorithm = chosen->algorithm;
  choice.shape.segment = chosen->segment;
  choice.predicted_us = chosen->predicted_us;
  return choice;
}

Result<Choice> Chooser::choose(const Shape& shape, std::string_view algorithm) const {
  Result<Choice> choice = choose(shape);
  if (!choice) return choice;
  std::string legal;
  for (const Candidate& candidate : choice->candidates) {
    legal += fmt::format("{}{}", legal.empty() ? "" : ", ", candidate.algorithm->name);
    if (candidate.algorithm->name != algorithm) continue;
    choice->algorithm = candidate.algorithm;
    choice->shape.segment = candidate.segment;
    choice->predicted_us = candidate.predicted_us;
    choice->reason = "asked for";
    return choice;
  }
  return Error(ErrorCode::kInvalidArgument, fmt::format("no algorithm {} for {}: there are {}", algorithm, shape.to_text(), legal));
}

std::string explain(const Choice& choice, std::optional<double> measured_us) {
  std::string text = fmt::format("{}: {} ({})\n", choice.shape.to_text(), choice.algorithm->name, choice.reason);
  for (const Candidate& candidate : choice.candidates) {
    const bool chosen = candidate.algorithm == choice.algorithm;
    text += fmt::format("  {} {:<20} {:>12.1f} us predicted", chosen ? "*" : " ", candidate.algorithm->name, candidate.predicted_us);
    if (candidate.segment > 0) text += fmt::format(", segments of {}", candidate.segment);
    if (chosen && measured_us) text += fmt::format(", {:.1f} us measured", *measured_us);
    text += "\n";
  }
  return text;
}

}  // namespace nexar::plan
