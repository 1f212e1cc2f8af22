#include "bench/call.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace nexar::bench {
namespace {

// What crosses the slowest link of the best algorithm, as nccl-tests have it: the busbw of different operations and numbers of ranks
// compares with the speed of the wire.
double once(int) { return 1; }
double others(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double twice_others(int ranks) { return 2 * others(ranks); }

constexpr std::array<Collective, 20> kCollectives = {{
    {OperationId::kAllReduce, true, false, false, false, twice_others},
    {OperationId::kAllReduceRsAg, true, false, false, false, twice_others},
    {OperationId::kReduceScatter, true, true, false, true, others},
    {OperationId::kReduceScatterV, true, true, true, true, others},
    {OperationId::kAllGather, false, true, false, false, others},
    {OperationId::kAllGatherV, false, true, true, false, others},
    {OperationId::kAllGatherBytes, false, true, true, false, others},
    {OperationId::kBroadcast, false, false, false, true, once},
    {OperationId::kBroadcastBytes, false, false, false, true, once},
    {OperationId::kReduce, true, false, false, true, once},
    {OperationId::kGather, false, true, false, true, others},
    {OperationId::kGatherV, false, true, true, true, others},
    {OperationId::kGatherBytes, false, true, true, true, others},
    {OperationId::kScatter, false, true, false, true, others},
    {OperationId::kScatterV, false, true, true, true, others},
    {OperationId::kAllToAll, false, true, false, false, others},
    {OperationId::kAllToAllV, false, true, true, false, others},
    {OperationId::kScan, true, false, false, true, once},
    {OperationId::kExclusiveScan, true, false, false, true, once},
    {OperationId::kBarrier, false, false, false, false, once},
}};

std::uint64_t sum(const std::vector<std::uint64_t>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0}); }

// What rank `from` gives rank `to` in all_to_all_v.
std::uint64_t between(const Call& call, Rank from, Rank to) {
  return call.counts[static_cast<std::size_t>(from + 2 * to) % call.counts.size()];
}

}  // namespace

std::span<const Collective> collectives() { return kCollectives; }

const Collective* find_collective(std::string_view name) {
  const auto found =
      std::find_if(kCollectives.begin(), kCollectives.end(), [&](const Collective& one) { return to_string(one.operation) == name; });
  return found == kCollectives.end() ? nullptr : &*found;
}

const Collective& collective_of(OperationId operation) { return *find_collective(to_string(operation)); }

std::uint64_t Call::bytes() const {
  if (operation == OperationId::kBarrier) return 0;
  return size_of(type) * (collective_of(operation).has_parts ? sum(counts) : count());
}

Place Call::place(Rank rank) const {
  switch (operation) {
    case OperationId::kBroadcast:
    case OperationId::kAllReduceRsAg: return Place::kSame;
    case OperationId::kAllReduce:
    case OperationId::kScan:
    case OperationId::kExclusiveScan: return in_place ? Place::kSame : Place::kApart;
    case OperationId::kReduce: return in_place && rank == root ? Place::kSame : Place::kApart;
    case OperationId::kAllGather:
    case OperationId::kAllGatherV: return in_place ? Place::kInputSlot : Place::kApart;
    case OperationId::kGather:
    case OperationId::kGatherV: return in_place && rank == root ? Place::kInputSlot : Place::kApart;
    case OperationId::kReduceScatter:
    case OperationId::kReduceScatterV: return in_place ? Place::kOutputSlot : Place::kApart;
    case OperationId::kScatter:
    case OperationId::kScatterV: return in_place && rank == root ? Place::kOutputSlot : Place::kApart;
    default: return Place::kApart;
  }
}

std::uint64_t Call::slot(Rank rank) const { return std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0}); }

std::vector<std::uint64_t> Call::send_counts(Rank rank) const {
  std::vector<std::uint64_t> sent;
  for (Rank to = 0; to < ranks(); ++to) sent.push_back(between(*this, rank, to));
  return sent;
}

