// The TCP lanes to one peer: opened when large transfers first want them, watched, given up when they die.
//
//   higher rank (listens)                    lower rank (connects)
//     lane_offer  for each lane
//                                              lane_answer: connecting, or why not; TCP
//     open                                     open
//     lane_down   by whoever notices a death; stripes go on by what is left
//
// The lower rank has called the higher one, so it knows an address that works. Where its TCP does not get there (a firewall, no listener)
// it offers a lane in its turn, with a number of its own, and the higher one connects. Where TCP passes neither way, bulk stays on the
// link.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "base/time.h"
#include "io/address.h"
#include "io/loop.h"
#include "io/random.h"
#include "io/timer.h"
#include "mesh/control_lane.h"
#include "mesh/incoming_transfers.h"
#include "mesh/outgoing_transfers.h"
#include "mesh/peer_lane.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/record_keys.h"
#include "wire/lane_messages.h"

namespace nexar::mesh {

// A node's way to TCP, for all its peers.
struct LaneEnvironment {
  io::Loop& loop;
  io::Random& random;
  const base::Logger& log;
  transport::tcp::Listener* listener = nullptr;  // null: nothing is offered
  std::function<Result<std::unique_ptr<transport::tcp::Lane>>(const io::Address&, const wire::LaneTicket&, transport::tcp::LaneKeys,
                                                              transport::tcp::LaneHandler&)>
      connect{};
  bool plain = false;   // payloads in clear
  bool forced = false;  // opened with the link, and for every bulk byte
  // Lanes to each peer that carry at once, at most kLowersFirstLane. One is as fast as a line that loses nothing: two sockets that share it
  // lose more packets than one, and one thread does the work of both.
  std::uint16_t carrying = 1;
  base::Duration pause_min = std::chrono::seconds(10);  // before a lane that failed is offered again
  transport::tcp::RecordLimits records{};

  // Where a single lane carries, another is open for when it dies.
  std::uint32_t count() const { return std::max<std::uint32_t>(carrying, 2); }
};

// What is known of a peer's lanes.
struct LaneReport {
  int open = 0;
  std::uint64_t opened = 0;
  std::uint64_t died = 0;  // after they had been open
  std::string reason;      // why there are no more of them
  transport::LaneCounters traffic;
};

// Pings of lanes are told from others by their numbers.
inline constexpr std::uint64_t kFirstPing = std::uint64_t{1} << 63;

class Lanes final : private transport::tcp::LaneAcceptor, private PeerLane::Owner {
 public:
  struct Surroundings {
    Rank self;
    Rank peer;
    Epoch epoch;
    base::ByteSpan scratch;
    const LaneEnvironment* environment;  // null: there are never any
    ControlLane& control;
    OutgoingTransfers& outgoing;
    IncomingTransfers& incoming;
    std::function<bool(const wire::Header&)> is_drained;
    std::function<void()> settled;  // forced lanes are open, or cannot be opened
  };

  explicit Lanes(Surroundings surroundings);
  ~Lanes() override;

  // The link can be used; it has ended, and the lanes end with it.
  void begin(transport::Link& link);
  void end();

  // A large transfer begins, either way.
  void want();

  // Takes what has come by them.
  void drain();

  // Control frames.
  Result<void> on_offer(const wire::LaneOffer& offer);
  Result<void> on_answer(const wire::LaneAnswer& answer);
  Result<void> on_down(const wire::LaneDown& down);
  void on_pong(std::uint64_t nonce);

  // Somebody may wait for what has come by the link: lanes do less at a time for a while.
  void hurry();

  LaneReport report() const;
  bool is_settled() const { return settled_; }

 private:
  struct Slot {
    std::uint32_t generation = 0;  // the last that was offered
    std::unique_ptr<PeerLane> lane{};
    bool carries = false;
    std::optional<wire::LaneTicket> ticket{};  // of an offer that nobody has come for
    base::Time offer_ends{};
    bool is_used() const { return lane != nullptr || ticket; }
  };

  bool is_higher() const { return around_.self > around_.peer; }
  bool offers(std::uint32_t lane) const { return (lane < wire::kLowersFirstLane) == is_higher(); }
  // Of the two lanes of which one is to be open, by either's number: whether one of them is, or may come to be.
  bool has_either(std::uint32_t lane) const;
  void offer(std::uint32_t lane);
  void offer_instead_of(std::uint32_t lane);
  Result<transport::tcp::LaneKeys> keys(const wire::LaneName& name, transport::tcp::Side side) const;
  PeerLane& make(const wire::LaneName& name);
  void decline(const wire::LaneName& name, wire::LaneAnswerStatus status, const std::string& why);
  void fail(Slot& slot, const std::string& why);
  void drop(Slot& slot);
  static bool names(const Slot& slot, const wire::LaneName& name) { return slot.generation == name.generation && slot.is_used(); }
  int open_lanes() const;
  void employ();
  void settle();
  void tick();
  void arm();
  bool check_lanes();

  // transport::tcp::LaneAcceptor
  void on_lane(const wire::LaneTicket& ticket, std::unique_ptr<transport::tcp::Lane> lane) override;

  // PeerLane::Owner
  bool is_drained(const wire::Header& header) override { return around_.is_drained(header); }
  void on_lane_busy() override { arm(); }
  void on_lane_open(PeerLane& lane) override;
  void on_lane_ended(PeerLane& lane, const Error& error) override;

  const Surroundings around_;
  transport::Link* link_ = nullptr;
  bool settled_ = false;
  bool move_due_ = false;  // transfers that began by the link may go on by lanes
  std::array<Slot, wire::kTcpLanesMax> slots_{};
  WayNumber next_way_ = 1;
  base::Time offer_again_{};  // not before
  base::Duration pause_{};
  std::optional<io::Timer> timer_;
  std::uint64_t ping_ = 0;  // that the peer has not answered; 0: it has
  std::uint64_t next_ping_ = kFirstPing;
  bool asked_ = false;  // a ping was sent when lanes were last checked, or before
  LaneReport ended_;    // what lanes that are gone have moved
};

}  // namespace nexar::mesh
