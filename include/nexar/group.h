// Ranks that exchange messages and run collectives.
//
// Messages match by group, source and tag, in the order of sending. A small one (up to 64 KiB) goes at once, and its send returns when the
// buffer may be used again; a larger one flows when its receive is posted. Messages that nobody reads slow their sender down, in their own
// group and tag; they grow no memory and delay nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nexar/buffer_pool.h"
#include "nexar/compressor.h"
#include "nexar/config.h"
#include "nexar/data_type.h"
#include "nexar/device.h"
#include "nexar/export.h"
#include "nexar/ids.h"
#include "nexar/message.h"
#include "nexar/operation.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar {

class Group;
namespace runtime {
class NodeCore;
class Program;
struct GroupRecord;
Operation start_program(const Group& group, std::shared_ptr<Program> program);
}  // namespace runtime
class Rpc;

// The tag of a receive or probe: one, or any.
class TagFilter {
 public:
  TagFilter(Tag tag) : tag_(tag) {}  // NOLINT: a tag is a filter
  TagFilter(AnyTag) {}               // NOLINT: so is any
  const std::optional<Tag>& tag() const { return tag_; }

 private:
  std::optional<Tag> tag_;
};

// A message in memory of its own.
struct OwnedMessage {
  std::vector<std::byte> bytes;
  Status status;
};

// What a reduction does: an op of ours, or one of the application's own.
//
//   group.all_reduce(gradients, ReduceOp::kSum);
//   group.all_reduce(lengths, longest);  // a UserOp
class Reduction {
 public:
  Reduction(ReduceOp op) : op_(op) {}                                             // NOLINT: an op is a reduction
  Reduction(UserOp op) : user_(std::make_shared<const UserOp>(std::move(op))) {}  // NOLINT: so is this
  ReduceOp op() const { return op_; }                                             // when user_op() is null
  const std::shared_ptr<const UserOp>& user_op() const { return user_; }

 private:
  ReduceOp op_ = ReduceOp::kSum;
  std::shared_ptr<const UserOp> user_;
};

// What may be said of a single collective.
struct CallOptions {
  std::optional<std::chrono::nanoseconds> deadline{};  // of the whole call, transfers included; none: the entry and progress timeouts only
  std::string algorithm{};                             // by name, the same on every rank; empty: the planner's choice
};

// One of the tensors of all_reduce_bucketed: `count` elements at `data`.
struct TensorView {
  void* data = nullptr;
  std::uint64_t count = 0;
};

// Between the two halves of all_reduce_rs_ag: elements [first, first + count) of the buffer are reduced, the rest means nothing. Runs
// inside the runtime: it may change its elements, and may not block or call nexar.
using MiddleFunction = std::function<void(void* elements, std::uint64_t first, std::uint64_t count)>;

// A cheap handle; copies are the same group.
//
// Thread: any, several at once; but collectives of one group are called one after the other, in the same order on every rank, and a second
// one that comes while another is being called is refused.
class NEXAR_API Group {
 public:
  Rank rank() const;
  int size() const;
  std::uint64_t id() const;
  const Config& config() const;                           // of the node
  const std::shared_ptr<BufferPool>& pool() const;        // of the node: host memory for staging and buckets
  const std::shared_ptr<DeviceAdapter>& adapter() const;  // of the node: whose memory buffers of a device are that name none

  // Whether its ranks are all on one host and run collectives through shared memory, but for v-forms, byte strings, all_reduce_rs_ag and
  // calls that name an algorithm. The same on every rank.
  bool shares_memory() const;

  // The rank in the world of a rank of this group, and back: nothing when it is no member.
  std::optional<Rank> world_rank(Rank rank) const;
  std::optional<Rank> rank_of(Rank world_rank) const;

  // Errors: kInvalidArgument for a rank out of range or a null buffer with bytes, before anything is sent; kPeerLost, kTimeout
  // (p2p_timeout), kCancelled.
  Result<void> send(const void* data, std::size_t bytes, Rank to, Tag tag) const;
  Result<void> send(std::span<const ConstRegion> regions, Rank to, Tag tag) const;

  // A receive may be longer than the message. If it is shorter it ends with kMismatch, and the message is consumed.
  Result<Status> recv(void* data, std::size_t bytes, Rank from, TagFilter tag) const;
  Result<Status> recv(std::span<const Region> regions, Rank from, TagFilter tag) const;
  Result<OwnedMessage> recv_owned(Rank from, TagFilter tag) const;

  // Sends and receives at once, in either order.
  Result<Status> exchange(const void* send_data, std::size_t send_bytes, Rank to, Tag send_tag, void* recv_data, std::size_t recv_bytes,
                          Rank from, TagFilter recv_tag) const;

