// What a node that joins and the seed say to each other, on the control lane of their link.
//
//   node                                      seed
//   join_proof      knows the secret    ->
//                                       <-    seed_proof     so does the seed
//   join_request    who I am            ->
//                                       <-    join_accept    your certificate
//   join_ready      where I listen      ->
//                                       <-    join_view      the world, in parts, when it is complete
//   join_ask        who is missing?     ->                   instead of waiting for ever; once
//                                       <-    join_state     who has come, while it is not complete
//
// Instead of any of its answers the seed may send join_refuse, which is final.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nexar/error.h"
#include "nexar/ids.h"
#include "types/core_set.h"
#include "types/node_id.h"
#include "wire/error_text.h"
#include "wire/frame.h"

namespace nexar::wire {

inline constexpr std::size_t kProofBytes = 32;

// HMAC-SHA-256 with the cluster's secret, over a value that only this link has. What goes into it is in docs/wire.md.
struct JoinProof {
  static constexpr FrameType kType = FrameType::kJoinProof;
  static constexpr bool kCarriesBytes = false;

  std::array<std::byte, kProofBytes> proof{};

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static JoinProof get(const Header& header, Reader& reader);
  bool operator==(const JoinProof&) const = default;
};

// The same for the other role.
struct SeedProof {
  static constexpr FrameType kType = FrameType::kSeedProof;
  static constexpr bool kCarriesBytes = false;

  std::array<std::byte, kProofBytes> proof{};

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static SeedProof get(const Header& header, Reader& reader);
  bool operator==(const SeedProof&) const = default;
};

// Asks for a certificate and a rank.
struct JoinRequest {
  static constexpr FrameType kType = FrameType::kJoinRequest;
  static constexpr bool kCarriesBytes = false;

  std::uint16_t wire_version = kWireVersion;
  std::uint16_t plan_version = 0;
  Rank rank = -1;  // asked for; -1 for any
  std::uint64_t config_digest = 0;
  HostId host{};
  CoreSet cores;                   // that the process may run on; empty where it does not know
  std::string agreed;              // the settings behind the digest, so that a difference can be named; at most kAgreedBytesMax
  std::vector<std::byte> request;  // for a certificate, PKCS#10 in DER; at most kDerBytesMax
  std::string name;                // for people; at most kNodeNameBytesMax

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static JoinRequest get(const Header& header, Reader& reader);
  bool operator==(const JoinRequest&) const = default;
};

struct JoinAccept {
  static constexpr FrameType kType = FrameType::kJoinAccept;
  static constexpr bool kCarriesBytes = false;

  Rank rank = -1;                      // -1 while it is not decided
  std::vector<std::byte> certificate;  // of the node, in DER
  std::vector<std::byte> authority;    // that issued it

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static JoinAccept get(const Header& header, Reader& reader);
  bool operator==(const JoinAccept&) const = default;
};

// The node cannot join this world, and asking again does not help.
struct JoinRefuse {
  static constexpr FrameType kType = FrameType::kJoinRefuse;
  static constexpr bool kCarriesBytes = false;

  Error error{ErrorCode::kRefused, ""};

  const char* fault() const { return nullptr; }
  void put(Header&, Writer& writer) const { put_error(error, writer); }
  static JoinRefuse get(const Header&, Reader& reader) { return {get_error(reader)}; }
  bool operator==(const JoinRefuse& other) const { return same(error, other.error); }
};

// Where a node listens: an IP address and a port.
struct NodeAddress {
  enum class Family : std::uint8_t { kV4 = 4, kV6 = 6 };

  Family family = Family::kV4;
  std::array<std::byte, 16> ip{};  // in network order; of IPv4 the first four
  std::uint16_t port = 0;

  const char* fault() const;
  void put(Writer& writer) const;
  static NodeAddress get(Reader& reader);
  bool operator==(const NodeAddress&) const = default;
};

struct JoinReady {
  static constexpr FrameType kType = FrameType::kJoinReady;
  static constexpr bool kCarriesBytes = false;

  std::vector<NodeAddress> addresses;  // the best first; 1 to kAddressesMax

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static JoinReady get(const Header& header, Reader& reader);
  bool operator==(const JoinReady&) const = default;
};

// Asks a seed that waits for others how far the world is.
struct JoinAsk {
  static constexpr FrameType kType = FrameType::kJoinAsk;
  static constexpr bool kCarriesBytes = false;

  const char* fault() const { return nullptr; }
  void put(Header&, Writer&) const {}
  static JoinAsk get(const Header&, Reader&) { return {}; }
  bool operator==(const JoinAsk&) const = default;
};

// Who has come and who is missing.
struct JoinState {
  static constexpr FrameType kType = FrameType::kJoinState;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t left_ns = 0;  // until the seed gives the world up
  Error error{ErrorCode::kTimeout, ""};

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static JoinState get(const Header& header, Reader& reader);
  bool operator==(const JoinState& other) const { return left_ns == other.left_ns && same(error, other.error); }
};

// A part of the world: members from rank `first` on. Parts come in order.
struct JoinView {
  static constexpr FrameType kType = FrameType::kJoinView;
  static constexpr bool kCarriesBytes = false;

  struct Member {
    NodeId node{};
    HostId host{};
    CoreSet cores;                       // that it may run on; empty where it has not told
    std::vector<NodeAddress> addresses;  // at most kAddressesMax
    bool operator==(const Member&) const = default;
  };

  Epoch epoch = 1;
  std::uint32_t size = 0;  // of the whole world, 1 to kWorldMax
  std::uint32_t first = 0;
  std::vector<Member> members;  // 1 to kViewPartMembersMax

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static JoinView get(const Header& header, Reader& reader);
  bool operator==(const JoinView&) const = default;
};

}  // namespace nexar::wire
