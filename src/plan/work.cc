#include "plan/work.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plan/builder.h"

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

Work uncut(Shape shape, Work (*work)(const Shape&)) {
  shape.segment = 0;
  return work(shape);
}

}  // namespace

Work no_work(const Shape&) { return {}; }

Work ring_all_reduce_work(const Shape& shape) { return uncut(shape, pipelined_ring_all_reduce_work); }

Work pipelined_ring_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return steps_of(x, 2 * (x.n - 1), x.bytes / x.n, 0.5);
}

Work halving_doubling_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  const double sent = (x.power - 1) / x.power * x.bytes;
  Work work = rounds_of(x, 2 * x.power_log, 2 * sent, x.bytes / 2, sent);
  add_fold(x, x.bytes, x.bytes, x.bytes, work);
  return work;
}

Work recursive_doubling_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  Work work = rounds_of(x, x.power_log, x.power_log * x.bytes, x.bytes, x.power_log * x.bytes);
  add_fold(x, x.bytes, x.bytes, x.bytes, work);
  return work;
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
  return work;
}

Work direct_all_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return fan_of(x, x.n - 1, x.bytes, x.n * x.bytes);
}

Work ring_all_gather_work(const Shape& shape) {
  const Numbers x(shape);
  return steps_of(x, x.n - 1, x.bytes, 0);
}

Work recursive_doubling_all_gather_work(const Shape& shape) { return bruck_all_gather_work(shape); }

Work bruck_all_gather_work(const Shape& shape) {
  const Numbers x(shape);
  return rounds_of(x, x.log, (x.n - 1) * x.bytes, x.n / 2 * x.bytes, 0);
}

Work ring_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  return steps_of(x, x.n - 1, x.bytes, 1);
}

Work halving_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  const double sent = (x.folded ? 2 : 1) * (x.power - 1) * x.bytes;  // a paired member has two slots
  Work work = rounds_of(x, x.power_log, sent, x.n / 2 * x.bytes, sent);
  add_fold(x, x.n * x.bytes, x.bytes, x.n * x.bytes, work);
  return work;
}

Work rank_ordered_reduce_scatter_work(const Shape& shape) {
  const Numbers x(shape);
  return fan_of(x, x.n - 1, x.bytes, x.n * x.bytes);
}

Work flat_broadcast_work(const Shape& shape) {
  const Numbers x(shape);
  return fan_of(x, x.n - 1, x.bytes, 0);
}

Work binomial_broadcast_work(const Shape& shape) {
  const Numbers x(shape);
  return tree_of(x, x.bytes, 0);
}

Work chain_broadcast_work(const Shape& shape) { return chain_of(Numbers(shape), 0); }

Work flat_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return fan_of(x, x.n - 1, x.bytes, x.n * x.bytes);
}

Work binomial_reduce_work(const Shape& shape) {
  const Numbers x(shape);
  return tree_of(x, x.bytes, 1);
}

Work chain_reduce_work(const Shape& shape) { return chain_of(Numbers(shape), 1); }

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
  return rounds_of(x, x.log, 0, 0, 0);
}

}  // namespace nexar::plan
