// Many tensors, reduced in few operations.
//
//   tensors   | a | b | c |     d, 1 MiB or more     | e | f |      in list order
//   runs      |  run 0    |          run 1           | run 2 |
//
// Small neighbours in the list travel as one run, which is gathered into memory of the pool and scattered back; a run that lies in one
// piece is reduced where it is. Where runs begin follows from the counts alone, so that all ranks have the same ones. Among ranks that
// share memory runs are so small that what was gathered is still in the cache when it is reduced, and when it is scattered.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "nexar/buffer_pool.h"
#include "nexar/group.h"
#include "runtime/node_core.h"
#include "runtime/plain_call.h"

namespace nexar {
namespace {

using runtime::NodeCore;

constexpr std::size_t kRunsInFlight = 4;  // of a blocking call

struct Limits {
  std::uint64_t alone_bytes;  // from here on copying costs more than an operation
  std::uint64_t run_bytes;    // enough to hide an operation's latency, and a bound on a run's memory
};
constexpr Limits kByMessages{.alone_bytes = 1 << 20, .run_bytes = 16 << 20};
constexpr Limits kByMemory{.alone_bytes = 256 << 10, .run_bytes = 512 << 10};

Limits limits_of(const runtime::GroupRecord& group) { return group.direct != nullptr ? kByMemory : kByMessages; }

struct Run {
  std::vector<TensorView> tensors;  // none of them empty
  std::uint64_t count = 0;

  bool lies_in_one_piece(std::size_t element) const {
    for (std::size_t i = 1; i < tensors.size(); ++i)
      if (static_cast<std::byte*>(tensors[i - 1].data) + tensors[i - 1].count * element != tensors[i].data) return false;
    return true;
  }
};

struct Runs {
  std::vector<Run> list;         // at least one
  std::optional<Error> error{};  // of the arguments
};

Runs cut(std::span<const TensorView> tensors, DataType type, const Limits& limits) {
  Runs runs;
  const std::uint64_t count_max = std::numeric_limits<std::uint64_t>::max() / size_of(type);
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
    const bool alone = tensor.count >= limits.alone_bytes / size_of(type);
    if (closed || alone || runs.list.back().count + tensor.count > limits.run_bytes / size_of(type)) runs.list.emplace_back();
    runs.list.back().tensors.push_back(tensor);
    runs.list.back().count += tensor.count;
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

  Operation decline(const Error& error) const { return handle.start_decline(error, "all_reduce_bucketed"); }
  Result<void> decline_and_wait(const Error& error) const {
    if (Result<Status> declined = decline(error).wait(); !declined) return std::move(declined).error();
    return {};
  }
};

// A run by way of memory of the pool, which it holds until it ends.
struct Gathered {
  BufferPool::Lease memory;
  std::vector<TensorView> tensors;
  std::size_t element;

  void gather() {
    std::byte* at = memory.data();
    for (const TensorView& tensor : tensors)
      at = static_cast<std::byte*>(std::memcpy(at, tensor.data, tensor.count * element)) + tensor.count * element;
  }
  void scatter() const {
    const std::byte* at = memory.data();
    for (const TensorView& tensor : tensors) {
      std::memcpy(tensor.data, at, tensor.count * element);
      at += tensor.count * element;
    }
  }
};

// What ranks agree on beside the number of elements: where one tensor ends and the next begins.
std::uint64_t digest_of(const Run& run) {
  std::uint64_t digest = 0;
  for (const TensorView& tensor : run.tensors) {
    const std::uint64_t facts[] = {digest, tensor.count};
    digest = base::hash64({reinterpret_cast<const char*>(facts), sizeof facts});
  }
  return digest;
}

// One bucketed call over memory in one piece.
runtime::PlainCall call_over(const Bucket& bucket, const Run& run, void* memory) {
  return {.operation = OperationId::kAllReduceBucketed,
          .send = memory,
          .recv = memory,
          .count = run.count,
          .type = bucket.type,
          .op = &bucket.op,
          .digest = digest_of(run)};
}

Operation start_reduction(const Bucket& bucket, const Run& run, void* memory) {
  return runtime::start_plain(bucket.core, bucket.group, bucket.options, call_over(bucket, run, memory));
}

Result<void> reduce(const Bucket& bucket, const Run& run, void* memory) {
  return runtime::run_plain(*bucket.core, bucket.group, bucket.options, call_over(bucket, run, memory));
}

void* one_piece(const Run& run) { return run.tensors.empty() ? nullptr : run.tensors.front().data; }

Operation start_run(const Bucket& bucket, const Run& run) {
  const std::size_t element = size_of(bucket.type);
  if (run.lies_in_one_piece(element)) return start_reduction(bucket, run, one_piece(run));
  Result<BufferPool::Lease> memory = bucket.core->pool()->take(static_cast<std::size_t>(run.count * element));
  if (!memory) return bucket.decline(memory.error());
  auto gathered = std::make_shared<Gathered>(*std::move(memory), run.tensors, element);
  gathered->gather();
  std::vector<Operation> parts;
  parts.push_back(start_reduction(bucket, run, gathered->memory.data()));
  return NodeCore::compound(bucket.core, std::move(parts), [gathered]() -> Result<void> {
    gathered->scatter();
    return {};
  });
}

// A run through shared memory: one after the other is as fast as any number in flight there.
Result<void> run_alone(const Bucket& bucket, const Run& run) {
  const std::size_t element = size_of(bucket.type);
  if (run.lies_in_one_piece(element)) return reduce(bucket, run, one_piece(run));
  Result<BufferPool::Lease> memory = bucket.core->pool()->take(static_cast<std::size_t>(run.count * element));
  if (!memory) return bucket.decline_and_wait(memory.error());
  Gathered gathered{*std::move(memory), run.tensors, element};
  gathered.gather();
  if (Result<void> reduced = reduce(bucket, run, gathered.memory.data()); !reduced) return reduced;
  gathered.scatter();
  return {};
}

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
  const Runs runs = cut(tensors, type, limits_of(*record_));
  const Bucket bucket{*this, core_, *record_, type, op, options};
  std::vector<Operation> parts;
  for (const Run& run : runs.list) parts.push_back(runs.error ? bucket.decline(*runs.error) : start_run(bucket, run));
  if (parts.size() == 1) return std::move(parts.front());
  return NodeCore::compound(core_, std::move(parts), nullptr);
}

// Every run takes its place in the order of calls, also after an error: ranks that have not seen it yet go on to the next run.
Result<void> Group::all_reduce_bucketed(std::span<const TensorView> tensors, DataType type, const Reduction& op,
                                        const CallOptions& options) const {
  Runs runs = cut(tensors, type, limits_of(*record_));
  const Bucket bucket{*this, core_, *record_, type, op, options};
  if (record_->direct != nullptr) return run_in_turn(bucket, std::move(runs));
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
