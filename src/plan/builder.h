// Writes a plan from verbs.
//
// An algorithm says what happens one thing after the other, as if nothing overlapped. The builder cuts messages into segments, numbers
// them, and derives from the slices what each step really has to wait for; everything else may overlap.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/access_map.h"
#include "plan/plan.h"

namespace nexar::plan {

// The most segments that one transfer is cut into. Beyond about a thousand nothing more overlaps, and a plan would only grow: segments get
// larger instead.
inline constexpr std::uint64_t kSegmentsMax = 1024;

// Which operand of a reduction comes first. Ranks that compute the same value choose so that both evaluate the same expression.
enum class First : std::uint8_t { kReceived, kOwn };

// Where a message goes.
struct Sink {
  Slice into;
  Slice own{};
  bool reduces = false;
  First first = First::kReceived;
  bool is_ahead = false;

  // The same, granted before its dependencies are done, which causality vouches for.
  Sink ahead() const {
    Sink sink = *this;
    sink.is_ahead = true;
    return sink;
  }
};

inline Sink store_in(Slice into) { return {.into = into}; }

// into = op(received, own) or op(own, received); `into` is `own`, or overlaps it nowhere.
inline Sink reduce_into(Slice into, Slice own, First first) { return {.into = into, .own = own, .reduces = true, .first = first}; }

// Numbers of steps: [first, end).
struct StepRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

class PlanBuilder {
 public:
  PlanBuilder(const Shape& shape, std::string_view algorithm);

  const Shape& shape() const { return plan_.shape; }

  // The user's data and the place of the result, aliases resolved.
  Slice input() const { return input_; }
  Slice output() const { return output_; }
  bool same_buffer() const { return plan_.shape.alias() == Alias::kSame; }

  Slice scratch(std::uint64_t count);  // elements that nobody else uses
  Slice token();                       // something that can happen

  // Verbs. An empty slice does nothing; a message is cut into segments, and so is what is done to it. Both ends cut alike, because they cut
  // what is transferred.
  StepRange send(Rank to, Slice slice);
  StepRange receive(Rank from, const Sink& sink);
  StepRange exchange(Rank to, Slice slice, Rank from, const Sink& sink);  // at once; `slice` and `sink.into` do not overlap
  void copy(Slice from, Slice into);                                      // nothing when they are the same
  void finish(Slice slice);                                               // nothing unless the shape is an average
  void fill_identity(Slice slice);

  // into = op(sources...), all as long as `into`, in the order given. When it is the last reduction, an average is divided here.
  enum class Last : std::uint8_t { kNo, kYes };
  void reduce(std::span<const Slice> sources, Slice into, Last last);

  // What follows is on this channel.
  void use_channel(std::uint8_t channel) { channel_ = channel; }

  // What follows waits for those steps as well, until the next call.
  void wait_for(StepRange steps) { awaited_ = steps; }

  Plan build();

 private:
  Cut segments(std::uint64_t count) const;
  void send_segment(Rank to, Slice slice);
  void receive_segment(Rank from, const Sink& sink, Extent extent);
  std::uint32_t number() const { return static_cast<std::uint32_t>(plan_.steps.size()); }  // of the step that comes next
  void add(Step step, std::span<const Slice> reads, const Slice* writes);
  AccessMap& accesses(Buffer buffer) { return accesses_[static_cast<std::size_t>(buffer)]; }

  Plan plan_;
  Slice input_;
  Slice output_;
  std::array<AccessMap, 4> accesses_;
  std::vector<std::uint32_t> sent_;      // messages to each rank
  std::vector<std::uint32_t> received_;  // messages from each rank
  std::vector<std::uint32_t> found_;     // dependencies of the step being added
  StepRange awaited_;
  std::uint8_t channel_ = 0;
};

}  // namespace nexar::plan
