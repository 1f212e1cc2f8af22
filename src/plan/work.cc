#include "plan/work.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plan/builder.h"
#include "plan/neighbours.h"
#include "plan/work_hosts.h"

namespace nexar::plan {
namespace {

// The numbers that the formulas are made of.
struct Numbers {
  explicit Numbers(const Shape& shape)
      : n(shape.size),
        bytes(static_cast<double>(shape.count) * shape.element_bytes),
        segment_bytes(static_cast<double>(shape.segment) * shape.element_bytes),
        log(std::bit_width(static_cast<std::uint32_t>(shape.size - 1))),
        power(static_cast<double>(std::bit_floor(static_cast<std::uint32_t>(shape.size)))),
        power_log(std::bit_width(static_cast<std::uint32_t>(shape.size)) - 1),
        folded(power != n) {}

  // Messages that a transfer is cut into, and the bytes of one.
  double segments(double transfer) const {
    if (transfer <= 0) return 0;
    return segment_bytes > 0 ? std::clamp(std::ceil(transfer / segment_bytes), 1.0, static_cast<double>(kSegmentsMax)) : 1;
  }
  double segment(double transfer) const { return transfer <= 0 ? 0 : transfer / segments(transfer); }

  double n;
  double bytes;  // of the buffer, or of one slot
  double segment_bytes;
  double log;  // rounds for any number of ranks
  double power;
  double power_log;
  bool folded;
};

// `transfers` equal transfers one after the other along a path of as many hops, segments overlapping.
Work steps_of(const Numbers& x, double transfers, double transfer, double reduced_share) {
  const double segment = x.segment(transfer);
  Work work;
  work.hops = transfers;
  work.messages = transfers * x.segments(transfer);
  work.bytes = transfers * transfer;
  work.reduced = work.bytes * reduced_share;
  work.path_bytes = transfers * segment;
  work.path_reduced = work.path_bytes * reduced_share;
  work.message_bytes = segment;
  return work;
}

// Whole transfers that are one round each; nothing of the next overlaps.
Work rounds_of(const Numbers& x, double rounds, double total, double largest, double reduced) {
  Work work;
  work.hops = rounds;
  work.messages = std::max(rounds, x.segments(total));
  work.bytes = work.path_bytes = total;
  work.reduced = work.path_reduced = reduced;
  work.message_bytes = x.segment(largest);
  return work;
}

// One rank exchanges with `peers` others at once.
Work fan_of(const Numbers& x, double peers, double transfer, double reduced) {
  Work work;
  work.hops = peers > 0 ? 1 : 0;
  work.messages = peers * x.segments(transfer);
  work.bytes = work.path_bytes = peers * transfer;
  work.reduced = reduced;
  work.path_reduced = x.segments(transfer) > 1 ? reduced / x.segments(transfer) : reduced;
  work.message_bytes = x.segment(transfer);
  return work;
}

// A chain of n ranks, all segments through all of it.
Work chain_of(const Numbers& x, double reduced_share) {
  Work work;
  if (x.n <= 1) return work;
  const double segment = x.segment(x.bytes);
  work.hops = x.n - 1;
  work.messages = x.segments(x.bytes);
  work.bytes = x.bytes;
  work.reduced = x.bytes * reduced_share;
  work.path_bytes = x.bytes + (x.n - 2) * segment;
  work.path_reduced = (x.n - 1) * segment * reduced_share;
  work.message_bytes = segment;
  return work;
}

// A binomial tree, whose top talks to log2(n) others one after the other.
Work tree_of(const Numbers& x, double transfer, double reduced_share) {
  const double segment = x.segment(transfer);
  Work work;
  work.hops = x.log;
  work.messages = x.log * x.segments(transfer);
  work.bytes = x.log * transfer;
  work.reduced = work.bytes * reduced_share;
  work.path_bytes = std::max(work.bytes, transfer + (x.log - 1) * segment);
  work.path_reduced = work.reduced;
  work.message_bytes = segment;
  return work;
}

// Subtrees of slots through a binomial tree.
Work slots_of(const Numbers& x) { return rounds_of(x, x.log, (x.n - 1) * x.bytes, x.n / 2 * x.bytes, 0); }

void add_fold(const Numbers& x, double before, double after, double reduced, Work& work) {
  if (!x.folded) return;
  work.hops += 2;
  work.messages += x.segments(before) + x.segments(after);
  work.bytes += before + after;
  work.path_bytes += before + after;
  work.reduced += reduced;
  work.path_reduced += reduced;
  work.message_bytes = std::max(work.message_bytes, x.segment(before));
}

// The rounds of a fold, before and after.
void fold_rounds(const Shape& shape, double before, double after, RoundsOnHosts& rounds) {
  if (!Numbers(shape).folded) return;
  for (const double bytes : {before, after})
    rounds.add(bytes, [&](Rank rank) {
      const Fold fold(rank, shape.size);
      return fold.paired() ? fold.partner() : -1;
    });
}

// A round of the members of a fold, whose numbers differ by one bit.
void member_round(const Shape& shape, double bytes, Rank bit, RoundsOnHosts& rounds) {
  rounds.add(bytes, [&](Rank rank) {
    const Fold fold(rank, shape.size);
    return fold.aside() ? -1 : fold.rank_of(fold.member() ^ bit);
  });
}

// The numbers of formulas for two levels.
struct Levels {
  explicit Levels(const Shape& shape) : hosts(shape.hosts.count()), fewest(shape.hosts.fewest()), most(shape.hosts.most()) {}
  double hosts;
  double fewest;
  double most;
};

// Adds what happens inside hosts to what happens between them.
Work both_levels(Work between, const Work& inside) {
  between.local_hops = inside.hops;
  between.local_bytes = inside.bytes;
  between.local_path_bytes = inside.path_bytes;
  between.messages += inside.messages;
  between.reduced += inside.reduced;
  between.path_reduced += inside.path_reduced;
  between.message_bytes = std::max(between.message_bytes, inside.message_bytes);
  return between;
}

// Every host passes on the slots of all others, its ranks in parallel.
Work slots_between(const Numbers& x, const Levels& levels, double reduced_share) {
  Work work = steps_of(x, levels.hosts - 1, (x.n - levels.fewest) * x.bytes / (levels.hosts - 1) / levels.fewest, reduced_share);
  work.sharing = levels.fewest;
  return work;
}

// Every rank of a host exchanges an m-th of all slots with every other, the slots of one host at a time.
Work slots_inside(const Numbers& x, const Levels& levels, double hops, double reduced_share) {
  const double transfer = x.n * x.bytes / levels.most / levels.hosts;
  Work work;
  work.hops = hops;
  work.messages = (levels.most - 1) * levels.hosts * x.segments(transfer);
  work.bytes = (levels.most - 1) * x.n * x.bytes / levels.most;
  work.reduced = work.bytes * reduced_share;
  work.path_bytes = (levels.most - 1) * x.segment(transfer);
  work.path_reduced = work.path_bytes * reduced_share;
  work.message_bytes = x.segment(transfer);
  return work;
}

// Chains of hosts and inside them.
Work two_chains(const Shape& shape, double reduced_share) {
  const Levels levels(shape);
  Numbers x(shape);
  x.n = levels.hosts;
  const Work between = chain_of(x, reduced_share);
  x.n = levels.most;
  Work inside = chain_of(x, reduced_share);
  inside.path_bytes = inside.hops * x.segment(x.bytes);  // the transfer itself is counted between hosts
  return both_levels(between, inside);
}

Work uncut(Shape shape, Work (*work)(const Shape&)) {
  shape.segment = 0;
  return work(shape);
}

}  // namespace

Work no_work(const Shape&) { return {}; }

Work ring_all_reduce_work(const Shape& shape) { return uncut(shape, pipelined_ring_all_reduce_work); }

Work pipelined_ring_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return around_hosts(shape, steps_of(x, 2 * (x.n - 1), x.bytes / x.n, 0.5));
}

