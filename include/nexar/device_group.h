// Collectives of a group over memory of any device.
//
//   DeviceGroup group(node.world());
//   group.all_reduce(Buffer<Device>(gpu, gradients, bytes), count, DataType::kF32, ReduceOp::kSum);
//
// A buffer says whose memory it is; one that names no adapter is of the node's. Where the host reaches it, the call is the Group's own.
// Otherwise bytes pass through slots of host memory, in pieces: while one piece is on its way between ranks, the next is staged and the
// last one placed. The slots of a call are its own from its begin, from the node's pool, and registered with the adapter; without memory
// for one the call ends with kOverloaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nexar/buffer.h"
#include "nexar/data_type.h"
#include "nexar/export.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar {

struct DeviceGroupOptions {
  // The longest piece, the same on every rank; 0: twice config().pipeline_segment_bytes, because a piece is cut into chunks again.
  std::uint64_t piece_bytes = 0;

  // How many pieces of a call are under way: one staged, one between ranks, one placed.
  std::size_t slots = 3;
};

// Everything as in group.h, with buffers that say whose memory they are. In one call either every rank gives memory that its host reaches
// or none does: what travels differs, and ranks that mix them get kMismatch. A buffer that a rank does not need is an empty one. A device's
// error ends the call here with kDevice and on the others with kCancelled, naming this rank; buffers that are written then mean nothing.
//
// start_ forms return at once, with slots of host memory that are the operation's own; the runtime asks the adapter how its steps go, so
// that they go on also while nobody waits. The lists of counts and buffers are read during the call only. Collectives of the group that are
// called later begin when all pieces of an earlier call have begun. An operation that is cancelled ends when the device's steps have.
//
// A call in several pieces takes as many sequence numbers. A cheap handle. Thread: as Group.
class NEXAR_API DeviceGroup {
 public:
  explicit DeviceGroup(Group group, DeviceGroupOptions options = {});

  const Group& group() const { return group_; }

  Result<void> all_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, const Reduction& op,
                          const CallOptions& options = {}) const;
  Operation start_all_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                             const Reduction& op, const CallOptions& options = {}) const;
  Result<void> all_reduce(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                          const CallOptions& options = {}) const;
  Operation start_all_reduce(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                             const CallOptions& options = {}) const;

  // Each buffer is whole elements. All are of one adapter and stream.
  Result<void> all_reduce_bucketed(std::span<const Buffer<Device>> buffers, DataType type, const Reduction& op,
                                   const CallOptions& options = {}) const;
  Operation start_all_reduce_bucketed(std::span<const Buffer<Device>> buffers, DataType type, const Reduction& op,
                                      const CallOptions& options = {}) const;

  // `middle` gets elements in host memory, once for each piece; every element of the buffer is given to one rank's function.
  Result<void> all_reduce_rs_ag(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                const MiddleFunction& middle, const CallOptions& options = {}) const;
  Operation start_all_reduce_rs_ag(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                   MiddleFunction middle, const CallOptions& options = {}) const;

  Result<void> reduce_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                              const Reduction& op, const CallOptions& options = {}) const;
  Operation start_reduce_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                 const Reduction& op, const CallOptions& options = {}) const;
  Result<void> reduce_scatter_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                DataType type, const Reduction& op, const CallOptions& options = {}) const;
  Operation start_reduce_scatter_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                   DataType type, const Reduction& op, const CallOptions& options = {}) const;
  Result<void> all_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                          const CallOptions& options = {}) const;
  Operation start_all_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                             const CallOptions& options = {}) const;
  Result<void> all_gather_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts, DataType type,
                            const CallOptions& options = {}) const;
  Operation start_all_gather_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts, DataType type,
                               const CallOptions& options = {}) const;
  Result<void> broadcast(const Buffer<Device>& buffer, std::uint64_t count, DataType type, Rank root,
                         const CallOptions& options = {}) const;
  Operation start_broadcast(const Buffer<Device>& buffer, std::uint64_t count, DataType type, Rank root,
                            const CallOptions& options = {}) const;
  Result<void> reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, const Reduction& op,
                      Rank root, const CallOptions& options = {}) const;
  Operation start_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, const Reduction& op,
                         Rank root, const CallOptions& options = {}) const;
  Result<void> gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                      const CallOptions& options = {}) const;
  Operation start_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                         const CallOptions& options = {}) const;
  Result<void> gather_v(const Buffer<Device>& send, std::uint64_t count, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                        DataType type, Rank root, const CallOptions& options = {}) const;
  Operation start_gather_v(const Buffer<Device>& send, std::uint64_t count, const Buffer<Device>& recv,
                           std::span<const std::uint64_t> counts, DataType type, Rank root, const CallOptions& options = {}) const;
  Result<void> scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                       const CallOptions& options = {}) const;
  Operation start_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                          const CallOptions& options = {}) const;
  Result<void> scatter_v(const Buffer<Device>& send, std::span<const std::uint64_t> counts, const Buffer<Device>& recv, std::uint64_t count,
                         DataType type, Rank root, const CallOptions& options = {}) const;
  Operation start_scatter_v(const Buffer<Device>& send, std::span<const std::uint64_t> counts, const Buffer<Device>& recv,
                            std::uint64_t count, DataType type, Rank root, const CallOptions& options = {}) const;
  Result<void> all_to_all(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                          const CallOptions& options = {}) const;
  Operation start_all_to_all(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                             const CallOptions& options = {}) const;
  Result<void> all_to_all_v(const Buffer<Device>& send, std::span<const std::uint64_t> send_counts, const Buffer<Device>& recv,
                            std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options = {}) const;
  Operation start_all_to_all_v(const Buffer<Device>& send, std::span<const std::uint64_t> send_counts, const Buffer<Device>& recv,
                               std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options = {}) const;
  Result<void> scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, const Reduction& op,
                    const CallOptions& options = {}) const;
  Operation start_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, const Reduction& op,
                       const CallOptions& options = {}) const;
  Result<void> exclusive_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                              const Reduction& op, const CallOptions& options = {}) const;
  Operation start_exclusive_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                 const Reduction& op, const CallOptions& options = {}) const;

  // The whole buffer as one message, by way of host memory of its length. recv returns the message's length, which the buffer must hold.
  // Messages wait for no collective. A send whose buffer cannot be staged ends with kDevice, and nothing is sent.
  Result<void> send(const Buffer<Device>& buffer, Rank to, Tag tag) const;
  Operation start_send(const Buffer<Device>& buffer, Rank to, Tag tag) const;
  Result<Status> recv(const Buffer<Device>& buffer, Rank from, TagFilter tag) const;
  Operation start_recv(const Buffer<Device>& buffer, Rank from, TagFilter tag) const;

 private:
  struct OnHost {
    void* send;
    void* recv;
  };
  // Where the buffers are, if the host reaches both.
  std::optional<OnHost> on_host(const Buffer<Device>& send, const Buffer<Device>& recv) const;
  std::uint64_t width() const { return static_cast<std::uint64_t>(group_.size()); }
  std::uint64_t own(std::span<const std::uint64_t> counts) const;
  std::optional<Error> check_counts(std::string_view call, std::span<const std::uint64_t> counts) const;

  Group group_;
  DeviceGroupOptions options_;
};

}  // namespace nexar
