#include "collective/direct/shares.h"

#include <algorithm>

namespace nexar::collective::direct {
namespace {

// Of an equal share, as little as a rank reduces: so that it keeps knowing its pace.
constexpr std::uint64_t kLeastOfShare = 32;

// Within these 64 bits hold everything below, for as many ranks as there can be.
constexpr std::uint64_t kFastest = std::uint64_t{1} << 10;
constexpr std::uint64_t kSlowest = std::uint64_t{1} << 24;
constexpr std::uint64_t kAll = std::uint64_t{1} << 34;

// Of the time that equal shares take. What is copied in vain may take as much as is saved.
constexpr std::uint64_t kWorthwhilePercent = 94;

}  // namespace

bool Shares::go_by(std::span<const Pace> paces) {
  const std::size_t n = paces.size();
  by_pace_ = std::all_of(paces.begin(), paces.end(), [](const Pace& pace) { return pace.is_known() && pace.counts; });
  if (!std::all_of(paces.begin(), paces.end(), [](const Pace& pace) { return pace.is_known(); })) return false;

  std::array<std::uint64_t, kRanksMax> copies;
  std::array<std::uint64_t, kRanksMax> speed;  // of all, in a nanosecond
  std::array<std::uint64_t, kRanksMax> share;  // of all
  std::array<bool, kRanksMax> is_least{};
  std::uint64_t done_if_equal = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t reductions = std::clamp<std::uint64_t>(paces[i].reductions, kFastest, kSlowest);
    copies[i] = std::min<std::uint64_t>(paces[i].copies, kSlowest);
    speed[i] = kAll / reductions;
    done_if_equal = std::max(done_if_equal, copies[i] + reductions / n);
  }

  // When all are done, if those whose share would be less than the least have that. That leaves less to the others, who are done earlier,
  // so that nobody who has the least would get more after all. Somebody always has more than the least: it is far less than what is left
  // for each.
  const std::uint64_t least = kAll / (kLeastOfShare * n);
  for (bool changed = true; changed;) {
    changed = false;
    std::uint64_t left = kAll;
    std::uint64_t speeds = 0;
    std::uint64_t begun = 0;
    for (std::size_t i = 0; i < n; ++i) {
      left -= is_least[i] ? least : 0;
      speeds += is_least[i] ? 0 : speed[i];
      begun += is_least[i] ? 0 : copies[i] * speed[i];
    }
    const std::uint64_t done = (left + begun) / speeds;
    for (std::size_t i = 0; i < n; ++i) {
      share[i] = is_least[i] || done <= copies[i] ? least : std::max(least, (done - copies[i]) * speed[i]);
      if (is_least[i] || share[i] > least) continue;
      is_least[i] = changed = true;
    }
  }

  std::uint64_t all = 0;
  for (std::size_t i = 0; i < n; ++i) all += share[i];
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += share[i];
    ends_[i] = static_cast<std::uint32_t>(sum * kWhole / all);
  }
  ends_[n - 1] = kWhole;

  std::uint64_t done = 0;
  for (std::size_t i = 0; i < n; ++i) done = std::max(done, copies[i] + share[i] / speed[i]);
  return done * 100 < done_if_equal * kWorthwhilePercent;
}

Part Shares::of(Rank rank, std::uint64_t elements, std::uint64_t unit) const {
  const auto bound = [&](std::uint64_t part) { return part == kWhole ? elements : elements * part / kWhole / unit * unit; };
  const std::uint64_t first = rank == 0 ? 0 : bound(end(rank - 1));
  return {first, bound(end(rank)) - first};
}

}  // namespace nexar::collective::direct