Work halving_doubling_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  const double sent = (x.power - 1) / x.power * x.bytes;
  Work work = rounds_of(x, 2 * x.power_log, 2 * sent, x.bytes / 2, sent);
  add_fold(x, x.bytes, x.bytes, x.bytes, work);
  RoundsOnHosts rounds(shape, work);
  fold_rounds(shape, x.bytes, x.bytes, rounds);
  for (Rank bit = 1; 2 * bit <= shape.size; bit <<= 1)
    for (int way = 0; way < 2; ++way) member_round(shape, x.bytes / (2.0 * bit), bit, rounds);
  return rounds.work();
}

Work recursive_doubling_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  Work work = rounds_of(x, x.power_log, x.power_log * x.bytes, x.bytes, x.power_log * x.bytes);
  add_fold(x, x.bytes, x.bytes, x.bytes, work);
  RoundsOnHosts rounds(shape, work);
  fold_rounds(shape, x.bytes, x.bytes, rounds);
  for (Rank bit = 1; 2 * bit <= shape.size; bit <<= 1) member_round(shape, x.bytes, bit, rounds);
  return rounds.work();
}

Work tree_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  Work work = tree_of(x, x.bytes, 1);
  const Work down = tree_of(x, x.bytes, 0);
  work.hops += down.hops;
  work.messages += down.messages;
  work.bytes += down.bytes;
  work.path_bytes += x.segments(x.bytes) > 1 ? x.log * x.segment(x.bytes) : down.path_bytes;
  return work;
}

