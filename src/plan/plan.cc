#include "plan/plan.h"

#include <fmt/format.h>

namespace nexar::plan {
namespace {

std::string text_of(const Slice& slice) { return fmt::format("{}[{}..{})", to_string(slice.buffer), slice.first, slice.end()); }

std::string line_of(const Plan& plan, std::size_t number) {
  const Step& step = plan.steps[number];
  std::string line = fmt::format("{:>4} {}", number, to_string(step.kind));
  if (step.writes()) line += " into " + text_of(step.into());
  if (step.reads_from()) line += (step.received_first() ? " after it " : " from ") + text_of(step.from());
  for (const Place& place : plan.sources_of(step)) line += " " + text_of({place.buffer, place.first, step.count});
  if (step.peer >= 0) line += fmt::format(" peer {} part {}", step.peer, step.part);
  if (step.channel > 0) line += fmt::format(" channel {}", step.channel);
  if (step.ahead()) line += " ahead";
  if (!plan.dependencies.of(number).empty()) line += " waits for";
  for (const std::uint32_t dependency : plan.dependencies.of(number)) line += fmt::format(" {}", dependency);
  return line;
}

template <typename T>
std::size_t bytes_of(const std::vector<T>& vector) {
  return vector.capacity() * sizeof(T);
}

}  // namespace

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::kSend: return "send";
    case StepKind::kReceive: return "receive";
    case StepKind::kReceiveReduce: return "receive_reduce";
    case StepKind::kCopy: return "copy";
    case StepKind::kReduce: return "reduce";
    case StepKind::kFinish: return "finish";
    case StepKind::kFillIdentity: return "fill_identity";
    case StepKind::kSignal: return "signal";
    case StepKind::kWait: return "wait";
  }
  return "unknown";
}

std::string_view to_string(Buffer buffer) {
  switch (buffer) {
    case Buffer::kInput: return "input";
    case Buffer::kOutput: return "output";
    case Buffer::kScratch: return "scratch";
    case Buffer::kToken: return "token";
  }
  return "unknown";
}

Slice input_of(const Shape& shape) {
  switch (shape.alias()) {
    case Alias::kNone:
    case Alias::kOutputInInput: return {Buffer::kInput, 0, shape.input_count()};
    case Alias::kSame: return {Buffer::kOutput, 0, shape.output_count()};
    case Alias::kInputInOutput: return Slice{Buffer::kOutput, 0, shape.output_count()}.sub(shape.output_slots().piece(shape.rank));
  }
  return {};
}

Slice output_of(const Shape& shape) {
  if (shape.alias() != Alias::kOutputInInput) return {Buffer::kOutput, 0, shape.output_count()};
  return Slice{Buffer::kInput, 0, shape.input_count()}.sub(shape.input_slots().piece(shape.rank));
}

Slice Plan::input() const { return input_of(shape); }
Slice Plan::output() const { return output_of(shape); }

std::uint64_t Plan::extent_of(Buffer buffer) const {
  const Alias alias = shape.alias();
  switch (buffer) {
    case Buffer::kInput: return alias == Alias::kSame || alias == Alias::kInputInOutput ? 0 : shape.input_count();
    case Buffer::kOutput: return alias == Alias::kOutputInInput ? 0 : shape.output_count();
    case Buffer::kScratch: return scratch_count;
    case Buffer::kToken: return token_count;
  }
  return 0;
}

std::size_t Plan::memory() const {
  return sizeof(Plan) + bytes_of(steps) + bytes_of(sources) + bytes_of(dependencies.offsets) + bytes_of(dependencies.numbers) +
         bytes_of(dependents.offsets) + bytes_of(dependents.numbers) + bytes_of(shape.send_counts) + bytes_of(shape.receive_counts);
}

std::string Plan::to_text() const {
  std::string text = fmt::format("{} by {}\n", shape.to_text(), algorithm);
  for (std::size_t i = 0; i < steps.size(); ++i) text += line_of(*this, i) + "\n";
  return text;
}

StepLists reversed(const StepLists& lists) {
  StepLists turned;
  turned.offsets.assign(lists.offsets.size(), 0);
  turned.numbers.resize(lists.numbers.size());
  for (const std::uint32_t number : lists.numbers) ++turned.offsets[number + 1];
  for (std::size_t i = 1; i < turned.offsets.size(); ++i) turned.offsets[i] += turned.offsets[i - 1];
  std::vector<std::uint32_t> next(turned.offsets.begin(), turned.offsets.end() - 1);
  for (std::size_t step = 0; step + 1 < lists.offsets.size(); ++step)
    for (const std::uint32_t number : lists.of(step)) turned.numbers[next[number]++] = static_cast<std::uint32_t>(step);
  return turned;
}

}  // namespace nexar::plan
