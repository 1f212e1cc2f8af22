// Collects gradients into buckets and reduces them while more are added.
//
//   GradientBucketer bucketer(group, DataType::kF32, ReduceOp::kAvg);
//   for (Parameter& p : reversed(parameters)) bucketer.add(backward(p), p.count);   // full buckets travel meanwhile
//   bucketer.finish();                                                              // all of them are reduced now
//
// Gradients may be in the memory of any device: bucketer.add(Buffer<Device>(gpu, at, bytes)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "nexar/buffer.h"
#include "nexar/data_type.h"
#include "nexar/device_group.h"
#include "nexar/export.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar {

struct BucketOptions {
  std::uint64_t bucket_bytes = 25ull << 20;  // a bucket is reduced when it holds so many; the same on every rank
  std::size_t in_flight_max = 4;             // buckets; add() waits for the oldest beyond that
};

// Every rank adds tensors of the same counts in the same order, and of the same kind of memory: plain, or a device's. Their memory belongs
// to the bucketer until finish(). Dropping it cancels what has not ended. Thread: one at a time; the group's other collectives may be
// called between its calls, in one order on all ranks.
class NEXAR_API GradientBucketer {
 public:
  GradientBucketer(Group group, DataType type, Reduction op, BucketOptions options = {});
  GradientBucketer(DeviceGroup group, DataType type, Reduction op, BucketOptions options = {});

  // Takes `count` elements at `data` to be reduced in place. An error is that of a bucket that was waited for; finish() says it again.
  Result<void> add(void* data, std::uint64_t count);

  // The same of memory of a device: whole elements, those of a bucket all of one adapter and stream. Tensors of either kind do not share a
  // bucket: each time it changes, the bucket so far is reduced.
  Result<void> add(const Buffer<Device>& tensor);

  // Reduces what is left and waits for everything. The first error of any bucket, if there is one. Afterwards the bucketer is as new.
  Result<void> finish();

  std::size_t in_flight() const { return in_flight_.size(); }

 private:
  Result<void> added(std::uint64_t bytes);
  void flush();
  void wait_for_oldest();

  DeviceGroup group_;
  DataType type_;
  Reduction op_;
  BucketOptions options_;
  std::vector<TensorView> bucket_;             // either this
  std::vector<Buffer<Device>> device_bucket_;  // or this has something
  std::uint64_t bucket_bytes_ = 0;
  std::deque<Operation> in_flight_;
  std::optional<Error> error_;
};

}  // namespace nexar
