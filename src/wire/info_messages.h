// What an observer and a node, or the seed, say to each other, on the control lane of their link.
//
//   observer                               node or seed
//   info_request    knows the secret  ->
//                                     <-   info_answer    so does the node: who it is, and what it counts
//                                     <-   join_view      the world, in parts, if that was asked for
//                                     <-   info_peer      one for each of its peers
//
// Instead of its first answer a node may send join_refuse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nexar/ids.h"
#include "wire/frame.h"
#include "wire/join_messages.h"

namespace nexar::wire {

struct InfoRequest {
  static constexpr FrameType kType = FrameType::kInfoRequest;
  static constexpr bool kCarriesBytes = false;

  std::array<std::byte, kProofBytes> proof{};  // as in JoinProof, for the role of an observer
  bool view = false;                           // whether the world is wanted too

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static InfoRequest get(const Header& header, Reader& reader);
  bool operator==(const InfoRequest&) const = default;
};

struct InfoAnswer {
  static constexpr FrameType kType = FrameType::kInfoAnswer;
  static constexpr bool kCarriesBytes = false;

  // What a node counts, in this order on the wire.
  struct Counters {
    std::uint64_t handshakes_refused = 0;
    std::uint64_t handshakes_dropped = 0;
    std::uint64_t retries_sent = 0;
    std::uint64_t packets_ignored = 0;
    std::uint64_t protocol_errors = 0;
    std::uint64_t frames_of_other_epochs = 0;
    std::uint64_t rpc_calls = 0;
    std::uint64_t rpc_served = 0;
    std::uint64_t rpc_refused = 0;
    std::uint64_t rpc_late_answers = 0;
    std::uint64_t rpc_calling = 0;
    std::uint64_t rpc_serving = 0;
    std::uint64_t rpc_serving_bytes = 0;
    std::uint64_t rpc_threads = 0;
    bool operator==(const Counters&) const = default;
  };

  std::array<std::byte, kProofBytes> proof{};  // for the role of who is observed
  Rank rank = -1;                              // -1: the seed
  std::uint32_t peers = 0;                     // info_peer frames that follow; fewer than kWorldMax
  std::string name{};                          // for people; at most kNodeNameBytesMax
  Counters counters{};

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static InfoAnswer get(const Header& header, Reader& reader);
  bool operator==(const InfoAnswer&) const = default;
};

// What a node knows of one peer.
struct InfoPeer {
  static constexpr FrameType kType = FrameType::kInfoPeer;
  static constexpr bool kCarriesBytes = false;

  enum class State : std::uint8_t { kLinked = 1, kLeft = 2, kLost = 3 };
  enum class Way : std::uint8_t { kNone = 0, kShm = 1, kQuic = 2, kTcp = 3 };
  struct Lane {
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t frames_received = 0;
    std::uint64_t bytes_received = 0;
    bool operator==(const Lane&) const = default;
  };

  Rank rank = 0;
  State state = State::kLinked;
  Way link = Way::kNone;            // what its link is; none when it has left or is lost
  Way bulk = Way::kNone;            // what large transfers take
  std::string address{};            // that its link uses; at most kAddressTextBytesMax
  std::string no_shm{};             // why it is not memory; at most kTextBytesMax
  std::string no_tcp{};             // why there are no TCP lanes, or why one was lost; at most kTextBytesMax
  std::uint64_t round_trip_ns = 0;  // of the last heartbeat that was answered; 0 before the first
  std::array<Lane, 4> lanes{};      // control, rpc, data, bulk
  std::uint32_t tcp_lanes = 0;      // open now
  std::uint64_t tcp_lanes_lost = 0;
  std::uint64_t tcp_bytes_sent = 0;
  std::uint64_t tcp_bytes_received = 0;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static InfoPeer get(const Header& header, Reader& reader);
  bool operator==(const InfoPeer&) const = default;
};

}  // namespace nexar::wire
