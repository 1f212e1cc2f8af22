#include "collective/plan_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/stream_copy.h"
#include "reduce/identity.h"

namespace nexar::collective {
namespace {

using plan::Step;
using plan::StepKind;

// Copies of this size do not stay in a core's cache until they are read.
constexpr std::uint64_t kPastCacheBytes = 4u << 20;

}  // namespace

void PlanRun::start(Task task) {
  NEXAR_ASSERT(task_.plan == nullptr, "a run has one plan at a time");
  task_ = std::move(task);
  prepare();
  const plan::Plan& plan = *task_.plan;
  walking_ = true;  // what is done while receives are posted waits until all are
  post_ahead();
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number)
    if (waiting_[number] == 0 && plan.steps[number].receives()) post(number);
  for (std::uint32_t number = 0; number < plan.steps.size(); ++number)
    if (plan.dependencies.of(number).empty() && !plan.steps[number].receives()) ready_.push_back(number);
  walking_ = false;
  walk();
}

void PlanRun::prepare() {
  const plan::Plan& plan = *task_.plan;
  const std::size_t steps = plan.steps.size();
  waiting_.resize(steps);
  message_.resize(steps);
  sends_.clear();
  receives_.clear();
  for (std::uint32_t number = 0; number < steps; ++number) {
    const Step& step = plan.steps[number];
    waiting_[number] = plan.dependencies.offsets[number + 1] - plan.dependencies.offsets[number];
    if (!step.sends() && !step.receives()) continue;
    const Rank peer = task_.members[static_cast<std::size_t>(step.peer)];
    if (step.sends()) {
      message_[number] = static_cast<std::uint32_t>(sends_.size());
      mesh::StepSend& send = sends_.emplace_back();
      send.peer = peer;
      send.part = step.part;
      send.step = number;
      send.data = {at(step.from()), static_cast<std::size_t>(plan.bytes(step.from()))};
    } else {
      message_[number] = static_cast<std::uint32_t>(receives_.size());
      mesh::StepReceive& receive = receives_.emplace_back();
      receive.peer = peer;
      receive.part = step.part;
      receive.step = number;
      receive.bytes = plan.bytes(step.into());
      receive.into = step.kind == StepKind::kReceive ? at(step.into()) : nullptr;
    }
  }
  if (!task_.pieces.empty()) list_regions();
  left_ = steps;
  next_ahead_ = 0;
  open_ahead_ = 0;
  bytes_done_ = 0;
}

void PlanRun::reset() {
  task_ = {};
  ready_.clear();
  next_ready_ = 0;
  left_ = 0;
  fragments_.clear();
  regions_.clear();
  error_.reset();
}

std::byte* PlanRun::at(plan::Buffer buffer, std::uint64_t first) const {
  const std::uint64_t offset = first * task_.plan->shape.element_bytes;
  switch (buffer) {
    case plan::Buffer::kInput: return const_cast<std::byte*>(task_.input) + offset;  // written only where the output lies in it
    case plan::Buffer::kOutput: return task_.output + offset;
    case plan::Buffer::kScratch: return task_.scratch + offset;
    case plan::Buffer::kToken: break;
  }
  return nullptr;
}

std::byte* PlanRun::at(const plan::Slice& slice) const {
  if (!lies_in_pieces(slice.buffer)) return at(slice.buffer, slice.first);
  const Stretch stretch = pieces().from(slice.first);
  return stretch.count >= slice.count ? stretch.data : nullptr;
}

template <typename Work>
void PlanRun::for_each_stretch(const plan::Slice& slice, Work work) const {
  if (!lies_in_pieces(slice.buffer)) return work(at(slice.buffer, slice.first), std::uint64_t{0}, slice.count);
  pieces().for_each_stretch(slice.first, slice.count, work);
}

void PlanRun::post(std::uint32_t number) {
  mesh::StepReceive& receive = receives_[message_[number]];
  if (receive.state == mesh::StepReceive::State::kIdle) task_.port->receive(*task_.operation, receive);
}

// Receives that may be granted ahead, in the order of the plan.
void PlanRun::post_ahead() {
  const std::vector<Step>& steps = task_.plan->steps;
  for (; next_ahead_ < steps.size() && open_ahead_ < kAheadMax && !error_; ++next_ahead_) {
    const Step& step = steps[next_ahead_];
    if (!step.receives() || !step.ahead() || waiting_[next_ahead_] == 0) continue;
    if (receives_[message_[next_ahead_]].state != mesh::StepReceive::State::kIdle) continue;
    ++open_ahead_;
    post(next_ahead_);
  }
}

// Begins what is ready. What becomes ready meanwhile is begun by the same call: plans are long, and stacks are not.
void PlanRun::walk() {
  if (std::exchange(walking_, true)) return;
  for (post_ahead(); next_ready_ < ready_.size() && !error_; post_ahead()) begin(ready_[next_ready_++]);
  ready_.clear();
  next_ready_ = 0;
  walking_ = false;
}

