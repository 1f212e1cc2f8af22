// Many tensors, reduced in few operations.
//
//   tensors   | a | b | c |     d, 1 MiB or more     | e | f |      in list order
//   runs      |  run 0    |          run 1           | run 2 |
//
// Small neighbours in the list travel as one run: an all_reduce in place of a buffer in pieces, which are the tensors themselves. Where
// runs begin follows from the counts alone, so that all ranks have the same ones.
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "nexar/group.h"
#include "runtime/node_core.h"
#include "runtime/plain_call.h"

namespace nexar {
namespace {

using collective::Piece;
using runtime::NodeCore;

constexpr std::uint64_t kAloneBytes = 1 << 20;  // from here on an operation costs nothing beside it
constexpr std::uint64_t kRunBytes = 16 << 20;   // enough to hide an operation's latency, and a bound on a run's memory
constexpr std::size_t kRunsInFlight = 4;        // of a blocking call

struct Run {
  std::span<const Piece> pieces{};  // tensors that lie one after the other are one
  std::uint64_t count = 0;
  std::uint64_t digest = 0;  // of what ranks agree on beside the count: where one tensor ends and the next begins

  bool lies_in_one_piece() const { return pieces.size() < 2; }
  void* one_piece() const { return pieces.size() == 1 ? pieces.front().data : nullptr; }
};

struct Runs {
  std::vector<Run> list;         // at least one
  std::vector<Piece> pieces;     // of all of them
  std::optional<Error> error{};  // of the arguments
};

void append(const TensorView& tensor, std::size_t element, std::vector<Piece>& pieces, Run& run) {
  const auto at = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data); };
  if (run.count == 0 || at(pieces.back().data) + (run.count - pieces.back().first) * element != at(tensor.data)) {
    pieces.push_back({static_cast<std::byte*>(tensor.data), run.count});
    run.pieces = {&pieces.back() - run.pieces.size(), run.pieces.size() + 1};
  }
  run.count += tensor.count;
  run.digest = (run.digest ^ tensor.count) * 0x9e3779b97f4a7c15u;
  run.digest ^= run.digest >> 32;
}

Runs cut(std::span<const TensorView> tensors, DataType type) {
  Runs runs;
  runs.pieces.reserve(tensors.size());
  const std::size_t element = size_of(type);
  const std::uint64_t count_max = std::numeric_limits<std::uint64_t>::max() / element;
  bool closed = true;
  for (const TensorView& tensor : tensors) {
    if (tensor.count == 0) continue;
    if (tensor.count > count_max && !runs.error)
      runs.error = Error(
          ErrorCode::kInvalidArgument,
          fmt::format("all_reduce_bucketed: {} elements of {} are more bytes than there are numbers for", tensor.count, to_string(type)));
    if (tensor.data == nullptr && !runs.error)
      runs.error =
          Error(ErrorCode::kInvalidArgument, fmt::format("all_reduce_bucketed: a tensor is null and {} elements long", tensor.count));
    const bool alone = tensor.count >= kAloneBytes / element;
    if (closed || alone || runs.list.back().count + tensor.count > kRunBytes / element) runs.list.emplace_back();
    append(tensor, element, runs.pieces, runs.list.back());
    closed = alone;
  }
  if (runs.list.empty()) runs.list.emplace_back();
  return runs;
}

// What all runs of a call share.
struct Bucket {
  const Group& handle;
  const std::shared_ptr<NodeCore>& core;
  runtime::GroupRecord& group;
  DataType type;
  const Reduction& op;
  const CallOptions& options;

  bool goes_by_memory() const { return group.direct != nullptr && options.algorithm.empty(); }

  runtime::PlainCall call(const Run& run) const {
    return {.operation = OperationId::kAllReduceBucketed,
            .send = run.one_piece(),
            .recv = run.one_piece(),
            .count = run.count,
            .type = type,
            .op = &op,
            .digest = run.digest,
            .pieces = run.lies_in_one_piece() ? std::span<const Piece>() : run.pieces};
  }

  Operation start(const Run& run) const { return runtime::start_plain(core, group, options, call(run)); }

  // One that waits: the calling thread does what an engine would have to be woken for.
  Result<void> reduce(const Run& run) const { return runtime::run_plain(*core, group, options, call(run)); }

  Operation decline(const Error& error) const { return handle.start_decline(error, "all_reduce_bucketed"); }
  Result<void> decline_and_wait(const Error& error) const {
    if (Result<Status> declined = decline(error).wait(); !declined) return std::move(declined).error();
    return {};
  }
};

// Through shared memory one run after the other is as fast as any number in flight.
Result<void> run_in_turn(const Bucket& bucket, Runs runs) {
  for (const Run& run : runs.list) {
    Result<void> result = runs.error ? bucket.decline_and_wait(*runs.error) : bucket.reduce(run);
    if (!result && !runs.error) runs.error = std::move(result).error();
  }
  if (runs.error) return *runs.error;
  return {};
}

}  // namespace

Operation Group::start_all_reduce_bucketed(std::span<const TensorView> tensors, DataType type, const Reduction& op,
                                           const CallOptions& options) const {
  auto runs = std::make_shared<const Runs>(cut(tensors, type));
  const Bucket bucket{*this, core_, *record_, type, op, options};
  std::vector<Operation> parts;
  for (const Run& run : runs->list) parts.push_back(runs->error ? bucket.decline(*runs->error) : bucket.start(run));
  // Which keeps the pieces until the end.
  return NodeCore::compound(core_, std::move(parts), [runs]() -> Result<void> { return {}; });
}

// Every run takes its place in the order of calls, also after an error: ranks that have not seen it yet go on to the next run.
Result<void> Group::all_reduce_bucketed(std::span<const TensorView> tensors, DataType type, const Reduction& op,
                                        const CallOptions& options) const {
  Runs runs = cut(tensors, type);
  const Bucket bucket{*this, core_, *record_, type, op, options};
  if (bucket.goes_by_memory() || runs.list.size() == 1) return run_in_turn(bucket, std::move(runs));
  std::vector<Operation> operations;
  std::size_t waited = 0;
  const auto wait_for_next = [&] {
    Result<Status> result = operations[waited++].wait();
    if (result || runs.error) return;
    runs.error = std::move(result).error();
    for (std::size_t i = waited; i < operations.size(); ++i) operations[i].cancel(*runs.error);
  };
  for (const Run& run : runs.list) {
    if (operations.size() - waited == kRunsInFlight) wait_for_next();
    operations.push_back(runs.error ? bucket.decline(*runs.error) : bucket.start(run));
  }
  while (waited < operations.size()) wait_for_next();
  if (runs.error) return *runs.error;
  return {};
}

}  // namespace nexar
