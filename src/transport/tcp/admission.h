// The bounds on strangers: what may come to the port of the lanes without having shown anything.
//
// A stranger costs a descriptor and the memory of its hello, gets a few seconds, and makes way for a newcomer when there are too many.
#pragma once

#include <cstddef>

#include "base/time.h"
#include "transport/tcp/record_keys.h"
#include "wire/lane_messages.h"

namespace nexar::transport::tcp {

// Connections that have not shown their hello yet. When there are more, the oldest makes way.
inline constexpr std::size_t kPendingMax = 64;

// From the connection to the whole hello.
inline constexpr base::Duration kHelloTimeout = std::chrono::seconds(3);

// What a connection begins with: the ticket, then the sealed hello.
inline constexpr std::size_t kHelloBytes = sizeof(wire::LaneTicket) + kSealedHeaderBytes;

// What the kernel may keep for a stranger beyond its first window. Not less: the kernel counts its own bookkeeping.
inline constexpr std::size_t kStrangerBufferBytes = 4096;

// Lanes that are offered and not yet there: 16 for each of 256 peers.
inline constexpr std::size_t kExpectedMax = 4096;

// Connections taken from the backlog in one turn, so that a flood does not keep the loop.
inline constexpr int kAcceptsPerTurn = 64;

// After the process has run out of descriptors nothing is accepted for this long.
inline constexpr base::Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace nexar::transport::tcp
