#include "bench/group_call.h"

#include <utility>

namespace nexar::bench {
namespace {

bool gives_strings(OperationId operation) {
  return operation == OperationId::kBroadcastBytes || operation == OperationId::kAllGatherBytes || operation == OperationId::kGatherBytes;
}

void leave_alone(void*, std::uint64_t, std::uint64_t) {}

}  // namespace

GroupCall::GroupCall(Group group, const Call& call, Memory& memory, CallOptions options)
    : group_(std::move(group)),
      call_(call),
      memory_(memory),
      options_(std::move(options)),
      own_(call.counts[static_cast<std::size_t>(group_.rank())]),
      has_strings_(gives_strings(call.operation)),
      send_counts_(call.send_counts(group_.rank())),
      recv_counts_(call.recv_counts(group_.rank())) {}

std::span<const std::uint64_t> GroupCall::counts_at_root() const {
  return group_.rank() == call_.root ? std::span<const std::uint64_t>(call_.counts) : std::span<const std::uint64_t>();
}

void GroupCall::keep(const std::vector<std::vector<std::byte>>& strings) {
  result_.clear();
  for (const std::vector<std::byte>& one : strings) result_.insert(result_.end(), one.begin(), one.end());
}

Result<void> GroupCall::once() {
  const std::byte* in = memory_.input();
  std::byte* out = memory_.output();
  const std::uint64_t count = call_.count();
  const DataType type = call_.type;
  const Rank root = call_.root;
  switch (call_.operation) {
    case OperationId::kAllReduce: return group_.all_reduce(in, out, count, type, call_.op, options_);
    case OperationId::kAllReduceRsAg: return group_.all_reduce_rs_ag(out, count, type, call_.op, leave_alone, options_);
    case OperationId::kReduceScatter: return group_.reduce_scatter(in, out, count, type, call_.op, options_);
    case OperationId::kReduceScatterV: return group_.reduce_scatter_v(in, out, call_.counts, type, call_.op, options_);
    case OperationId::kAllGather: return group_.all_gather(in, out, count, type, options_);
    case OperationId::kAllGatherV: return group_.all_gather_v(in, out, call_.counts, type, options_);
    case OperationId::kBroadcast: return group_.broadcast(out, count, type, root, options_);
    case OperationId::kReduce: return group_.reduce(in, out, count, type, call_.op, root, options_);
    case OperationId::kGather: return group_.gather(in, out, count, type, root, options_);
    case OperationId::kGatherV: return group_.gather_v(in, own_, out, counts_at_root(), type, root, options_);
    case OperationId::kScatter: return group_.scatter(in, out, count, type, root, options_);
    case OperationId::kScatterV: return group_.scatter_v(in, counts_at_root(), out, own_, type, root, options_);
    case OperationId::kAllToAll: return group_.all_to_all(in, out, count, type, options_);
    case OperationId::kAllToAllV: return group_.all_to_all_v(in, send_counts_, out, recv_counts_, type, options_);
    case OperationId::kScan: return group_.scan(in, out, count, type, call_.op, options_);
    case OperationId::kExclusiveScan: return group_.exclusive_scan(in, out, count, type, call_.op, options_);
    default: break;
  }
  if (!has_strings_) return group_.barrier(options_);
  if (call_.operation == OperationId::kBroadcastBytes) {
    Result<std::vector<std::byte>> got = group_.broadcast_bytes(bytes(), root, options_);
    if (!got) return got.error();
    result_ = *std::move(got);
    return {};
  }
  const Result<std::vector<std::vector<std::byte>>> got = call_.operation == OperationId::kAllGatherBytes
                                                              ? group_.all_gather_bytes(bytes(), options_)
                                                              : group_.gather_bytes(bytes(), root, options_);
  if (!got) return got.error();
  keep(*got);
  return {};
}

Operation GroupCall::start() const {
  const std::byte* in = memory_.input();
  std::byte* out = memory_.output();
  const std::uint64_t count = call_.count();
  const DataType type = call_.type;
  const Rank root = call_.root;
  switch (call_.operation) {
    case OperationId::kAllReduce: return group_.start_all_reduce(in, out, count, type, call_.op, options_);
    case OperationId::kAllReduceRsAg: return group_.start_all_reduce_rs_ag(out, count, type, call_.op, leave_alone, options_);
    case OperationId::kReduceScatter: return group_.start_reduce_scatter(in, out, count, type, call_.op, options_);
    case OperationId::kReduceScatterV: return group_.start_reduce_scatter_v(in, out, call_.counts, type, call_.op, options_);
    case OperationId::kAllGather: return group_.start_all_gather(in, out, count, type, options_);
    case OperationId::kAllGatherV: return group_.start_all_gather_v(in, out, call_.counts, type, options_);
    case OperationId::kBroadcast: return group_.start_broadcast(out, count, type, root, options_);
    case OperationId::kReduce: return group_.start_reduce(in, out, count, type, call_.op, root, options_);
    case OperationId::kGather: return group_.start_gather(in, out, count, type, root, options_);
    case OperationId::kGatherV: return group_.start_gather_v(in, own_, out, counts_at_root(), type, root, options_);
    case OperationId::kScatter: return group_.start_scatter(in, out, count, type, root, options_);
    case OperationId::kScatterV: return group_.start_scatter_v(in, counts_at_root(), out, own_, type, root, options_);
    case OperationId::kAllToAll: return group_.start_all_to_all(in, out, count, type, options_);
    case OperationId::kAllToAllV: return group_.start_all_to_all_v(in, send_counts_, out, recv_counts_, type, options_);
    case OperationId::kScan: return group_.start_scan(in, out, count, type, call_.op, options_);
    case OperationId::kExclusiveScan: return group_.start_exclusive_scan(in, out, count, type, call_.op, options_);
    case OperationId::kBroadcastBytes: return group_.start_broadcast_bytes(bytes(), root, options_);
    case OperationId::kAllGatherBytes: return group_.start_all_gather_bytes(bytes(), options_);
    case OperationId::kGatherBytes: return group_.start_gather_bytes(bytes(), root, options_);
    default: return group_.start_barrier(options_);
  }
}

void GroupCall::take(Operation& operation) {
  if (call_.operation == OperationId::kBroadcastBytes)
    result_ = operation.take_bytes();
  else if (has_strings_)
    keep(operation.take_strings());
}

std::uint64_t GroupCall::count_wrong() const { return has_strings_ ? memory_.count_wrong(result_) : memory_.count_wrong(); }

}  // namespace nexar::bench
