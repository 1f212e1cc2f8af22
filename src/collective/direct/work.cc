// What an operation does with memory: copies in, reduces, copies out.
#include <array>
#include <cstring>
#include <span>

#include "base/stream_copy.h"
#include "collective/direct/operation.h"
#include "reduce/identity.h"

namespace nexar::collective::direct {

std::byte* Operation::slot(Rank rank, std::uint64_t round) const {
  const unsigned slot = Area::slot_of(at(round));
  return pattern_.tiny ? area_.header(rank, slot).payload : area_.body(rank, slot);
}

const std::byte* Operation::source(Rank rank, std::uint64_t round, std::uint64_t first) const {
  const std::uint64_t block = pattern_.blocks == 1 ? 0 : static_cast<std::uint64_t>(area_.rank());
  const std::byte* whole = rank == area_.rank() && !pattern_.own_from_slot ? static_cast<const std::byte*>(call_.send) : nullptr;
  if (rank != area_.rank() && !pattern_.tiny) whole = found_[static_cast<std::size_t>(rank)].input;
  if (whole != nullptr) return whole + (block * pattern_.count + pattern_.part(round).first + first) * pattern_.element;
  return slot(rank, round) + (block * pattern_.chunk + first) * pattern_.element;
}

template <typename Byte, typename Work>
void Operation::for_each_stretch(Byte* whole, Part part, Work work) const {
  if (call_.pieces.empty()) return work(whole + part.first * pattern_.element, std::uint64_t{0}, part.count);
  PieceList{call_.pieces, pattern_.count, pattern_.element}.for_each_stretch(part.first, part.count, work);
}

void Operation::move(std::byte* to, const std::byte* from, std::uint64_t elements, bool streams) const {
  if (to == from || elements == 0) return;
  if (streams)
    base::stream_copy(to, from, elements * pattern_.element);
  else
    std::memcpy(to, from, elements * pattern_.element);
}

void Operation::copy_into_header(unsigned slot) {
  std::byte* to = area_.header(area_.rank(), slot).payload;
  const std::size_t bytes = pattern_.count * pattern_.element;
  if (bytes == sizeof(std::uint64_t))
    std::memcpy(to, call_.send, sizeof(std::uint64_t));  // one instruction, for what is asked most often
  else
    std::memcpy(to, call_.send, bytes);
}

void Operation::copy_in(std::uint64_t round) {
  const Part part = pattern_.part(round);
  if (part.count == 0) return;
  std::byte* slot_of_round = slot(area_.rank(), round);
  const auto copy = [&](std::uint64_t to_element, std::uint64_t from_element, std::uint64_t count) {
    std::byte* to = slot_of_round + to_element * pattern_.element;
    for_each_stretch(static_cast<const std::byte*>(call_.send), {part.first + from_element, count},
                     [&](const std::byte* from, std::uint64_t offset, std::uint64_t elements) {
                       move(to + offset * pattern_.element, from, elements, pattern_.streams_in);
                     });
  };
  if (pattern_.blocks > 1) {
    for (Rank block = 0; block < pattern_.blocks; ++block)
      if (block != area_.rank() || pattern_.own_from_slot)
        copy(static_cast<std::uint64_t>(block) * pattern_.chunk, static_cast<std::uint64_t>(block) * pattern_.count, part.count);
  } else if (pattern_.two_stages && shares_are_known()) {
    // Nobody else reads the own slice: its place in the slot is where the result goes.
    const Part own = slice(round, area_.rank());
    copy(0, 0, own.first);
    copy(own.first + own.count, own.first + own.count, part.count - own.first - own.count);
  } else {
    copy(0, 0, part.count);
  }
}

void Operation::copy_out(std::uint64_t round) {
  const Part part = pattern_.part(round);
  auto* to = static_cast<std::byte*>(call_.recv) + part.first * pattern_.element;
  // In an all_to_all each rank begins with its neighbour, so that not all of them read from one core at a time. Where all want the same
  // bytes it is better to read them together.
  const bool in_turn = call_.operation == OperationId::kAllToAll;
  for (Rank i = pattern_.sources.first; i < pattern_.sources.end; ++i) {
    const Rank rank = in_turn ? (i + area_.rank() + 1) % pattern_.ranks : i;
    move(to + (pattern_.side_by_side ? static_cast<std::uint64_t>(rank) * pattern_.count * pattern_.element : 0), source(rank, round, 0),
         part.count, pattern_.streams_out);
  }
}

bool Operation::reduce_round(std::uint64_t round) {
  const auto n = static_cast<std::size_t>(pattern_.sources.size());
  if (!in_headers_ || n == 0) return reduce(round, {0, pattern_.part(round).count}, nullptr);
  const auto sources = area_.payloads(Area::slot_of(at(round))).subspan(static_cast<std::size_t>(pattern_.sources.first), n);
  error_ = call_.reducer->combine_many(sources, call_.recv, pattern_.count, n);
  if (error_) return true;
  end(Outcome::kOpFailed);
  return false;
}

// Into `out`, or, when that is null, into this round's part of the result.
bool Operation::reduce(std::uint64_t round, Part part, std::byte* out) {
  const bool into_result = out == nullptr;
  const std::uint64_t first = pattern_.part(round).first + part.first;
  if (call_.pieces.empty()) {
    if (into_result) out = static_cast<std::byte*>(call_.recv) + first * pattern_.element;
    return reduce_stretch(round, part, source(area_.rank(), round, part.first), out, into_result);
  }
  bool goes_on = true;
  for_each_stretch(static_cast<std::byte*>(call_.recv), {first, part.count},
                   [&](std::byte* piece, std::uint64_t offset, std::uint64_t count) {
                     const std::byte* own = pattern_.own_from_slot ? source(area_.rank(), round, part.first + offset) : piece;
                     std::byte* to = into_result ? piece : out + offset * pattern_.element;
                     goes_on = goes_on && reduce_stretch(round, {part.first + offset, count}, own, to, into_result);
                   });
  return goes_on;
}

// What lies in one piece, of which this rank's values are at `own`.
bool Operation::reduce_stretch(std::uint64_t round, Part part, const std::byte* own, std::byte* out, bool into_result) {
  if (pattern_.sources.size() == 0) {
    if (call_.op) error_ = reduce::fill_identity(call_.type, *call_.op, out, part.count);
  } else if (part.count > 0) {
    std::array<const void*, kRanksMax> sources;
    if (pattern_.tiny && pattern_.blocks == 1) {
      const unsigned slot = Area::slot_of(at(round));
      for (Rank rank = pattern_.sources.first; rank < pattern_.sources.end; ++rank)
        sources[static_cast<std::size_t>(rank)] = area_.header(rank, slot).payload + part.first * pattern_.element;
    } else {
      for (Rank rank = pattern_.sources.first; rank < pattern_.sources.end; ++rank)
        sources[static_cast<std::size_t>(rank)] = source(rank, round, part.first);
    }
    if (pattern_.sources.contains(area_.rank())) sources[static_cast<std::size_t>(area_.rank())] = own;
    const auto n = static_cast<std::size_t>(pattern_.sources.size());
    // What replaces its own source has been read into the cache already.
    const bool streams = into_result || loan_.output.lent != 0 ? pattern_.streams_out && out != own : pattern_.streams_in;
    error_ = call_.reducer->combine_many(std::span(sources).first(n), out, part.count, n,
                                         streams ? reduce::Store::kStreaming : reduce::Store::kCached);
  }
  if (error_) return true;
  end(Outcome::kOpFailed);
  return false;
}

void Operation::gather_slices(std::uint64_t round) {
  const Part part = pattern_.part(round);
  for (Rank rank = 0; rank < pattern_.ranks; ++rank) {
    const Part slice = this->slice(round, rank);
    const std::byte* result = found_[static_cast<std::size_t>(rank)].output;
    const std::byte* from =
        result != nullptr ? result + (part.first + slice.first) * pattern_.element : slot(rank, round) + slice.first * pattern_.element;
    for_each_stretch(static_cast<std::byte*>(call_.recv), {part.first + slice.first, slice.count},
                     [&](std::byte* to, std::uint64_t offset, std::uint64_t count) {
                       move(to, from + offset * pattern_.element, count, pattern_.streams_out);
                     });
  }
}

}  // namespace nexar::collective::direct
