#include "nexar/gradient_bucketer.h"

#include <algorithm>
#include <utility>

namespace nexar {

GradientBucketer::GradientBucketer(Group group, DataType type, Reduction op, BucketOptions options)
    : GradientBucketer(DeviceGroup(std::move(group)), type, std::move(op), options) {}

GradientBucketer::GradientBucketer(DeviceGroup group, DataType type, Reduction op, BucketOptions options)
    : group_(std::move(group)), type_(type), op_(std::move(op)), options_(options) {}

Result<void> GradientBucketer::add(void* data, std::uint64_t count) {
  if (!device_bucket_.empty()) flush();
  bucket_.push_back({data, count});
  return added(count > options_.bucket_bytes ? options_.bucket_bytes : count * size_of(type_));
}

Result<void> GradientBucketer::add(const Buffer<Device>& tensor) {
  if (!bucket_.empty()) flush();
  device_bucket_.push_back(tensor);
  return added(std::min<std::uint64_t>(tensor.bytes(), options_.bucket_bytes));
}

// Also after an error buckets are reduced: the other ranks may not know of it yet, and the order of calls is theirs too.
Result<void> GradientBucketer::added(std::uint64_t bytes) {
  bucket_bytes_ += bytes;
  if (bucket_bytes_ >= options_.bucket_bytes) flush();
  if (error_) return *error_;
  return {};
}

Result<void> GradientBucketer::finish() {
  if (!bucket_.empty() || !device_bucket_.empty()) flush();
  while (!in_flight_.empty()) wait_for_oldest();
  if (const std::optional<Error> error = std::exchange(error_, std::nullopt)) return *error;
  return {};
}

void GradientBucketer::flush() {
  if (in_flight_.size() >= std::max<std::size_t>(options_.in_flight_max, 1)) wait_for_oldest();
  in_flight_.push_back(device_bucket_.empty() ? group_.group().start_all_reduce_bucketed(bucket_, type_, op_)
                                              : group_.start_all_reduce_bucketed(device_bucket_, type_, op_));
  bucket_.clear();
  device_bucket_.clear();
  bucket_bytes_ = 0;
}

void GradientBucketer::wait_for_oldest() {
  Result<Status> result = in_flight_.front().wait();
  in_flight_.pop_front();
  if (!result && !error_) error_ = std::move(result).error();
}

}  // namespace nexar
