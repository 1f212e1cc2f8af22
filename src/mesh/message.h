// A send and a receive, from when they are posted until they are done.
//
// Whoever posts one owns it and keeps it until `done` has been called; the mesh holds pointers. User memory is touched only between posting
// and `done`, and never after cancel() has returned.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "nexar/message.h"
#include "nexar/result.h"

namespace nexar::mesh {

// Identifies a group in every header.
using GroupId = std::uint64_t;

struct Send {
  GroupId group = 0;
  Rank peer = 0;  // in the world
  Tag tag = 0;
  std::vector<ConstRegion> regions;
  std::uint64_t bytes = 0;  // of all regions
  std::function<void(Result<void>)> done;

  // Where it is; kept by whoever holds it.
  enum class State : std::uint8_t { kIdle, kQueued, kAnnounced, kGranted };
  State state = State::kIdle;
  std::uint64_t transfer = 0;  // of kAnnounced and kGranted
};

struct Receive {
  GroupId group = 0;
  Rank source = kAnySource;  // in the world
  std::optional<Tag> tag;    // nothing: any
  std::vector<Region> regions;
  std::uint64_t capacity = 0;  // of all regions
  // Owned: called with the size when it is known, before anything is written; fills `regions` and `capacity`.
  std::function<Result<void>(Receive&, std::uint64_t bytes)> allocate;
  std::function<void(Result<Status>)> done;

  // Kept by the matcher and the peer.
  std::uint64_t order = 0;
  enum class State : std::uint8_t { kIdle, kPosted, kArriving };
  State state = State::kIdle;
};

}  // namespace nexar::mesh
