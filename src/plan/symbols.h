// Values as symbols: what the verifier computes with instead of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "nexar/ids.h"
#include "plan/cut.h"

namespace nexar::plan {

// An expression over the ranks' inputs. Equal expressions have equal ids, so that comparing two results is comparing two numbers.
using ExpressionId = std::uint32_t;

inline constexpr ExpressionId kUndefined = 0;  // memory that nobody has written
inline constexpr ExpressionId kIdentity = 1;   // the neutral element

// Every expression that occurs in one verification, each once.
class Expressions {
 public:
  explicit Expressions(Rank size);

  ExpressionId leaf(Rank rank) const { return 2 + static_cast<ExpressionId>(rank); }
  ExpressionId combine(ExpressionId left, ExpressionId right) { return reduce({left, right}, Place::kApart); }
  ExpressionId accumulate(std::vector<ExpressionId> operands) { return reduce(std::move(operands), Place::kOnce); }
  ExpressionId divide(ExpressionId operand);

  // Whether an operand can be reduced at all: it is written, no neutral element, and not yet divided.
  bool reducible(ExpressionId id) const { return id > kIdentity && !facts_[id].divided; }

  // Whether each of the ranks [0, count) is in it exactly once, and no other.
  bool exactly(ExpressionId id, Rank count) const;
  bool contains_all(ExpressionId id) const { return id > kIdentity && facts_[id].ranks_held == size_; }
  bool in_rank_order(ExpressionId id) const { return facts_[id].in_order; }
  bool divided(ExpressionId id) const { return facts_[id].divided; }

  // Whether it is x0, x1, ... x(count-1), accumulated in one go.
  bool accumulated(ExpressionId id, Rank count) const;

 private:
  enum class Place : std::uint32_t { kApart, kOnce, kDivided };

  struct Facts {
    std::vector<std::uint64_t> ranks;  // one bit for each
    Rank ranks_held = 0;
    bool repeated = false;  // some rank is in it twice
    bool in_order = true;   // ranks first, first + 1, ... last
    Rank first = 0;
    Rank last = -1;
    bool divided = false;
    std::vector<ExpressionId> once;  // the operands, when it was accumulated in one go
  };

  ExpressionId reduce(std::vector<ExpressionId> operands, Place place);
  static void append(Facts& facts, const Facts& operand);

  Rank size_;
  std::vector<Facts> facts_;
  std::map<std::pair<Place, std::vector<ExpressionId>>, ExpressionId> ids_;
};

// What a run of elements holds: element k is the expression over element `base + k` of the ranks' inputs.
struct Symbol {
  ExpressionId expression = kUndefined;
  std::uint64_t base = 0;

  Symbol after(std::uint64_t elements) const { return {expression, expression > kIdentity ? base + elements : 0}; }
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct SymbolRun {
  Extent extent;
  Symbol symbol;
};

// A buffer of symbols. Runs instead of elements, so that a large buffer costs no more than a small one.
class SymbolBuffer {
 public:
  explicit SymbolBuffer(std::uint64_t count);

  // What [extent) holds, as runs with extents counted from its beginning.
  std::vector<SymbolRun> read(Extent extent) const;

  // `runs` as read() returns them.
  void write(Extent extent, const std::vector<SymbolRun>& runs);

 private:
  std::vector<SymbolRun> runs_;  // sorted, without gaps
};

}  // namespace nexar::plan
