#include "plan/symbols.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/assert.h"

namespace nexar::plan {

Expressions::Expressions(Rank size) : size_(size), facts_(2 + static_cast<std::size_t>(size)) {
  const std::size_t words = static_cast<std::size_t>(size + 63) / 64;
  for (Facts& facts : facts_) facts.ranks.assign(words, 0);
  for (Rank rank = 0; rank < size; ++rank) {
    Facts& facts = facts_[leaf(rank)];
    facts.ranks[static_cast<std::size_t>(rank) / 64] = std::uint64_t{1} << (rank % 64);
    facts.ranks_held = 1;
    facts.first = facts.last = rank;
  }
}

void Expressions::append(Facts& facts, const Facts& operand) {
  facts.repeated = facts.repeated || operand.repeated;
  facts.in_order = facts.in_order && operand.in_order && operand.first == facts.last + 1;
  facts.last = operand.last;
  for (std::size_t word = 0; word < facts.ranks.size(); ++word) {
    facts.repeated = facts.repeated || (facts.ranks[word] & operand.ranks[word]) != 0;
    facts.ranks[word] |= operand.ranks[word];
  }
  facts.ranks_held = 0;
  for (const std::uint64_t word : facts.ranks) facts.ranks_held += std::popcount(word);
}

ExpressionId Expressions::reduce(std::vector<ExpressionId> operands, Place place) {
  const auto [found, is_new] = ids_.try_emplace({place, operands}, static_cast<ExpressionId>(facts_.size()));
  if (!is_new) return found->second;
  Facts facts = facts_[operands[0]];
  facts.once.clear();
  for (std::size_t i = 1; i < operands.size(); ++i) append(facts, facts_[operands[i]]);
  if (place == Place::kDivided) facts.once = facts_[operands[0]].once;
  if (place == Place::kOnce) facts.once = std::move(operands);
  facts.divided = place == Place::kDivided;
  facts_.push_back(std::move(facts));
  return found->second;
}

ExpressionId Expressions::divide(ExpressionId operand) { return reduce({operand}, Place::kDivided); }

bool Expressions::exactly(ExpressionId id, Rank count) const {
  if (id <= kIdentity) return false;
  const Facts& facts = facts_[id];
  if (facts.repeated || facts.ranks_held != count) return false;
  for (Rank rank = 0; rank < count; ++rank)
    if ((facts.ranks[static_cast<std::size_t>(rank) / 64] >> (rank % 64) & 1) == 0) return false;
  return true;
}

bool Expressions::accumulated(ExpressionId id, Rank count) const {
  if (count == 1) return id == leaf(0);
  const std::vector<ExpressionId>& once = facts_[id].once;
  if (once.size() != static_cast<std::size_t>(count)) return false;
  for (Rank rank = 0; rank < count; ++rank)
    if (once[static_cast<std::size_t>(rank)] != leaf(rank)) return false;
  return true;
}

SymbolBuffer::SymbolBuffer(std::uint64_t count) {
  if (count > 0) runs_.push_back({{0, count}, {}});
}

std::vector<SymbolRun> SymbolBuffer::read(Extent extent) const {
  std::vector<SymbolRun> found;
  if (extent.count == 0) return found;
  auto at = std::upper_bound(runs_.begin(), runs_.end(), extent.first,
                             [](std::uint64_t first, const SymbolRun& run) { return first < run.extent.end(); });
  for (; at != runs_.end() && at->extent.first < extent.end(); ++at) {
    const std::uint64_t first = std::max(at->extent.first, extent.first);
    const std::uint64_t end = std::min(at->extent.end(), extent.end());
    found.push_back({{first - extent.first, end - first}, at->symbol.after(first - at->extent.first)});
  }
  return found;
}

void SymbolBuffer::write(Extent extent, const std::vector<SymbolRun>& runs) {
  if (extent.count == 0) return;
  const auto begin = std::upper_bound(runs_.begin(), runs_.end(), extent.first,
                                      [](std::uint64_t first, const SymbolRun& run) { return first < run.extent.end(); });
  auto end = begin;
  while (end != runs_.end() && end->extent.first < extent.end()) ++end;
  NEXAR_ASSERT(begin != end, "a write lies inside its buffer");
  std::vector<SymbolRun> replaced;
  if (begin->extent.first < extent.first) replaced.push_back({{begin->extent.first, extent.first - begin->extent.first}, begin->symbol});
  for (const SymbolRun& run : runs) replaced.push_back({{extent.first + run.extent.first, run.extent.count}, run.symbol});
  const SymbolRun& last = *std::prev(end);
  if (last.extent.end() > extent.end())
    replaced.push_back({{extent.end(), last.extent.end() - extent.end()}, last.symbol.after(extent.end() - last.extent.first)});
  const auto at = runs_.erase(begin, end);
  runs_.insert(at, replaced.begin(), replaced.end());
}

}  // namespace nexar::plan
