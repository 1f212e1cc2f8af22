#include "plan/builder.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace nexar::plan {

PlanBuilder::PlanBuilder(const Shape& shape, std::string_view algorithm)
    : input_(input_of(shape)),
      output_(output_of(shape)),
      sent_(static_cast<std::size_t>(shape.size), first_part(shape.phase)),
      received_(static_cast<std::size_t>(shape.size), first_part(shape.phase)) {
  plan_.shape = shape;
  plan_.algorithm = algorithm;
  plan_.divisor = shape.divisor();
}

Slice PlanBuilder::scratch(std::uint64_t count) {
  const Slice slice{Buffer::kScratch, plan_.scratch_count, count};
  plan_.scratch_count += count;
  return slice;
}

Slice PlanBuilder::token() { return {Buffer::kToken, plan_.token_count++, 1}; }

Cut PlanBuilder::segments(std::uint64_t count) const {
  const std::uint64_t segment = plan_.shape.segment;
  if (segment == 0 || count <= segment) return Cut::slots(count, 1);
  return Cut::chunks(count, static_cast<Rank>(std::min((count - 1) / segment + 1, kSegmentsMax)));
}

void PlanBuilder::add(Step step, std::span<const Slice> reads, const Slice* writes) {
  NEXAR_ASSERT(plan_.steps.size() < first_part(1), "messages of one plan are numbered below those of the next");
  const std::uint32_t me = number();
  found_.clear();
  for (const Slice& slice : reads) accesses(slice.buffer).read({slice.first, slice.count}, me, found_);
  if (writes != nullptr) accesses(writes->buffer).write({writes->first, writes->count}, me, found_);
  for (std::uint32_t awaited = awaited_.first; awaited < awaited_.end; ++awaited) found_.push_back(awaited);
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  plan_.steps.push_back(step);
  plan_.dependencies.numbers.insert(plan_.dependencies.numbers.end(), found_.begin(), found_.end());
  plan_.dependencies.offsets.push_back(static_cast<std::uint32_t>(plan_.dependencies.numbers.size()));
}

void PlanBuilder::send_segment(Rank to, Slice slice) {
  Step step;
  step.kind = StepKind::kSend;
  step.channel = channel_;
  step.peer = to;
  step.part = sent_[static_cast<std::size_t>(to)]++;
  step.from_buffer = slice.buffer;
  step.from_first = slice.first;
  step.count = slice.count;
  add(step, {&slice, 1}, nullptr);
}

void PlanBuilder::receive_segment(Rank from, const Sink& sink, Extent extent) {
  const Slice into = sink.into.sub(extent);
  Step step;
  step.kind = sink.reduces ? StepKind::kReceiveReduce : StepKind::kReceive;
  step.channel = channel_;
  step.peer = from;
  step.part = received_[static_cast<std::size_t>(from)]++;
  step.into_buffer = into.buffer;
  step.into_first = into.first;
  step.count = into.count;
  if (sink.is_ahead) step.flags |= Step::kAhead;
  if (!sink.reduces) return add(step, {}, &into);
  const Slice own = sink.own.sub(extent);
  step.from_buffer = own.buffer;
  step.from_first = own.first;
  if (sink.first == First::kReceived) step.flags |= Step::kReceivedFirst;
  add(step, {&own, 1}, &into);
}

StepRange PlanBuilder::send(Rank to, Slice slice) { return exchange(to, slice, to, store_in({})); }
StepRange PlanBuilder::receive(Rank from, const Sink& sink) { return exchange(from, {}, from, sink); }

StepRange PlanBuilder::exchange(Rank to, Slice slice, Rank from, const Sink& sink) {
  NEXAR_ASSERT(!slice.overlaps(sink.into), "what is sent and what is received at once do not overlap");
  NEXAR_ASSERT(!sink.reduces || sink.own.count == sink.into.count, "a reduction has operands of one length");
  StepRange range{number(), number()};
  const Cut sent = segments(slice.count);
  const Cut received = segments(sink.into.count);
  for (std::int64_t i = 0; i < std::max(sent.size(), received.size()); ++i) {
    if (i < sent.size() && !slice.empty()) send_segment(to, slice.sub(sent.piece(i)));
    if (i < received.size() && !sink.into.empty()) receive_segment(from, sink, received.piece(i));
  }
  range.end = number();
  return range;
}

void PlanBuilder::copy(Slice from, Slice into) {
  NEXAR_ASSERT(from.count == into.count, "a copy is as long as what is copied");
  if (from == into || from.empty()) return;
  const Cut cut = segments(from.count);
  for (std::int64_t i = 0; i < cut.size(); ++i) {
    const Slice source = from.sub(cut.piece(i));
    const Slice target = into.sub(cut.piece(i));
    Step step;
    step.kind = StepKind::kCopy;
    step.from_buffer = source.buffer;
    step.from_first = source.first;
    step.into_buffer = target.buffer;
    step.into_first = target.first;
    step.count = source.count;
    add(step, {&source, 1}, &target);
  }
}

void PlanBuilder::finish(Slice slice) {
  if (!plan_.shape.average || plan_.divisor == 1 || slice.empty()) return;
  const Cut cut = segments(slice.count);
  for (std::int64_t i = 0; i < cut.size(); ++i) {
    const Slice target = slice.sub(cut.piece(i));
    Step step;
    step.kind = StepKind::kFinish;
    step.into_buffer = target.buffer;
    step.into_first = target.first;
    step.count = target.count;
    add(step, {&target, 1}, &target);
  }
}

void PlanBuilder::fill_identity(Slice slice) {
  if (slice.empty()) return;
  Step step;
  step.kind = StepKind::kFillIdentity;
  step.into_buffer = slice.buffer;
  step.into_first = slice.first;
  step.count = slice.count;
  add(step, {}, &slice);
}

void PlanBuilder::reduce(std::span<const Slice> sources, Slice into, Last last) {
  NEXAR_ASSERT(!sources.empty(), "a reduction has a source");
  if (into.empty()) return;
  const Cut cut = segments(into.count);
  std::vector<Slice> parts(sources.size());
  for (std::int64_t i = 0; i < cut.size(); ++i) {
    const Slice target = into.sub(cut.piece(i));
    Step step;
    step.kind = StepKind::kReduce;
    step.into_buffer = target.buffer;
    step.into_first = target.first;
    step.count = target.count;
    step.source_first = static_cast<std::uint32_t>(plan_.sources.size());
    step.source_count = static_cast<std::uint32_t>(sources.size());
    if (last == Last::kYes && plan_.shape.average && plan_.divisor != 1) step.flags |= Step::kDivides;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      NEXAR_ASSERT(sources[s].count == into.count, "a reduction has operands of one length");
      parts[s] = sources[s].sub(cut.piece(i));
      plan_.sources.push_back({parts[s].buffer, parts[s].first});
    }
    add(step, parts, &target);
  }
}

Plan PlanBuilder::build() {
  plan_.dependents = reversed(plan_.dependencies);
  plan_.steps.shrink_to_fit();
  plan_.sources.shrink_to_fit();
  plan_.dependencies.offsets.shrink_to_fit();
  plan_.dependencies.numbers.shrink_to_fit();
  return std::move(plan_);
}

}  // namespace nexar::plan