void PlanRun::begin(std::uint32_t number) {
  const Step& step = task_.plan->steps[number];
  if (step.sends()) {
    mesh::StepSend& send = sends_[message_[number]];
    if (send.data.data == nullptr && send.regions.empty() && send.data.bytes > 0) gather(step, send);
    return task_.port->send(*task_.operation, send);
  }
  if (step.receives()) return post(number);
  if (auto computed = compute(step); !computed) return fail(computed.error());
  finish(number);
}

Result<void> PlanRun::compute(const Step& step) {
  Result<void> computed;
  for_each_stretch(step.into(), [&](std::byte* into, std::uint64_t offset, std::uint64_t count) {
    if (computed) computed = compute_stretch(step, into, offset, count);
  });
  return computed;
}

// Of what the step makes, `count` elements from `offset` on, which lie at `into`.
Result<void> PlanRun::compute_stretch(const Step& step, std::byte* into, std::uint64_t offset, std::uint64_t count) {
  const auto n = static_cast<std::size_t>(count);
  switch (step.kind) {
    case StepKind::kCopy: copy(step.from().sub({offset, count}), into, task_.plan->bytes(step.into()) >= kPastCacheBytes); return {};
    case StepKind::kReduce: return step.into_buffer == plan::Buffer::kToken ? Result<void>() : reduce_many(step, into, offset, count);
    case StepKind::kFinish: return task_.reducer->finish(into, n, task_.plan->divisor);
    case StepKind::kFillIdentity:
      if (!task_.op) return Error(ErrorCode::kUnsupported, "a user op has no neutral element");
      return reduce::fill_identity(task_.reducer->type(), *task_.op, into, n);
    default: return Error(ErrorCode::kInternal, "a plan has a step that nothing here runs");
  }
}

void PlanRun::copy(const plan::Slice& from, std::byte* into, bool past_cache) const {
  if (task_.plan->bytes(from) == 0) return;
  const std::size_t size = task_.plan->shape.element_bytes;
  for_each_stretch(from, [&](const std::byte* memory, std::uint64_t offset, std::uint64_t count) {
    if (past_cache)
      base::stream_copy(into + offset * size, memory, count * size);
    else
      std::memcpy(into + offset * size, memory, count * size);
  });
}

// As many elements at a time as lie in one piece of each source.
Result<void> PlanRun::reduce_many(const Step& step, std::byte* into, std::uint64_t offset, std::uint64_t count) {
  std::uint64_t done = 0;
  do {
    std::uint64_t now = count - done;
    sources_.clear();
    for (const plan::Place& place : task_.plan->sources_of(step)) {
      const std::uint64_t first = place.first + offset + done;
      const bool whole = !lies_in_pieces(place.buffer);
      const Stretch stretch = whole ? Stretch{at(place.buffer, first), now} : pieces().from(first);
      sources_.push_back(stretch.data);
      now = std::min(now, stretch.count);
    }
    auto reduced = task_.reducer->combine_many(sources_, into + done * task_.plan->shape.element_bytes, static_cast<std::size_t>(now),
                                               step.divides() ? task_.plan->divisor : 1);
    if (!reduced) return reduced;
    done += now;
  } while (done < count);
  return {};
}

void PlanRun::finish(std::uint32_t number) {
  --left_;
  for (const std::uint32_t dependent : task_.plan->dependents.of(number))
    if (--waiting_[dependent] == 0) ready_.push_back(dependent);
}

void PlanRun::on_sent(const mesh::StepSend& send) {
  bytes_done_ += send.data.bytes;
  finish(send.step);
  walk();
}

void PlanRun::on_received(const mesh::StepReceive& receive) {
  NEXAR_ASSERT(std::none_of(fragments_.begin(), fragments_.end(), [&](const Fragment& one) { return one.receive == &receive; }),
               "messages are made of whole elements");
  bytes_done_ += receive.bytes;
  const Step& step = task_.plan->steps[receive.step];
  if (step.ahead() && open_ahead_ > 0) --open_ahead_;
  finish(receive.step);
  walk();
}

void PlanRun::take(mesh::StepReceive& receive, std::uint64_t offset, base::ByteView bytes) {
  if (error_) return;
  if (receive.into == nullptr) return take_elements(receive, offset, bytes);
  std::memcpy(receive.into + offset, bytes.data(), bytes.size());
}