Work rank_ordered_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  Work work = fan_of(x, x.n - 1, x.bytes / x.n, x.n > 1 ? x.bytes : 0);
  work.hops *= 2;
  work.messages *= 2;
  work.bytes *= 2;
  work.path_bytes *= 2;
  return spread_over_hosts(shape, work);
}

Work direct_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return spread_over_hosts(shape, fan_of(x, x.n - 1, x.bytes, x.n * x.bytes));
}

Work two_level_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  const Levels levels(shape);
  Work between = steps_of(x, 2 * (levels.hosts - 1), x.bytes / levels.hosts / levels.fewest, 0.5);
  between.sharing = levels.fewest;
  return both_levels(between, steps_of(x, 2 * (levels.most - 1), x.bytes / levels.most, 0.5));
}

Work ring_all_gather_work(const Shape& shape) {
  const Numbers x(shape);
  return around_hosts(shape, steps_of(x, x.n - 1, x.bytes, 0));
}

Work recursive_doubling_all_gather_work(const Shape& shape) {
  const Numbers x(shape);
  RoundsOnHosts rounds(shape, rounds_of(x, x.log, (x.n - 1) * x.bytes, x.n / 2 * x.bytes, 0));
  for (Rank bit = 1; bit < shape.size; bit <<= 1) rounds.add(bit * x.bytes, [&](Rank rank) { return rank ^ bit; });
  return rounds.work();
}

Work bruck_all_gather_work(const Shape& shape) {
  const Numbers x(shape);
  RoundsOnHosts rounds(shape, rounds_of(x, x.log, (x.n - 1) * x.bytes, x.n / 2 * x.bytes, 0));
  for (Rank held = 1; held < shape.size; held *= 2)
    rounds.add(std::min(held, shape.size - held) * x.bytes, [&](Rank rank) { return (rank - held + shape.size) % shape.size; });
  return rounds.work();
}

Work two_level_all_gather_work(const Shape& shape) {
  const Numbers x(shape);
  const Levels levels(shape);
  return both_levels(slots_between(x, levels, 0), slots_inside(x, levels, 1, 0));
}

Work ring_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  return around_hosts(shape, steps_of(x, x.n - 1, x.bytes, 1));
}

