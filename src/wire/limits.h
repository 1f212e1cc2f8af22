// Every bound of the wire, with its reason. docs/wire.md repeats them; a test compares the two.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nexar::wire {

// A header is this long on every lane. Less than a cache line, so that it costs little beside an 8-byte message.
inline constexpr std::size_t kHeaderBytes = 48;

// An eager message, an RPC's arguments or its result. Up to here a copy costs less than asking first.
inline constexpr std::uint32_t kEagerBytesMax = 64u << 10;

// What a bulk frame carries, and the unit of stripes: short enough that operations interleave and can be abandoned soon, long enough that
// its header is no cost.
inline constexpr std::uint32_t kBulkBytes = 64u << 10;

// What it may carry: on a plain TCP lane, where each frame costs a call of the kernel and nothing else.
inline constexpr std::uint32_t kBulkBytesMax = 4 * kBulkBytes;

// A sentence for people. An error that needs more than a page helps nobody.
inline constexpr std::uint32_t kTextBytesMax = 1024;

// The name of an operation; the longest of ours has 21 letters.
inline constexpr std::uint32_t kNameBytesMax = 64;

// Ranks that an error names; of more, the first are kept. The sentence can say how many there were.
inline constexpr std::uint32_t kErrorRanksMax = 256;

// Errors below the one that is reported: cause, its cause, and so on. What lies deeper is cut off.
inline constexpr std::uint32_t kErrorCausesMax = 4;

// Nodes that one revocation names. More losses at once take several frames, which are all true at the same time.
inline constexpr std::uint32_t kLostNodesMax = 1024;

// Groups of which a peer sends something before the receiver has made them. A member is ahead by as many groups as the receiver's threads
// are just making, and as many again by which they agree on memory. With what each may hold of early messages, of two kinds, a peer that
// lies makes another keep 64 MiB.
inline constexpr std::uint32_t kEarlyGroupsMax = 128;

// Stripes of one transfer. A link has a few bulk lanes; 64 is beyond what any host has queues for.
inline constexpr std::uint32_t kStripesMax = 64;

// A certificate or a request for one, in DER: ours have some 500 bytes.
inline constexpr std::uint32_t kDerBytesMax = 4096;

// The settings on which nodes agree, as text: ours have less than 1,000 bytes.
inline constexpr std::uint32_t kAgreedBytesMax = 8u << 10;

// What people call a node that joins: a host's name, which has at most 64 bytes, and a process.
inline constexpr std::uint32_t kNodeNameBytesMax = 128;

// Addresses at which a node may be reached. More than a host has networks; each costs its peers a try.
inline constexpr std::uint32_t kAddressesMax = 16;

// An address and a port as people write them: an IPv6 address has at most 45 letters, its zone 16, and there are brackets and a port.
inline constexpr std::uint32_t kAddressTextBytesMax = 80;

// Nodes of a world. A view of them has 30 MiB at most.
inline constexpr std::uint32_t kWorldMax = 65536;

// Members in one part of a view, so that a part stays under the 64 KiB of every other frame.
inline constexpr std::uint32_t kViewPartMembersMax = 128;

// Bytes of a set of cores: 1024 of them, as many as a kernel tells in the usual way. Who has more tells none.
inline constexpr std::uint32_t kCoresBytesMax = 128;

// Family, address, port; and a member, with as many of them and of its cores as may be.
inline constexpr std::uint32_t kAddressBytes = 1 + 16 + 2;
inline constexpr std::uint32_t kMemberBytesMin = 16 + 16 + 1 + 1;
inline constexpr std::uint32_t kMemberBytesMax = kMemberBytesMin + kCoresBytesMax + kAddressesMax * kAddressBytes;

// What a node tells observers: of itself (proof, rank, peers, name, 14 counters), and of a peer (rank, state, ways, three texts, the round
// trip, four counters of each lane, TCP lanes).
inline constexpr std::uint32_t kInfoAnswerBytesMin = 32 + 4 + 4 + 2 + 14 * 8;
inline constexpr std::uint32_t kInfoPeerBytesMin = 4 + 3 + 3 * 2 + 8 + 4 * 4 * 8 + 4 + 3 * 8;

// TCP lanes of a link. One to four are opened: more do not move more bytes, on any host that we know.
inline constexpr std::uint32_t kTcpLanesMax = 16;

// Lanes below are offered by the end of higher rank, the others by the other: no lane is offered by both, so no key is made twice.
inline constexpr std::uint32_t kLowersFirstLane = kTcpLanesMax / 2;

// What one record of a TCP lane seals of a payload. Half of it still fits a first-level cache, and the tag is no cost.
inline constexpr std::uint32_t kRecordBytesMax = 32u << 10;

// Records that one key of a TCP lane seals; the next key follows from its secret. 2^22 records of 2^11 AES blocks leave an attacker who
// sees them all an advantage of 2^-63.
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

// Code, facts, sentence, operation, sequence, epoch, ranks: one error without its cause, at its shortest and at its longest.
inline constexpr std::uint32_t kErrorBytesMin = 1 + 1 + 2 + 2;
inline constexpr std::uint32_t kOneErrorBytesMax = 1 + 1 + (2 + kTextBytesMax) + (2 + kNameBytesMax) + 8 + 8 + (2 + 4 * kErrorRanksMax);
inline constexpr std::uint32_t kErrorBytesMax = (1 + kErrorCausesMax) * kOneErrorBytesMax;

}  // namespace nexar::wire
