// The transfers on their way from one peer (transfers.h).
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "mesh/control_lane.h"
#include "mesh/transfers.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

// A way that bulk frames come by: the link, or a life of a lane, each of which has a number of its own.
using WayNumber = std::uint64_t;
inline constexpr WayNumber kLinkWay = 0;

// Which bytes a grant ahead means.
struct AheadOf {
  std::uint64_t sequence = 0;
  std::uint32_t step = 0;
  std::uint64_t fingerprint = 0;  // never 0
};

class IncomingTransfers {
 public:
  IncomingTransfers(Rank peer, ControlLane& control) : peer_(peer), control_(control) {}

  // The sink can take every byte, of which there are some: the peer is told, and they come. `transfer` is the number of the announcement.
  void grant(std::uint64_t transfer, IncomingTransfer incoming);

  // The same for what was not announced; the number of the transfer.
  std::uint64_t grant_ahead(const AheadOf& call, IncomingTransfer incoming);

  // Stops a transfer and tells the peer; `done` is not called. When it returns the sink is not used any more. False when there is no such
  // transfer.
  bool cancel(std::uint64_t transfer, wire::RefuseReason reason = wire::RefuseReason::kCancelled);

  // How many lanes the peer can send by, beside the link: transfers are cut into as many stripes.
  void set_lanes(std::uint16_t lanes) { lanes_ = lanes; }

  // A lane has died: what came by it, or may have been on its way there, is asked for again from where it is.
  void way_ended(WayNumber way);

  // There is something better than `way` now: transfers that have at least so many bytes left there are asked for elsewhere.
  void leave_way(WayNumber way, std::uint64_t bytes_left);

  // Called when a transfer is granted that lanes are made for.
  void set_wanted(std::function<void()> wanted) { wanted_ = std::move(wanted); }

  // What the peer says: true when there is such a transfer.
  bool on_withdraw(const wire::Withdraw& withdraw);

  // Everything ends but the arguments and results of calls, which their owner ends. The tables are empty before anybody is told.
  void end_all_but_calls(const Error& verdict);

  std::size_t open() const { return transfers_.size(); }

  // The bulk frames that come by one way, one after the other.
  class Arrivals final : public transport::Sink {
   public:
    Arrivals(IncomingTransfers& transfers, WayNumber way) : transfers_(transfers), way_(way) {}

    // As of a link's handler.
    Result<transport::Sink*> on_frame(const wire::Header& header);
    Result<void> on_frame_end(const wire::Header& header);

    void take(base::ByteView bytes) override;
    std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) override;
    void placed(std::size_t bytes) override;

   private:
    bool may_wait(const IncomingTransfer& incoming) const;

    IncomingTransfers& transfers_;
    const WayNumber way_;
    std::optional<wire::Bulk> frame_;  // none when nobody wants it
  };

 private:
  struct Stripe {
    wire::ByteRange range{};
    std::uint16_t generation = 0;
    std::uint64_t position = 0;      // of the next byte that the sink gets, from the transfer's start
    std::optional<WayNumber> way{};  // that bytes of this generation came by
    std::size_t carried = 0;         // bytes after `position` that do not fill an alignment yet
    std::array<std::byte, kTransferAlignment> carry{};
    bool complete() const { return position == range.end; }
  };
  struct Transfer {
    IncomingTransfer incoming;
    std::vector<Stripe> stripes;
    std::size_t incomplete = 0;
  };

  void start(const wire::Grant& grant, IncomingTransfer incoming);
  std::uint16_t stripes_for(std::uint64_t bytes) const;
  Stripe* find(const wire::Bulk& frame, IncomingTransfer** incoming);
  void take(const wire::Bulk& frame, base::ByteView bytes);
  static void deliver(Stripe& stripe, TransferSink& sink, base::ByteView bytes);
  bool resume(std::uint64_t number, Transfer& transfer, WayNumber way, std::uint64_t bytes_left);

  const Rank peer_;
  ControlLane& control_;
  std::unordered_map<std::uint64_t, Transfer> transfers_;
  std::uint64_t next_ahead_ = 1;
  std::uint16_t lanes_ = 0;
  std::function<void()> wanted_;
};

}  // namespace nexar::mesh