// What comes ends where packets do, in the middle of elements.
void PlanRun::take_elements(const mesh::StepReceive& receive, std::uint64_t offset, base::ByteView bytes) {
  if (!fragments_.empty()) bytes = complete_fragment(receive, offset, bytes);
  const std::size_t size = task_.plan->shape.element_bytes;
  const std::size_t whole = bytes.size() / size;
  if (whole > 0) combine(task_.plan->steps[receive.step], offset / size, bytes.data(), whole);
  const base::ByteView rest = bytes.subspan(whole * size);
  if (rest.empty()) return;
  Fragment fragment{&receive, offset + bytes.size(), static_cast<std::uint32_t>(rest.size()), {}};
  std::copy(rest.begin(), rest.end(), fragment.element.begin());
  fragments_.push_back(fragment);
}

// What is left of `bytes` when the element that they begin in the middle of is complete.
base::ByteView PlanRun::complete_fragment(const mesh::StepReceive& receive, std::uint64_t& offset, base::ByteView bytes) {
  const auto found =
      std::find_if(fragments_.begin(), fragments_.end(), [&](const Fragment& one) { return one.receive == &receive && one.end == offset; });
  if (found == fragments_.end()) return bytes;
  const std::size_t size = task_.plan->shape.element_bytes;
  const std::size_t more = std::min(bytes.size(), size - found->bytes);
  std::copy_n(bytes.begin(), more, found->element.begin() + found->bytes);
  found->bytes += static_cast<std::uint32_t>(more);
  found->end += more;
  offset += more;
  if (found->bytes == size) {
    combine(task_.plan->steps[receive.step], offset / size - 1, found->element.data(), 1);
    *found = fragments_.back();
    fragments_.pop_back();
  }
  return bytes.subspan(more);
}

// A user op sees elements as C++ objects: those that packets have put anywhere are moved to where objects may be.
void PlanRun::combine(const Step& step, std::uint64_t element, const std::byte* values, std::uint64_t count) {
  const std::size_t size = task_.plan->shape.element_bytes;
  if (task_.op || step.kind == StepKind::kReceive || reinterpret_cast<std::uintptr_t>(values) % size == 0)
    return combine_aligned(step, element, values, count);
  alignas(std::max_align_t) std::array<std::byte, 4096> aligned;
  const std::uint64_t most = aligned.size() / size;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t now = std::min(most, count - done);
    std::memcpy(aligned.data(), values + done * size, now * size);
    combine_aligned(step, element + done, aligned.data(), now);
    done += now;
  }
}

void PlanRun::combine_aligned(const Step& step, std::uint64_t element, const std::byte* values, std::uint64_t count) {
  const std::size_t size = task_.plan->shape.element_bytes;
  const plan::Slice from = step.from().sub({element, count});
  const plan::Slice into = step.into().sub({element, count});
  for_each_stretch(into, [&](std::byte* to, std::uint64_t offset, std::uint64_t n) {
    const std::byte* come = values + offset * size;
    if (step.kind == StepKind::kReceive)
      std::memcpy(to, come, n * size);
    else if (from == into)
      combine_stretch(step, to, come, to, n);
    else
      for_each_stretch(from.sub({offset, n}), [&](const std::byte* own, std::uint64_t skipped, std::uint64_t m) {
        combine_stretch(step, own, come + skipped * size, to + skipped * size, m);
      });
  });
}

void PlanRun::combine_stretch(const Step& step, const std::byte* own, const std::byte* values, std::byte* into, std::uint64_t count) {
  if (error_) return;
  const auto n = static_cast<std::size_t>(count);
  const Result<void> combined =
      step.received_first() ? task_.reducer->combine(values, own, into, n) : task_.reducer->combine(own, values, into, n);
  if (!combined) fail(combined.error());
}

void PlanRun::waits_for(std::vector<Rank>& ranks) const {
  ranks.clear();
  if (task_.plan == nullptr) return;
  const auto add = [&](std::uint32_t step) {
    const Rank peer = task_.plan->steps[step].peer;
    if (std::find(ranks.begin(), ranks.end(), peer) == ranks.end()) ranks.push_back(peer);
  };
  for (const mesh::StepReceive* receive : task_.operation->receives) add(receive->step);
  for (const mesh::StepSend* send : task_.operation->sends) add(send->step);
}

wire::Progress PlanRun::progress() const {
  wire::Progress progress;
  if (task_.plan == nullptr) return progress;
  progress.steps_total = static_cast<std::uint32_t>(task_.plan->steps.size());
  progress.steps_done = static_cast<std::uint32_t>(task_.plan->steps.size() - left_);
  progress.bytes_done = bytes_done_;
  std::uint32_t first = progress.steps_total;  // the earliest step that waits for somebody is what holds the others up
  for (const mesh::StepReceive* receive : task_.operation->receives) first = std::min(first, receive->step);
  for (const mesh::StepSend* send : task_.operation->sends) first = std::min(first, send->step);
  if (first < progress.steps_total) progress.waits_for = task_.plan->steps[first].peer;
  return progress;
}

}  // namespace nexar::collective
