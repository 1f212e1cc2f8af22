// The transfers on their way to one peer (transfers.h).
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "mesh/bulk_way.h"
#include "mesh/control_lane.h"
#include "mesh/transfers.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

// Grants ahead that a peer may have open: two for each of as many operations as anybody has in flight, and a bound on one that lies.
inline constexpr std::size_t kGrantsAheadMax = 65536;

class OutgoingTransfers {
 public:
  // Bulk goes by the link's way, and by lanes while there are some.
  OutgoingTransfers(Rank peer, ControlLane& control, BulkWay& link) : peer_(peer), control_(control), link_(link) {}

  // A number for a transfer that this end announces. Never the same twice.
  std::uint64_t next_number() const { return next_number_; }
  std::uint64_t take_number() { return next_number_++; }

  // The peer can take the bytes: they flow. The regions have exactly the granted bytes, of which there are some.
  void begin(const wire::Grant& grant, OutgoingTransfer transfer);

  // A grant that came ahead waits here until its bytes are known, together with what the peer says of it meanwhile; begin_ahead() uses it
  // up. kRefused when the peer has too many open, or uses a number again.
  Result<void> keep_ahead(GroupId group, const wire::Grant& grant);
  const wire::Grant* ahead(std::uint64_t transfer) const;
  void begin_ahead(std::uint64_t transfer, OutgoingTransfer outgoing);

  // Stops a transfer, or gives a grant ahead back, and tells the peer; `done` is not called. When it returns the memory is not read any
  // more. False when there is no such transfer.
  bool cancel(std::uint64_t transfer);

  // A lane can be used; or has died, and what went by it waits until the receiver says where to go on.
  void add_lane(BulkWay& lane) { lanes_.push_back(&lane); }
  void remove_lane(BulkWay& lane);

  // What the peer says. An error ends the link.
  Result<void> on_watermark(const wire::Watermark& watermark);
  Result<void> on_resume(const wire::Resume& resume);
  enum class Refused : std::uint8_t { kUnknown, kAhead, kEnded };
  Refused on_refuse(const wire::Refuse& refuse);

  // Everything ends. The tables are empty before anybody is told.
  void end_all(const Error& verdict);

  std::size_t open() const { return transfers_.size(); }

 private:
  struct Transfer {
    OutgoingTransfer outgoing;
    RegionIndex<ConstRegion> index;
    std::vector<OutgoingStripe> stripes;  // never resized: ways hold pointers
    std::size_t incomplete;
  };
  struct Ahead {
    wire::Grant grant;
    GroupId group;
    std::vector<std::uint16_t> generations;  // one for each stripe
  };

  void start(const wire::Grant& grant, OutgoingTransfer outgoing, const std::vector<std::uint16_t>* generations);
  OutgoingStripe* find(std::uint64_t transfer, std::uint16_t stripe);
  BulkWay& choose(std::uint64_t bytes);
  std::unique_ptr<Transfer> release(std::uint64_t transfer);

  const Rank peer_;
  ControlLane& control_;
  BulkWay& link_;
  std::vector<BulkWay*> lanes_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
  std::unordered_map<std::uint64_t, Ahead> ahead_;
  std::uint64_t next_number_ = 1;
};

}  // namespace nexar::mesh
