// Compressed all_reduce: every rank's contribution reaches every rank, and all add them up in rank order.
//
//   a rank's slot     length: u64 | the compressed form | zeros      as long as the longest form
//
// One all_gather moves the slots, so memory is what compressed_all_reduce_bytes() says and the call has one sequence number like every
// other. Where contributions are elements at the same places on every rank (none, random-k),
// an all_reduce of these elements does it.
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "compress/accumulator.h"
#include "compress/feedback.h"
#include "nexar/group.h"
#include "runtime/collective_state.h"
#include "runtime/node_core.h"

namespace nexar {
namespace {

using runtime::CollectiveState;
using runtime::NodeCore;

constexpr std::size_t kHeaderBytes = 8;

// What one call needs until it ends.
struct Call {
  base::ByteSpan tensor;
  base::ByteSpan residual;
  DataType type;
  ReduceOp op;
  std::shared_ptr<const Compressor> compressor;
  CompressionContext context;
  std::uint64_t ranks;
  std::size_t slot_bytes = 0;
  std::unique_ptr<std::byte[]> memory;

  base::ByteSpan slot(std::uint64_t rank) const { return {memory.get() + rank * slot_bytes, slot_bytes}; }

  // What the others are told: the call itself, not what moves it.
  void describe(wire::CallDescriptor& as) const {
    as.operation = OperationId::kAllReduceCompressed;
    as.count = tensor.size() / size_of(type);
    as.dtype = type;
    as.op = op;
    as.digest ^= base::hash64(compressor->name());
  }

  Result<std::size_t> compress_into(base::ByteSpan out) const {
    return compress::compress_with_feedback(*compressor, tensor, residual, type, context, out);
  }
};

// Whose call it is.
struct Handle {
  const Group& group_handle;
  const std::shared_ptr<NodeCore>& core;
  runtime::GroupRecord& group;
  const CallOptions& options;

