// A link through shared memory.
//
// Each lane is a ring in each direction; a frame is written into it whole or, where it does not fit, in pieces as the reader makes room.
// Bulk frames of transfers that stay in place may only be described: the reader then takes the bytes from the writer's memory itself.
//
// Thread: engine. Owned by its endpoint, which destroys it after it has ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/address.h"
#include "io/loop.h"
#include "io/process_memory.h"
#include "transport/link.h"
#include "transport/shm/channel.h"
#include "transport/shm/ring.h"
#include "transport/shm/segment.h"

namespace nexar::transport::shm {

class Endpoint;

// Bytes that a lane may hold here because its ring is full: several of the largest frames, as on other kinds of links. Bulk has no need of
// it but for the rest of one frame.
inline constexpr std::array<std::size_t, kLanes> kBacklogBytesMax = {256u << 10, 512u << 10, 1u << 20, 1u << 20};

inline constexpr std::size_t kBulk = static_cast<std::size_t>(wire::Lane::kBulk);

// What a link needs to know of its two ends.
struct Ends {
  int here = 0;  // local ranks
  int there = 0;
  bool reads = false;       // we may read the peer's memory
  bool peer_reads = false;  // and the peer ours
  io::Address address{};    // where the peer's other link leads
};

class Connection final : public Link, private io::Watcher {
 public:
  enum class State : std::uint8_t {
    kOpen,
    kDraining,  // close() was called; what is queued is still sent
    kFarewell,  // the goodbye is on its way
    kEnded,
  };

  Connection(Endpoint& endpoint, const HostSegment& segment, Ends ends, Channel channel, LinkHandler& handler);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins to listen for the other end's last word. Once.
  Result<void> watch();

  State state() const { return state_; }
  int there() const { return ends_.there; }

  // Tells the other end of memory that is lent, soon. False when too much waits to be told.
  bool tell(SentLoan loan);

  // Shows the other end what was sent.
  void flush();

  // Reads, writes, and carries out what was asked for meanwhile, a bounded amount. Returns whether there was anything to do.
  bool turn();

  // Whether a turn would have something to do. Sequentially consistent with what the other end does before it looks who is asleep.
  bool has_work();

  // Reads everything that is here now.
  void drain();

  // Link
  [[nodiscard]] bool send(const wire::Header& header, base::ByteView payload) override;
  void set_bulk_source(BulkSource* source) override;
  void bulk_ready() override { bulk_waits_ = false; }
  void let_go(std::uint64_t transfer) override;
  bool is_memory() const override { return true; }
  void set_handler(LinkHandler& handler) override { handler_ = &handler; }
  using Link::close;
  void close(wire::GoodbyeReason reason, std::string_view text) override;
  void abort(std::string_view reason) override;
  void expel(std::string_view reason) override;
  const crypto::Certificate* peer_certificate() const override { return nullptr; }  // who the peer is was found out on the other link
  const io::Address& peer_address() const override { return ends_.address; }
  Result<void> export_key(std::string_view label, base::ByteView context, base::ByteSpan key) const override;
  const LaneCounters& counters(wire::Lane lane) const override { return counters_[static_cast<std::size_t>(lane)]; }

 private:
  struct OutgoingLane {
    explicit OutgoingLane(RingWriter writer) : ring(writer) {}
    std::size_t backlog_bytes() const { return backlog.size() - backlog_at; }

    RingWriter ring;
    std::vector<std::byte> backlog{};  // what did not fit into the ring, from backlog_at on
    std::size_t backlog_at = 0;
    bool owner_waits = false;  // a frame was refused, and on_room() is due
  };
  struct IncomingLane {
    explicit IncomingLane(RingReader reader) : ring(reader) {}

    RingReader ring;
    wire::Header header{};
    Sink* sink = nullptr;
    std::uint32_t left = 0;  // bytes of payload still to come
    bool dropped = false;    // nobody is told of the frame that is arriving
  };
  // Where a described bulk frame is, and the lease that says whether it is still meant. A frame that is copied has the lease of its
  // transfer too, if there is one: of what was taken back nothing may come after a gap.
  struct Reference {
    std::uint64_t address = 0;     // 0: the payload follows in the ring
    std::uint64_t slot = kLeases;  // kLeases: none
    std::uint64_t lease = 0;
  };
  static constexpr std::size_t kReferenceBytes = 3 * sizeof(std::uint64_t);

  void on_ready(io::Readiness ready) override;
  void send_loans();
  void take_loans(std::vector<ReceivedLoan> loans);

  // Sending (connection_lanes.cc).
  void put(OutgoingLane& lane, base::ByteView start, base::ByteView payload);
  void put_frame(const wire::Header& header, const Reference* reference, base::ByteView payload);
  bool pump(OutgoingLane& lane);
  bool refill_bulk();
  Reference refer(const BulkSource::Frame& frame);
  void show();
  void tell_waiting();
  bool is_all_read();

  // Receiving (connection_lanes.cc).
  bool read_lane(std::size_t lane, std::size_t most);
  Result<void> read_frames(std::size_t lane, std::size_t most, bool& read);
  Result<void> begin_frame(std::size_t lane);
  Result<void> end_frame(IncomingLane& lane);
  Result<void> fetch(IncomingLane& lane, const Reference& reference);
  bool is_current(const Reference& reference) const;

  // The end.
  bool settle();
  void announce_room();
  void say_goodbye();
  void end(LinkEnd end, std::optional<LastWord> word);
  LinkEnd end_told_by_peer(const Channel::Last& last) const;
  std::string who() const;

  Endpoint& endpoint_;
  Ends ends_;
  Channel channel_;
  LinkHandler* handler_;
  io::ProcessMemory memory_;  // the peer's
  PairLines& out_lines_;
  PairLines& in_lines_;
  std::array<OutgoingLane, kLanes> outgoing_;
  std::array<IncomingLane, kLanes> incoming_;
  std::array<LaneCounters, kLanes> counters_{};
  BulkSource* bulk_ = nullptr;
  bool bulk_waits_ = true;                                   // the source had nothing
  std::array<std::uint64_t, kLeases> leases_{};              // the current ones
  std::unordered_map<std::uint64_t, std::size_t> referred_;  // transfers and the slots of their leases
  std::vector<std::size_t> free_slots_;
  bool told_waiting_ = false;
  std::size_t unshown_ = 0;     // frames that were sent and that the other end cannot see yet
  bool flush_due_ = false;      // the endpoint knows
  std::deque<SentLoan> loans_;  // that the socket has not taken
  bool watched_ = false;
  State state_ = State::kOpen;
  bool abort_due_ = false;
  bool expels_ = false;
  wire::GoodbyeReason close_reason_ = wire::GoodbyeReason::kLeaving;
  std::string close_text_;
  std::optional<LinkEnd> fault_;  // what the peer did that ends the link
};

}  // namespace nexar::transport::shm
