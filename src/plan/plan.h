// What one rank does for one collective: steps over slices of named buffers, with what each depends on.
//
// A Plan is a value: built once, cached, replayed, never changed by whoever runs it. It is flat, because the runner walks it on the data
// path: steps in one vector, everything of varying length in others beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nexar/ids.h"
#include "plan/cut.h"
#include "plan/shape.h"

namespace nexar::plan {

enum class Buffer : std::uint8_t {
  kInput,    // the user's send buffer; never written unless Alias::kOutputInInput
  kOutput,   // the user's receive buffer
  kScratch,  // memory of the operation's own, Plan::scratch_count elements
  kToken,    // no memory: elements of zero bytes that stand for "this has happened", as in a barrier
};

// Elements [first, first + count) of a buffer.
struct Slice {
  Buffer buffer = Buffer::kOutput;
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return first + count; }
  bool empty() const { return count == 0; }

  // Elements [extent.first, extent.end()) of this slice.
  Slice sub(Extent extent) const { return {buffer, first + extent.first, extent.count}; }
  bool overlaps(const Slice& other) const {
    return buffer == other.buffer && !empty() && !other.empty() && first < other.end() && other.first < end();
  }
  friend bool operator==(const Slice&, const Slice&) = default;
};

enum class StepKind : std::uint8_t {
  kSend,           // from -> peer; done when the bytes of `from` are no longer needed: on bulk lanes, when the peer has them all
  kReceive,        // into = what comes
  kReceiveReduce,  // into = op(from, what comes), or op(what comes, from); into is from, or overlaps it nowhere
  kCopy,           // into = from; no overlap
  kReduce,         // into = op(sources[0], sources[1], ...) from the left, small floats accumulated wide and rounded once
  kFinish,         // into = into / Plan::divisor: the end of an average
  kFillIdentity,   // into = the neutral element of the op
  kSignal,         // for windows in shared memory; no algorithm uses it
  kWait,           // likewise
};

std::string_view to_string(StepKind kind);
std::string_view to_string(Buffer buffer);

// One step. 48 bytes: a thousand ranks make plans of a hundred thousand.
struct Step {
  // kReceive, kReceiveReduce: may be granted before its dependencies are done, because by causality they will be when the peer sends: what
  // it sends was made from what these steps gave away. The verifier proves it.
  static constexpr std::uint8_t kAhead = 1;
  static constexpr std::uint8_t kReceivedFirst = 2;  // kReceiveReduce: what comes is the left operand
  static constexpr std::uint8_t kDivides = 4;        // kReduce: divided by Plan::divisor before it is rounded

  StepKind kind = StepKind::kCopy;
  std::uint8_t flags = 0;
  Buffer into_buffer = Buffer::kOutput;
  Buffer from_buffer = Buffer::kOutput;
  std::uint8_t channel = 0;        // messages of one channel share a way to the peer where there are several
  Rank peer = -1;                  // of messages
  std::uint32_t part = 0;          // number of the message among all from this sender to this receiver in this operation
  std::uint32_t source_first = 0;  // kReduce: where its sources begin in Plan::sources
  std::uint32_t source_count = 0;
  std::uint64_t count = 0;  // elements
  std::uint64_t into_first = 0;
  std::uint64_t from_first = 0;

  Slice into() const { return {into_buffer, into_first, count}; }
  Slice from() const { return {from_buffer, from_first, count}; }
  bool sends() const { return kind == StepKind::kSend; }
  bool receives() const { return kind == StepKind::kReceive || kind == StepKind::kReceiveReduce; }
  bool writes() const { return kind != StepKind::kSend; }
  bool reads_from() const { return kind == StepKind::kSend || kind == StepKind::kReceiveReduce || kind == StepKind::kCopy; }
  bool ahead() const { return (flags & kAhead) != 0; }
  bool received_first() const { return (flags & kReceivedFirst) != 0; }
  bool divides() const { return (flags & kDivides) != 0; }

  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) == 48);

// A list of step numbers for each step, as two flat vectors.
struct StepLists {
  std::vector<std::uint32_t> offsets{0};  // of step i: [offsets[i], offsets[i + 1])
  std::vector<std::uint32_t> numbers;

  std::span<const std::uint32_t> of(std::size_t step) const { return {numbers.data() + offsets[step], numbers.data() + offsets[step + 1]}; }
  friend bool operator==(const StepLists&, const StepLists&) = default;
};

// Where a source of a kReduce begins.
struct Place {
  Buffer buffer = Buffer::kOutput;
  std::uint64_t first = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Plan {
  Shape shape;
  std::string_view algorithm;  // its name in the table of algorithms
  std::uint64_t scratch_count = 0;
  std::uint64_t token_count = 0;
  std::uint64_t divisor = 1;  // of an average
  std::vector<Step> steps;    // in program order: a step depends only on earlier ones
  std::vector<Place> sources;
  StepLists dependencies;  // what each step waits for
  StepLists dependents;    // who waits for each step: the same edges from the other end

  std::span<const Place> sources_of(const Step& step) const { return {sources.data() + step.source_first, step.source_count}; }

  // Bytes of `slice` on the wire and in memory.
  std::uint64_t bytes(const Slice& slice) const { return slice.buffer == Buffer::kToken ? 0 : slice.count * shape.element_bytes; }

  // Elements of a buffer as steps may name it.
  std::uint64_t extent_of(Buffer buffer) const;

  // Where the user's data and the result lie, aliases resolved.
  Slice input() const;
  Slice output() const;

  std::size_t memory() const;   // bytes that this plan takes
  std::string to_text() const;  // a line for each step

  friend bool operator==(const Plan&, const Plan&) = default;
};

// Turns lists of what each step waits for around.
StepLists reversed(const StepLists& lists);

// Where the user's data and the result of a shape lie, aliases resolved.
Slice input_of(const Shape& shape);
Slice output_of(const Shape& shape);

}  // namespace nexar::plan
