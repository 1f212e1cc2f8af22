#include "collective/direct/pattern.h"

#include <algorithm>

namespace nexar::collective::direct {
namespace {

constexpr std::uint64_t kCopiedForOneInVain = 8;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Pattern::Pattern(const Call& call, Rank rank, const Layout& layout, const Tuning& tuning, bool lent)
    : element(size_of(call.type)), count(call.count), ranks(layout.ranks()), tuning_lend(tuning.lend) {
  const Ranks all{0, ranks};
  const Ranks root{call.root, call.root + 1};
  const Ranks nobody{};
  const bool at_root = rank == call.root;
  const std::size_t bytes = count * element;
  // In one stage a result may replace what peers still read, so that nothing could be lent.
  const bool large = ranks > 1 && (lent || bytes > (ranks == 2 ? tuning.one_stage_two_ranks : tuning.one_stage));
  could_take_two = ranks > 1 && (call.operation == OperationId::kAllReduce || call.operation == OperationId::kReduce);

  publishes = true;
  sources = readers = all;
  switch (call.operation) {
    case OperationId::kAllReduce:
      take = Take::kReduce;
      two_stages = large;
      break;
    case OperationId::kReduce:
      two_stages = large;
      take = at_root || two_stages ? Take::kReduce : Take::kNothing;
      if (two_stages) break;
      publishes = !at_root;
      sources = at_root ? all : nobody;
      readers = root;
      break;
    case OperationId::kScan:
      take = Take::kReduce;
      sources = {0, rank + 1};
      readers = {rank + 1, ranks};
      break;
    case OperationId::kExclusiveScan:
      take = Take::kReduce;
      sources = {0, rank};
      readers = {rank + 1, ranks};
      break;
    case OperationId::kReduceScatter:
      take = Take::kReduce;
      blocks = ranks;
      break;
    case OperationId::kAllToAll:
      take = Take::kCopy;
      blocks = ranks;
      side_by_side = true;
      break;
    case OperationId::kAllGather:
      take = Take::kCopy;
      side_by_side = true;
      break;
    case OperationId::kGather:
      side_by_side = true;
      take = at_root ? Take::kCopy : Take::kNothing;
      publishes = !at_root;
      sources = at_root ? all : nobody;
      readers = root;
      break;
    case OperationId::kScatter:
      take = Take::kCopy;
      blocks = ranks;
      publishes = at_root;
      sources = root;
      break;
    case OperationId::kBroadcast:
      take = at_root ? Take::kNothing : Take::kCopy;
      publishes = at_root;
      sources = at_root ? nobody : root;
      break;
    default: break;  // a barrier: ranks meet, and that is all
  }
  if (readers.size() <= 0 || (readers.size() == 1 && readers.contains(rank))) publishes = false;
  own_from_slot = take == Take::kReduce && !two_stages && !call.op && ranks > 2;
  publishes = publishes || own_from_slot;

  if (bytes * static_cast<std::size_t>(blocks) <= layout.slot_bytes() / 2) {
    chunk = count;  // whatever the blocks are rounded to, it fits: nothing is divided on behalf of small calls
  } else {
    const std::uint64_t unit = kCacheLine / element;
    const std::uint64_t room = layout.slot_bytes() / static_cast<std::size_t>(blocks) / kCacheLine * unit;
    rounds = std::max<std::uint64_t>(1, (count + room - 1) / room);
    chunk = rounds == 1 ? count : round_up((count + rounds - 1) / rounds, unit);
    if (rounds > 1) rounds = (count + chunk - 1) / chunk;
  }
  // While shares may go by pace nobody knows its own before the first round is there, so that two rounds are copied with the own share,
  // which nobody reads. With few ranks and few rounds that is more than is gained.
  const std::uint64_t in_vain = std::min<std::uint64_t>(rounds, 2);
  shares_by_pace =
      two_stages && bytes >= tuning.shares_by_pace && in_vain * kCopiedForOneInVain <= rounds * static_cast<std::uint64_t>(ranks);
  tiny = !two_stages && bytes * static_cast<std::size_t>(blocks) <= kInlineBytes;
  streams_in = bytes * static_cast<std::size_t>(blocks) >= tuning.stream_in;
  streams_out = bytes * static_cast<std::size_t>(take == Take::kCopy ? sources.size() : 1) >= tuning.stream_out;
}

Part Pattern::part(std::uint64_t round) const {
  const std::uint64_t first = round * chunk;
  return {first, std::min(chunk, count - first)};
}

}  // namespace nexar::collective::direct