  // The same without waiting. Buffers belong to the operation until it is done; an error in the arguments is what wait() returns.
  Operation start_send(const void* data, std::size_t bytes, Rank to, Tag tag) const;
  Operation start_send(std::span<const ConstRegion> regions, Rank to, Tag tag) const;
  Operation start_recv(void* data, std::size_t bytes, Rank from, TagFilter tag) const;
  Operation start_recv(std::span<const Region> regions, Rank from, TagFilter tag) const;
  Operation start_recv_owned(Rank from, TagFilter tag) const;

  // What such a receive would get now; nothing when no message waits.
  Result<std::optional<Status>> probe(Rank from, TagFilter tag) const;

  // Collectives. Counts are elements. Buffers hold `count` elements, or `count` for each rank where that is said; send and recv may be the
  // same, or one may be this rank's slot of the other, where the comment says so. Blocking forms return when this rank has its result and
  // its buffers are its own; start_ forms return at once. Errors: kInvalidArgument before any data is sent; kMismatch when ranks called
  // different things, naming who called what; kTimeout naming who is missing; kCancelled naming the rank and its error; kPeerLost.

  // The reduction on all ranks, with the same bits. In place when send is recv.
  Result<void> all_reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                          const CallOptions& options = {}) const;
  Operation start_all_reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                             const CallOptions& options = {}) const;

  // The same in two halves, in place: `middle` is called when this rank's chunk is reduced and before it goes to the others.
  Result<void> all_reduce_rs_ag(void* buffer, std::uint64_t count, DataType type, const Reduction& op, MiddleFunction middle,
                                const CallOptions& options = {}) const;
  Operation start_all_reduce_rs_ag(void* buffer, std::uint64_t count, DataType type, const Reduction& op, MiddleFunction middle,
                                   const CallOptions& options = {}) const;

  // Many tensors of one type in place, as if each were reduced alone, in few operations: small ones travel together. Every rank gives the
  // same counts in the same order. The list is read during the call only. Tensors are reduced where they lie. Only, between hosts, what
  // goes in messages of up to 64 KiB and what is shorter than 1 KiB is gathered in memory of the node's pool before it is sent: the
  // blocking form needs up to 64 MiB at a time for that, the start_ form as much as there are such tensors, else kOverloaded.
  Result<void> all_reduce_bucketed(std::span<const TensorView> tensors, DataType type, const Reduction& op,
                                   const CallOptions& options = {}) const;
  Operation start_all_reduce_bucketed(std::span<const TensorView> tensors, DataType type, const Reduction& op,
                                      const CallOptions& options = {}) const;

  // Sum or avg of what `compressor` makes of every rank's buffer, with the same bits on all ranks. `residual` has the shape of the buffer
  // and keeps for the next call what is left out of this one; null: that is lost. docs/compression.md has the arithmetic. kOverloaded,
  // before anything is allocated, when more than config().compressed_all_reduce_max_bytes would be needed.
  Result<void> all_reduce_compressed(void* buffer, std::uint64_t count, DataType type, ReduceOp op,
                                     const std::shared_ptr<const Compressor>& compressor, void* residual,
                                     const CallOptions& options = {}) const;
  Operation start_all_reduce_compressed(void* buffer, std::uint64_t count, DataType type, ReduceOp op,
                                        const std::shared_ptr<const Compressor>& compressor, void* residual,
                                        const CallOptions& options = {}) const;

  // send[count * size] -> recv[count]: rank i gets slice i. recv may be the own slice of send, which is then overwritten whole.
  Result<void> reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                              const CallOptions& options = {}) const;
  Operation start_reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                 const CallOptions& options = {}) const;
  Result<void> reduce_scatter_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type, const Reduction& op,
                                const CallOptions& options = {}) const;
  Operation start_reduce_scatter_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type, const Reduction& op,
                                   const CallOptions& options = {}) const;

  // send[count] -> recv[count * size], in rank order. send may be the own slot of recv.
  Result<void> all_gather(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options = {}) const;
  Operation start_all_gather(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options = {}) const;
  Result<void> all_gather_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type,
                            const CallOptions& options = {}) const;
  Operation start_all_gather_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type,
                               const CallOptions& options = {}) const;

  Result<void> broadcast(void* buffer, std::uint64_t count, DataType type, Rank root, const CallOptions& options = {}) const;
  Operation start_broadcast(void* buffer, std::uint64_t count, DataType type, Rank root, const CallOptions& options = {}) const;

  // Only the root's recv is written; elsewhere it may be null. In place at the root when send is recv.
  Result<void> reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op, Rank root,
                      const CallOptions& options = {}) const;
  Operation start_reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op, Rank root,
                         const CallOptions& options = {}) const;

  // count elements of each rank, count * size at the root: in recv of gather, in send of scatter; that of the others may be null. The
  // root's own part may lie in its slot. In the v-forms the root gives every rank's count and the others give their own.
  Result<void> gather(const void* send, void* recv, std::uint64_t count, DataType type, Rank root, const CallOptions& options = {}) const;
  Operation start_gather(const void* send, void* recv, std::uint64_t count, DataType type, Rank root,
                         const CallOptions& options = {}) const;
  Result<void> gather_v(const void* send, std::uint64_t count, void* recv, std::span<const std::uint64_t> counts, DataType type, Rank root,
                        const CallOptions& options = {}) const;
  Operation start_gather_v(const void* send, std::uint64_t count, void* recv, std::span<const std::uint64_t> counts, DataType type,
                           Rank root, const CallOptions& options = {}) const;
  Result<void> scatter(const void* send, void* recv, std::uint64_t count, DataType type, Rank root, const CallOptions& options = {}) const;
  Operation start_scatter(const void* send, void* recv, std::uint64_t count, DataType type, Rank root,
                          const CallOptions& options = {}) const;
  Result<void> scatter_v(const void* send, std::span<const std::uint64_t> counts, void* recv, std::uint64_t count, DataType type, Rank root,
                         const CallOptions& options = {}) const;
  Operation start_scatter_v(const void* send, std::span<const std::uint64_t> counts, void* recv, std::uint64_t count, DataType type,
                            Rank root, const CallOptions& options = {}) const;

  // send[count * size] -> recv[count * size]: slot j of recv is rank j's slot of this rank. Not in place.
  Result<void> all_to_all(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options = {}) const;
  Operation start_all_to_all(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options = {}) const;
  Result<void> all_to_all_v(const void* send, std::span<const std::uint64_t> send_counts, void* recv,
                            std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options = {}) const;
  Operation start_all_to_all_v(const void* send, std::span<const std::uint64_t> send_counts, void* recv,
                               std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options = {}) const;

  // The reduction of ranks 0 to this one; exclusive: to the one before, rank 0 getting the neutral element. In place when send is recv.
  Result<void> scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                    const CallOptions& options = {}) const;
  Operation start_scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                       const CallOptions& options = {}) const;
  Result<void> exclusive_scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                              const CallOptions& options = {}) const;
  Operation start_exclusive_scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                 const CallOptions& options = {}) const;

  // Nobody leaves before everybody has entered.
  Result<void> barrier(const CallOptions& options = {}) const;
  Operation start_barrier(const CallOptions& options = {}) const;

  // Takes this rank's place in the next collective, whatever the others call, without taking part in it: it ends here with `reason`, and on
  // the others with kCancelled, naming this rank and the reason. For who has found out before the call that it cannot be made. `call` is
  // the name of what could not be, as it stands in errors.
  Operation start_decline(const Error& reason, std::string_view call = "barrier") const;

  // Byte strings whose lengths the others do not know. What the root gives, on all ranks; what each gives, on all ranks or at the root
  // (elsewhere nothing), in rank order. Of the start_ forms, Operation::take_bytes() and take_strings() have the result.
  Result<std::vector<std::byte>> broadcast_bytes(std::span<const std::byte> bytes, Rank root, const CallOptions& options = {}) const;
  Operation start_broadcast_bytes(std::span<const std::byte> bytes, Rank root, const CallOptions& options = {}) const;
  Result<std::vector<std::vector<std::byte>>> all_gather_bytes(std::span<const std::byte> bytes, const CallOptions& options = {}) const;
  Operation start_all_gather_bytes(std::span<const std::byte> bytes, const CallOptions& options = {}) const;
  Result<std::vector<std::vector<std::byte>>> gather_bytes(std::span<const std::byte> bytes, Rank root,
                                                           const CallOptions& options = {}) const;
  Operation start_gather_bytes(std::span<const std::byte> bytes, Rank root, const CallOptions& options = {}) const;

  // A collective: ranks that give the same color become a group, ordered by key and then by rank here. Without a color a rank is in none
  // and gets nothing. The new group is a full one, and may be split again.
  Result<std::optional<Group>> split(std::optional<int> color, int key, const CallOptions& options = {}) const;

  // The functions of this group (rpc.h): ranks are those of the group, and no other group's functions have the same names.
  Rpc rpc() const;

  // For the runtime.
  Group(std::shared_ptr<runtime::NodeCore> core, runtime::GroupRecord* record) : core_(std::move(core)), record_(record) {}

 private:
  friend Operation runtime::start_program(const Group& group, std::shared_ptr<runtime::Program> program);

  std::shared_ptr<runtime::NodeCore> core_;
  runtime::GroupRecord* record_;  // the node's
};

}  // namespace nexar
