// What may be sent to one peer in one group, and what must wait.
//
// A small message goes at once while the peer has credit for it. Otherwise it is announced, and its bytes follow when a receive asks for
// them. When there are as many announcements as the peer keeps, messages wait here, in order; the peer is told that some do, and a receive
// of its that finds no match asks for them by name (a want).
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "mesh/message.h"
#include "wire/limits.h"

namespace nexar::mesh {

// What a node keeps of early messages, for each (group, peer). Told to peers when a link begins.
struct EagerLimits {
  std::uint64_t bytes = 256u << 10;   // four of the largest eager messages
  std::uint32_t messages = 1024;      // so that empty messages are bounded as well
  std::uint32_t announcements = 256;  // about 100 bytes each
};

// Wants that may be open at once: as many as a peer has receives in flight, and a bound on one that lies.
inline constexpr std::size_t kWantsMax = 65536;

class Outbox {
 public:
  enum class Way : std::uint8_t { kEager, kAnnounce, kWait };

  // With what the peer keeps, as its hello says.
  explicit Outbox(const EagerLimits& limits) { begin(limits); }
  void begin(const EagerLimits& limits) {
    bytes_ = limits.bytes;
    messages_ = limits.messages;
    announcements_ = limits.announcements;
  }

  // How a message of that size may go now.
  Way way(std::uint64_t bytes) const {
    if (bytes <= wire::kEagerBytesMax && bytes <= bytes_ && messages_ > 0) return Way::kEager;
    return announcements_ > 0 ? Way::kAnnounce : Way::kWait;
  }

  void sent_eagerly(std::uint64_t bytes) {
    bytes_ -= bytes;
    --messages_;
  }
  void credit(std::uint64_t bytes, std::uint32_t messages) {
    bytes_ += bytes;
    messages_ += messages;
  }
  void announced() { --announcements_; }
  void announcement_gone() { ++announcements_; }

  // A want of the peer that no waiting message fits yet.
  struct Want {
    std::optional<Tag> tag;
  };

  std::deque<Send*> waiting;
  std::vector<Want> wants;
  bool told = false;  // the peer knows that messages wait

 private:
  std::uint64_t bytes_ = 0;
  std::uint32_t messages_ = 0;
  std::int64_t announcements_ = 0;  // negative after messages that were asked for
};

}  // namespace nexar::mesh
