// Large arguments and results of calls with one peer: offered by a frame of the rpc lane, sent when the other end grants them.
//
// They are transfers (transfers.h) with numbers of their own kind, wire::kOfCall, because they live longer than others: the end of an epoch
// does not end them, only the end of their call or of the peer.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "mesh/control_lane.h"
#include "mesh/incoming_transfers.h"
#include "mesh/outgoing_transfers.h"
#include "mesh/transfers.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

class CallBodies {
 public:
  CallBodies(Rank peer, ControlLane& control, OutgoingTransfers& outgoing, IncomingTransfers& incoming)
      : peer_(peer), control_(control), outgoing_(outgoing), incoming_(incoming) {}

  // The number under which the peer may ask for these bytes, of which there are some. The frame that names it is sent next: numbers arrive
  // in order. `done` as of every transfer. As many are open as calls are.
  std::uint64_t offer(OutgoingTransfer transfer);

  // Whether it was offered or is on its way: `done` is not called, and the memory is not read any more.
  void take_back(std::uint64_t transfer);

  // What the peer has offered comes, or is not wanted. An error ends the link: nobody may offer such a number.
  Result<void> accept(std::uint64_t transfer, IncomingTransfer incoming);
  Result<void> decline(std::uint64_t transfer, GroupId group);

  // Stops what was accepted; `done` is not called, and the sink is not used any more.
  void stop(std::uint64_t transfer) { incoming_.cancel(transfer); }

  // What the peer says about an offer; on_refuse is false when it is none.
  Result<void> on_grant(const wire::Grant& grant);
  bool on_refuse(const wire::Refuse& refuse);

 private:
  Result<void> check(std::uint64_t transfer);

  const Rank peer_;
  ControlLane& control_;
  OutgoingTransfers& outgoing_;
  IncomingTransfers& incoming_;
  std::unordered_map<std::uint64_t, OutgoingTransfer> offers_;
  std::uint64_t next_number_ = wire::kOfCall;
  std::uint64_t last_offered_ = 0;  // by the peer
};

}  // namespace nexar::mesh