  Operation decline(const Error& error) const { return group_handle.start_decline(error, "all_reduce_compressed"); }
};

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

Result<void> check(const Call& call, const Config& config, const void* buffer, std::uint64_t count) {
  if (call.compressor == nullptr) return invalid("all_reduce_compressed: there is no compressor");
  if (auto checked = check_compressible(*call.compressor, call.type, call.op); !checked) return checked;
  if (count > std::numeric_limits<std::size_t>::max() / size_of(call.type))
    return invalid(fmt::format("all_reduce_compressed: {} elements of {} do not fit in memory", count, to_string(call.type)));
  if (buffer == nullptr && count > 0) return invalid(fmt::format("all_reduce_compressed: the buffer is null and {} elements long", count));
  Result<std::uint64_t> bytes = compressed_all_reduce_bytes(call.ranks, count, call.type, *call.compressor);
  if (!bytes) return std::move(bytes).error();
  const std::uint64_t limit = config.compressed_all_reduce_max_bytes;
  if (limit != 0 && *bytes > limit)
    return Error(ErrorCode::kOverloaded, fmt::format("all_reduce_compressed of {} elements by {} on {} ranks may need {} bytes, and "
                                                     "compressed_all_reduce_max_bytes is {}",
                                                     count, call.compressor->name(), call.ranks, *bytes, limit));
  return {};
}

// Nothing when the system has no memory to give.
Result<void> allocate(Call& call, std::uint64_t bytes) {
  call.memory.reset(new (std::nothrow) std::byte[bytes]);
  if (call.memory != nullptr) return {};
  return Error(ErrorCode::kOverloaded, fmt::format("all_reduce_compressed: no memory for {} bytes of contributions", bytes));
}

// The sum of what all ranks sent, in the caller's buffer.
Result<void> add_up(const Call& call) {
  Result<compress::Accumulator> sum = compress::Accumulator::make(*call.compressor, call.tensor, call.type, call.op, call.context);
  if (!sum) return sum.error();
  for (std::uint64_t rank = 0; rank < call.ranks; ++rank) {
    const base::ByteView slot = call.slot(rank);
    const std::uint64_t length = base::load_le<std::uint64_t>(slot.data());
    if (length > slot.size() - kHeaderBytes)
      return Error(ErrorCode::kMismatch, fmt::format("rank {} sent {} bytes by {}, which makes at most {}", rank, length,
                                                     call.compressor->name(), slot.size() - kHeaderBytes))
          .with_rank(static_cast<Rank>(rank));
    if (auto added = sum->add(slot.subspan(kHeaderBytes, static_cast<std::size_t>(length))); !added) return std::move(added).error();
  }
  return sum->finish();
}

Operation start_gathered(const Handle& handle, const std::shared_ptr<Call>& call) {
  const std::uint64_t count = call->tensor.size() / size_of(call->type);
  call->slot_bytes = static_cast<std::size_t>(call->compressor->bytes_max(count, call->type)) + kHeaderBytes;
  if (auto allocated = allocate(*call, call->ranks * call->slot_bytes); !allocated) return handle.decline(allocated.error());
  const base::ByteSpan own = call->slot(static_cast<std::uint64_t>(handle.group.rank));
  Result<std::size_t> length = call->compress_into(own.subspan(kHeaderBytes));
  if (!length) return handle.decline(length.error());
  base::store_le<std::uint64_t>(own.data(), *length);
  std::memset(own.data() + kHeaderBytes + *length, 0, own.size() - kHeaderBytes - *length);
  std::vector<Operation> parts;
  parts.push_back(
      runtime::start_collective(handle.core, handle.group, OperationId::kAllGather, handle.options, [&](CollectiveState& state) {
        state.elements(call->slot_bytes, DataType::kU8).buffers(own.data(), call->memory.get());
        call->describe(state.call().descriptor);
      }));
  return NodeCore::compound(handle.core, std::move(parts), [call] { return add_up(*call); });
}

// Where contributions are elements: their sum is compressed like any of them.
Operation start_reduced(const Handle& handle, const std::shared_ptr<Call>& call) {
  const std::uint64_t count = call->tensor.size() / size_of(call->type);
  if (auto allocated = allocate(*call, call->compressor->bytes_max(count, call->type)); !allocated)
    return handle.decline(allocated.error());
  Result<std::size_t> length =
      call->compress_into({call->memory.get(), static_cast<std::size_t>(call->compressor->bytes_max(count, call->type))});
  if (!length) return handle.decline(length.error());
  std::vector<Operation> parts;
  parts.push_back(
      runtime::start_collective(handle.core, handle.group, OperationId::kAllReduce, handle.options, [&](CollectiveState& state) {
        state.elements(*length / size_of(call->type), call->type).reduction(call->op).buffers(call->memory.get(), call->memory.get());
        call->describe(state.call().descriptor);
      }));
  return NodeCore::compound(handle.core, std::move(parts), [call, bytes = *length] {
    return call->compressor->decompress({call->memory.get(), bytes}, call->type, call->context, call->tensor);
  });
}

}  // namespace

Operation Group::start_all_reduce_compressed(void* buffer, std::uint64_t count, DataType type, ReduceOp op,
                                             const std::shared_ptr<const Compressor>& compressor, void* residual,
                                             const CallOptions& options) const {
  const Handle handle{*this, core_, *record_, options};
  auto call = std::make_shared<Call>();
  call->type = type;
  call->op = op;
  call->compressor = compressor;
  call->context = {.group = id(), .sequence = core_->next_sequence(id())};
  call->ranks = static_cast<std::uint64_t>(size());
  if (auto checked = check(*call, config(), buffer, count); !checked) return handle.decline(checked.error());
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(type);
  call->tensor = {static_cast<std::byte*>(buffer), bytes};
  if (residual != nullptr) call->residual = {static_cast<std::byte*>(residual), bytes};
  return compressor->sends_elements() ? start_reduced(handle, call) : start_gathered(handle, call);
}

Result<void> Group::all_reduce_compressed(void* buffer, std::uint64_t count, DataType type, ReduceOp op,
                                          const std::shared_ptr<const Compressor>& compressor, void* residual,
                                          const CallOptions& options) const {
  Operation operation = start_all_reduce_compressed(buffer, count, type, op, compressor, residual, options);
  Result<Status> result = operation.wait();
  if (!result) return std::move(result).error();
  return {};
}

}  // namespace nexar
