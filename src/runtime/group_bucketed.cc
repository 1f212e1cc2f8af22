// Many tensors, reduced in few operations.
//
//   tensors   | a | b | c |     d, 1 MiB or more     | e | f |      in list order
//   runs      |  run 0    |          run 1           | run 2 |
//
// Small neighbours in the list travel as one run. Ranks that share memory gather a run where they publish it and scatter what they take;
// otherwise it is gathered into memory of the pool and scattered from there, unless it lies in one piece. Where runs begin follows from the
// counts alone, so that all ranks have the same ones.
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "nexar/buffer_pool.h"
#include "nexar/group.h"
#include "runtime/node_core.h"
#include "runtime/plain_call.h"

namespace nexar {
namespace {

using collective::direct::Piece;
using runtime::NodeCore;

constexpr std::uint64_t kAloneBytes = 1 << 20;  // from here on copying costs more than an operation
constexpr std::uint64_t kRunBytes = 16 << 20;   // enough to hide an operation's latency, and a bound on a run's memory
constexpr std::size_t kRunsInFlight = 4;        // of a blocking call

struct Run {
  std::span<const Piece> pieces{};  // tensors that lie one after the other are one
  std::uint64_t count = 0;
  std::uint64_t digest = 0;  // of what ranks agree on beside the count: where one tensor ends and the next begins

  bool lies_in_one_piece() const { return pieces.size() < 2; }
  void* one_piece() const { return pieces.empty() ? nullptr : pieces.front().data; }
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

  // Then runs need not lie in one piece.
  bool goes_by_memory() const { return group.direct != nullptr && options.algorithm.empty(); }

  Operation decline(const Error& error) const { return handle.start_decline(error, "all_reduce_bucketed"); }
  Result<void> decline_and_wait(const Error& error) const {
    if (Result<Status> declined = decline(error).wait(); !declined) return std::move(declined).error();
    return {};
  }
};

// One bucketed call: over the run's pieces, or over `memory`.
runtime::PlainCall call_over(const Bucket& bucket, const Run& run, void* memory) {
  return {.operation = OperationId::kAllReduceBucketed,
          .send = memory,
          .recv = memory,
          .count = run.count,
          .type = bucket.type,
          .op = &bucket.op,
          .digest = run.digest,
          .pieces = memory == nullptr ? run.pieces : std::span<const Piece>()};
}

// A run by way of memory of the pool, which it holds until it ends.
struct Gathered {
  BufferPool::Lease memory;
  std::vector<Piece> pieces;
  std::uint64_t count;
  std::size_t element;

  template <typename Copy>
  void for_each(Copy copy) const {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::uint64_t end = i + 1 < pieces.size() ? pieces[i + 1].first : count;
      copy(pieces[i].data, memory.data() + pieces[i].first * element, (end - pieces[i].first) * element);
    }
  }
  void scatter() const {
    for_each([](std::byte* tensor, std::byte* there, std::size_t bytes) { std::memcpy(tensor, there, bytes); });
  }
};

Result<Gathered> gather(const Bucket& bucket, const Run& run) {
  const std::size_t element = size_of(bucket.type);
  Result<BufferPool::Lease> memory = bucket.core->pool()->take(static_cast<std::size_t>(run.count * element));
  if (!memory) return std::move(memory).error();
  Gathered gathered{*std::move(memory), {run.pieces.begin(), run.pieces.end()}, run.count, element};
  gathered.for_each([](std::byte* tensor, std::byte* there, std::size_t bytes) { std::memcpy(there, tensor, bytes); });
  return gathered;
}

Operation start_over(const Bucket& bucket, const Run& run, void* memory) {
  return runtime::start_plain(bucket.core, bucket.group, bucket.options, call_over(bucket, run, memory));
}

Operation start_run(const Bucket& bucket, const Run& run) {
  if (run.lies_in_one_piece()) return start_over(bucket, run, run.one_piece());
  if (bucket.goes_by_memory()) return start_over(bucket, run, nullptr);
  Result<Gathered> made = gather(bucket, run);
  if (!made) return bucket.decline(made.error());
  auto gathered = std::make_shared<const Gathered>(*std::move(made));
  std::vector<Operation> parts;
  parts.push_back(start_over(bucket, run, gathered->memory.data()));
  return NodeCore::compound(bucket.core, std::move(parts), [gathered]() -> Result<void> {
    gathered->scatter();
    return {};
  });
}

// One that waits: the calling thread does what an engine would have to be woken for.
Result<void> run_alone(const Bucket& bucket, const Run& run) {
  const auto reduce = [&](void* memory) {
    return runtime::run_plain(*bucket.core, bucket.group, bucket.options, call_over(bucket, run, memory));
  };
  if (run.lies_in_one_piece()) return reduce(run.one_piece());
  if (bucket.goes_by_memory()) return reduce(nullptr);
  Result<Gathered> gathered = gather(bucket, run);
  if (!gathered) return bucket.decline_and_wait(gathered.error());
  if (Result<void> reduced = reduce(gathered->memory.data()); !reduced) return reduced;
  gathered->scatter();
  return {};
}

// Through shared memory one run after the other is as fast as any number in flight.
Result<void> run_in_turn(const Bucket& bucket, Runs runs) {
  for (const Run& run : runs.list) {
    Result<void> result = runs.error ? bucket.decline_and_wait(*runs.error) : run_alone(bucket, run);
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
  for (const Run& run : runs->list) parts.push_back(runs->error ? bucket.decline(*runs->error) : start_run(bucket, run));
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
    operations.push_back(runs.error ? bucket.decline(*runs.error) : start_run(bucket, run));
  }
  while (waited < operations.size()) wait_for_next();
  if (runs.error) return *runs.error;
  return {};
}

}  // namespace nexar