std::vector<std::uint64_t> Call::recv_counts(Rank rank) const {
  std::vector<std::uint64_t> received;
  for (Rank from = 0; from < ranks(); ++from) received.push_back(between(*this, from, rank));
  return received;
}

std::uint64_t Call::input_count(Rank rank) const {
  switch (operation) {
    case OperationId::kBarrier: return 0;
    case OperationId::kReduceScatter:
    case OperationId::kReduceScatterV:
    case OperationId::kAllToAll: return sum(counts);
    case OperationId::kAllToAllV: return sum(send_counts(rank));
    case OperationId::kScatter:
    case OperationId::kScatterV: return rank == root ? sum(counts) : 0;
    case OperationId::kBroadcast:
    case OperationId::kBroadcastBytes: return rank == root ? count() : 0;
    default: return counts[static_cast<std::size_t>(rank)];
  }
}

std::vector<Piece> Call::output(Rank rank) const {
  const std::uint64_t own = counts[static_cast<std::size_t>(rank)];
  const auto reduced = [](int among, std::uint64_t first, std::uint64_t elements) { return Piece{true, among, 0, first, elements}; };
  const auto taken = [](Rank from, std::uint64_t first, std::uint64_t elements) { return Piece{false, 0, from, first, elements}; };
  std::vector<Piece> all;
  switch (operation) {
    case OperationId::kAllReduce:
    case OperationId::kAllReduceRsAg: return {reduced(ranks(), 0, own)};
    case OperationId::kReduce:
      if (rank == root) all.push_back(reduced(ranks(), 0, own));
      return all;
    case OperationId::kReduceScatter:
    case OperationId::kReduceScatterV: return {reduced(ranks(), slot(rank), own)};
    case OperationId::kScan: return {reduced(rank + 1, 0, own)};
    case OperationId::kExclusiveScan: return {reduced(rank, 0, own)};
    case OperationId::kBroadcast:
    case OperationId::kBroadcastBytes: return {taken(root, 0, own)};
    case OperationId::kScatter:
    case OperationId::kScatterV: return {taken(root, slot(rank), own)};
    case OperationId::kGather:
    case OperationId::kGatherV:
    case OperationId::kGatherBytes:
      if (rank != root) return all;
      [[fallthrough]];
    case OperationId::kAllGather:
    case OperationId::kAllGatherV:
    case OperationId::kAllGatherBytes:
      for (Rank from = 0; from < ranks(); ++from) all.push_back(taken(from, 0, counts[static_cast<std::size_t>(from)]));
      return all;
    case OperationId::kAllToAll:
      for (Rank from = 0; from < ranks(); ++from) all.push_back(taken(from, slot(rank), own));
      return all;
    case OperationId::kAllToAllV:
      for (Rank from = 0; from < ranks(); ++from) {
        std::uint64_t first = 0;
        for (Rank to = 0; to < rank; ++to) first += between(*this, from, to);
        all.push_back(taken(from, first, between(*this, from, rank)));
      }
      return all;
    default: return all;
  }
}

Call call_of_bytes(const Collective& collective, std::uint64_t bytes, int ranks, DataType type, ReduceOp op) {
  const std::uint64_t elements = std::max<std::uint64_t>(1, bytes / size_of(type));
  const auto parts = static_cast<std::uint64_t>(ranks);
  Call call{collective.operation, type, op, 0, true, {}};
  call.counts.assign(parts, collective.has_parts ? std::max<std::uint64_t>(1, elements / parts) : elements);
  if (!collective.is_uneven) return call;
  // Every second rank gives half of its part to the one before it.
  for (std::size_t rank = 1; rank < parts; rank += 2) {
    const std::uint64_t moved = call.counts[rank] / 2;
    call.counts[rank] -= moved;
    call.counts[rank - 1] += moved;
  }
  return call;
}

}  // namespace nexar::bench