Work halving_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  const double sent = (x.folded ? 2 : 1) * (x.power - 1) * x.bytes;  // a paired member has two slots
  Work work = rounds_of(x, x.power_log, sent, x.n / 2 * x.bytes, sent);
  add_fold(x, x.n * x.bytes, x.bytes, x.n * x.bytes, work);
  RoundsOnHosts rounds(shape, work);
  fold_rounds(shape, x.n * x.bytes, x.bytes, rounds);
  for (Rank bit = 1; 2 * bit <= shape.size; bit <<= 1) member_round(shape, (x.folded ? 2 : 1) * bit * x.bytes, bit, rounds);
  return rounds.work();
}

Work rank_ordered_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  return spread_over_hosts(shape, fan_of(x, x.n - 1, x.bytes, x.n * x.bytes));
}

Work two_level_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  const Levels levels(shape);
  return both_levels(slots_between(x, levels, 1), slots_inside(x, levels, levels.most - 1, 1));
}

Work flat_broadcast_work(const Shape& shape) {
  const Numbers x(shape);
  return fan_of(x, x.n - 1, x.bytes, 0);
}

Work binomial_broadcast_work(const Shape& shape) {
  const Numbers x(shape);
  return tree_of(x, x.bytes, 0);
}

Work chain_broadcast_work(const Shape& shape) {
  const Numbers x(shape);
  return around_hosts(shape, chain_of(x, 0), x.bytes);
}

Work two_level_broadcast_work(const Shape& shape) { return two_chains(shape, 0); }

Work flat_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return fan_of(x, x.n - 1, x.bytes, x.n * x.bytes);
}

Work binomial_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return tree_of(x, x.bytes, 1);
}

Work chain_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return around_hosts(shape, chain_of(x, 1), x.bytes);
}

Work two_level_reduce_work(const Shape& shape) { return two_chains(shape, 1); }

Work flat_gather_work(const Shape& shape) { return flat_broadcast_work(shape); }
Work flat_scatter_work(const Shape& shape) { return flat_broadcast_work(shape); }
Work binomial_gather_work(const Shape& shape) { return slots_of(Numbers(shape)); }
Work binomial_scatter_work(const Shape& shape) { return slots_of(Numbers(shape)); }
Work pairwise_all_to_all_work(const Shape& shape) { return flat_broadcast_work(shape); }

Work bruck_all_to_all_work(const Shape& shape) {
  const Numbers x(shape);
  Work work = rounds_of(x, x.log, x.log * x.n / 2 * x.bytes, x.n / 2 * x.bytes, 0);
  work.copied = work.bytes + x.n * x.bytes;
  return work;
}

Work hillis_steele_scan_work(const Shape& shape) {
  const Numbers x(shape);
  return rounds_of(x, x.log, x.log * x.bytes, x.bytes, x.log * x.bytes);
}

Work hillis_steele_exclusive_scan_work(const Shape& shape) {
  const Numbers x(shape);
  if (x.n == 1) return {};
  return rounds_of(x, x.log + 1, (x.log + 1) * x.bytes, x.bytes, x.log * x.bytes);
}

Work direct_scan_work(const Shape& shape) { return direct_all_reduce_work(shape); }

Work dissemination_barrier_work(const Shape& shape) {
  const Numbers x(shape);
  RoundsOnHosts rounds(shape, rounds_of(x, x.log, 0, 0, 0));
  for (Rank distance = 1; distance < shape.size; distance *= 2) rounds.add(0, [&](Rank rank) { return (rank + distance) % shape.size; });
  return rounds.work();
}

Work two_level_barrier_work(const Shape& shape) {
  const Levels levels(shape);
  Numbers x(shape);
  x.log = std::bit_width(static_cast<std::uint32_t>(shape.hosts.count() - 1));
  Work work = rounds_of(x, x.log, 0, 0, 0);
  work.messages += levels.most - 1;
  work.local_hops = 2;
  return work;
}

}  // namespace nexar::plan
