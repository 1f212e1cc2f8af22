// What a tensor library plugs into: collectives over (pointer, count, type), in memory of any device.
//
//   std::unique_ptr<Communicator> world = Communicator::join(options, {.adapter = gpu}).value();
//   CommunicatorGroup parallel = CommunicatorGroup::make(*world, {.tp = 2, .pp = 2, .dp = 4, .ep = 2}).value();
//   parallel.data().all_reduce(gradients, count, DataType::kBf16, ReduceOp::kAvg);
//
// Pointers are addresses in the memory of the communicator's adapter; without one, of its node's, which is the host's unless JoinOptions
// say otherwise. Calls begin after what is on the
// communicator's stream, and have their result when they return.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "nexar/data_type.h"
#include "nexar/device.h"
#include "nexar/device_group.h"
#include "nexar/export.h"
#include "nexar/group.h"
#include "nexar/ids.h"
#include "nexar/node.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar {

struct CommunicatorOptions {
  std::shared_ptr<DeviceAdapter> adapter{};  // whose memory its pointers are of; empty: the node's, or the host's where there is no node
  DeviceStream stream = DeviceStream::kDefault;
  DeviceGroupOptions pieces{};  // how memory that the host does not reach is cut
};

// Thread: one at a time. Every rank makes the same calls in the same order.
class NEXAR_API Communicator {
 public:
  // A world of one rank, without a node.
  static std::unique_ptr<Communicator> single(const CommunicatorOptions& options = {});
  // Over a group of a node, which outlives it.
  static std::unique_ptr<Communicator> net(Group group, const CommunicatorOptions& options = {});
  // The world of a node that joins now and is the communicator's own; it leaves when this and all that were split from it are gone.
  static Result<std::unique_ptr<Communicator>> join(const JoinOptions& join, const CommunicatorOptions& options = {});

  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int world_size() const = 0;
  virtual Rank rank() const = 0;

  // In place.
  virtual Result<void> all_reduce(void* buffer, std::uint64_t count, DataType type, ReduceOp op) = 0;
  virtual Result<void> broadcast(void* buffer, std::uint64_t count, DataType type, Rank root) = 0;

  // send[count] -> recv[count * size], and send[count * size] -> recv[count].
  virtual Result<void> all_gather(const void* send, void* recv, std::uint64_t count, DataType type) = 0;
  virtual Result<void> reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, ReduceOp op) = 0;

  // Messages match by source and tag, in order. A receive takes exactly `count` elements: kMismatch for a message of another length.
  virtual Result<void> send(const void* data, std::uint64_t count, DataType type, Rank to, Tag tag) = 0;
  virtual Result<void> recv(void* data, std::uint64_t count, DataType type, Rank from, Tag tag) = 0;

  virtual Result<void> barrier() = 0;

  // Returns when everything on the communicator's stream has been done.
  virtual Result<void> sync() = 0;

  // Stream events: calls that come later begin when `event` has passed; a moment that has passed when everything before it has been done.
  virtual Result<void> wait_event(DeviceEvent event) = 0;
  virtual Result<DeviceEvent> record_event() = 0;

  // A collective: ranks that give the same color become a communicator, ordered by key and then by rank here, of the same kind and with
  // the same options. Null for a rank that gives none.
  virtual Result<std::unique_ptr<Communicator>> split(std::optional<int> color, int key) = 0;

  // The group behind it, with every other call that there is; none of a single one.
  virtual std::optional<Group> group() const = 0;

 protected:
  Communicator() = default;
};

// How many ranks share a tensor (tp), a pipeline of layers (pp), the data (dp) and the experts (ep), and who they are. Tensor is innermost:
//
//   rank = dp_index * (pp * tp) + pp_index * tp + tp_index        tp * pp * dp = world
//
// ep divides dp: an expert group is ep consecutive members of a data-parallel group.
struct NEXAR_API ParallelLayout {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int ep = 1;

  struct Place {
    int tp_index = 0;
    int pp_index = 0;
    int dp_index = 0;
    int ep_index = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  enum class Axis : std::uint8_t { kTensor, kPipeline, kData, kExpert };

  // kInvalidArgument, with the numbers, unless the sizes are positive and fit `world`.
  Result<void> check(int world) const;
  Place place(Rank rank) const;
  // The number of the group of `rank` along an axis: equal on its members, another for every other group of that axis.
  int color(Rank rank, Axis axis) const;
  // Its rank there.
  int index(Rank rank, Axis axis) const;
  int size(Axis axis) const;
};

// The communicators of one rank, one for each axis. Move-only. `world` outlives it where it was made from a group.
class NEXAR_API CommunicatorGroup {
 public:
  // A collective of `world`.
  static Result<CommunicatorGroup> make(Communicator& world, const ParallelLayout& layout);

  const ParallelLayout& layout() const { return layout_; }
  Communicator& tensor() const { return at(ParallelLayout::Axis::kTensor); }
  Communicator& pipeline() const { return at(ParallelLayout::Axis::kPipeline); }
  Communicator& data() const { return at(ParallelLayout::Axis::kData); }
  Communicator& expert() const { return at(ParallelLayout::Axis::kExpert); }

 private:
  explicit CommunicatorGroup(const ParallelLayout& layout) : layout_(layout) {}
  Communicator& at(ParallelLayout::Axis axis) const { return *parts_[static_cast<std::size_t>(axis)]; }

  ParallelLayout layout_;
  std::array<std::unique_ptr<Communicator>, 4> parts_;
};

}  // namespace nexar
