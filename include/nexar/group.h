// Ranks that exchange messages.
//
// Messages match by group, source and tag, in the order of sending. A small one (up to 64 KiB) goes at once, and its send returns when the
// buffer may be used again; a larger one flows when its receive is posted. Messages that nobody reads slow their sender down, in their own
// group and tag; they grow no memory and delay nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nexar/export.h"
#include "nexar/ids.h"
#include "nexar/message.h"
#include "nexar/operation.h"
#include "nexar/result.h"

namespace nexar {

namespace runtime {
class NodeCore;
}

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

// A cheap handle; copies are the same group. Thread: any, several at once.
class NEXAR_API Group {
 public:
  Rank rank() const;
  int size() const;
  std::uint64_t id() const { return id_; }

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

  // For the runtime.
  Group(std::shared_ptr<runtime::NodeCore> core, std::uint64_t id) : core_(std::move(core)), id_(id) {}

 private:
  std::shared_ptr<runtime::NodeCore> core_;
  std::uint64_t id_;
};

}  // namespace nexar
