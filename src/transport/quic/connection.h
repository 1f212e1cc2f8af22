// One QUIC connection: a link.
//
// A protocol machine without I/O: packets come in by read(), go out by write_packet(), time is an argument. The endpoint owns the socket
// and the timers and calls it; ngtcp2 does the protocol. Each lane is one unidirectional stream in each direction, opened in the order of
// the lanes when the handshake is done, so that a stream's number tells its lane.
//
// Thread: engine. Owned by its endpoint, which destroys it after it has ended.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "io/address.h"
#include "transport/link.h"
#include "transport/quic/compat.h"
#include "transport/quic/packet_size.h"
#include "transport/quic/send_queue.h"
#include "transport/quic/tls.h"
#include "wire/frame_parser.h"

namespace nexar::transport::quic {

class Endpoint;

// Connection ids of ours are this long, so that an integer is their key; what a client chooses at first may be longer and is cut.
inline constexpr std::size_t kConnectionIdBytes = 8;
std::uint64_t key_of(const std::uint8_t* id, std::size_t size);

inline constexpr std::size_t kLanes = 4;

// How long an acknowledgement waits for a packet that takes it along, of so little at most: less than a peer waits before it asks, which is
// more than the millisecond that we say in the handshake. A round trip's eighth, as ngtcp2 has it, is a few microseconds on a fast network.
inline constexpr base::Duration kAcknowledgementWaits = std::chrono::microseconds(800);
inline constexpr std::size_t kUnansweredPacketsMax = 8;
inline constexpr std::size_t kUnansweredBytesMax = 2048;

// Bytes that a lane may hold until the peer acknowledges them. Control, rpc and data hold several of the largest frames. Bulk is bounded by
// what may stand in the network in front of an urgent frame: a megabyte is less than a millisecond at the speed of one core.
inline constexpr std::array<std::size_t, kLanes> kLaneBytesMax = {256u << 10, 512u << 10, 1u << 20, 1u << 20};

class Connection final : public Link {
 public:
  enum class State : std::uint8_t {
    kHandshake,
    kOpen,
    kDraining,  // close() was called; what is queued is still sent
    kFarewell,  // the goodbye is on its way
    kEnded,     // only the closing packet is repeated
  };

  Connection(Endpoint& endpoint, const io::Address& peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Called once, by the endpoint. `first` is the client's first packet.
  Result<void> start_client(const TlsContext& tls, PeerVerifier* verifier, base::Time now);
  struct FirstPacket {
    const ngtcp2_pkt_hd& header;
    const ngtcp2_cid* original_dcid;  // from a Retry token; null when there was none
  };
  Result<void> start_server(const TlsContext& tls, PeerVerifier* verifier, const FirstPacket& first, bool observers, base::Time now);

  State state() const { return state_; }
  bool is_server() const { return server_; }
  bool authenticated() const { return outgoing_.front().stream >= 0; }  // lanes are opened when the handshake is done

  // A packet for this connection has come.
  void read(base::ByteView packet, base::Time now);

  // Writes the next packet; returns its length, or 0 when there is nothing to send or it may not be sent now.
  std::size_t write_packet(base::ByteSpan out, base::Time now);

  // A burst has been sent: the next one waits for as long as the rate of the path asks for.
  void pace(base::Time now);

  // When handle_expiry() must be called; Time::max() for never.
  base::Time expiry() const;
  void handle_expiry(base::Time now);

  // Whether what it has to send should not wait for the next turn: frames, the end, or acknowledgements of much.
  bool is_urgent(base::Time now) const;

  // The largest packet to be written now.
  std::size_t packet_bytes() const;

  // The path carries packets of this size at most.
  void set_path_bytes(std::size_t bytes) { packet_size_.set_full(bytes); }

  // Carries out what was asked for meanwhile (close, abort, a handler's error) and tells the handler of room and of the end. The endpoint
  // calls it outside of ngtcp2.
  void settle(base::Time now);

  // Link
  [[nodiscard]] bool send(const wire::Header& header, base::ByteView payload) override;
  void set_bulk_source(BulkSource* source) override;
  void bulk_ready() override;
  void set_handler(LinkHandler& handler) override { handler_ = &handler; }
  using Link::close;
  void close(wire::GoodbyeReason reason, std::string_view text) override;
  void abort(std::string_view reason) override;
  void expel(std::string_view reason) override;
  Result<void> export_key(std::string_view label, base::ByteView context, base::ByteSpan key) const override;
  const crypto::Certificate* peer_certificate() const override { return tls_ ? tls_->peer() : nullptr; }
  bool is_observed() const { return tls_ != nullptr && tls_->is_observed(); }
  const io::Address& peer_address() const override { return peer_; }
  base::Duration shortest_round_trip() const override;
  const LaneCounters& counters(wire::Lane lane) const override { return counters_[static_cast<std::size_t>(lane)]; }

 private:
  friend struct Callbacks;
  friend class Endpoint;  // for what it keeps here: dirty_ and ids_

  struct OutgoingLane {
    OutgoingLane(BlockPool& pool, std::size_t bytes_max) : queue(pool, bytes_max) {}
    SendQueue queue;
    std::int64_t stream = -1;
    bool owner_waits = false;  // a frame was refused, and on_room() is due
  };

  // Turns the bytes of one lane into calls of the handler.
  class IncomingLane final : public wire::FrameSink {
   public:
    IncomingLane(Connection& connection, wire::Lane lane) : connection_(connection), parser_(lane) {}
    Result<void> parse(base::ByteView bytes);
    Result<void> on_frame(const wire::Header& header) override;
    Result<void> on_payload(base::ByteView piece, bool last) override;

   private:
    Connection& connection_;
    wire::FrameParser parser_;
    wire::Header header_{};
    Sink* sink_ = nullptr;
  };

  Result<void> finish_start(const TlsContext& tls, TlsSession::Side side, PeerVerifier* verifier, bool observers = false);

  // Lanes (connection_lanes.cc).
  int open_streams();
  Result<void> receive_stream(std::int64_t stream, base::ByteView bytes);
  void acknowledged(std::int64_t stream, std::uint64_t offset);
  void queue_frame(OutgoingLane& lane, const wire::Header& header, base::ByteView payload);
  void refill_bulk();
  bool is_held_back(const OutgoingLane& lane) const;
  bool keeps_acknowledgement(base::Time now) const;
  void answered(base::Time now);
  OutgoingLane* most_urgent(const std::array<bool, kLanes>& blocked);
  bool has_in_flight() const;
  void announce_ready();
  void announce_room();

  // The end.
  bool everything_acknowledged() const;
  void say_goodbye();
  void fail(int library_error, base::Time now);
  LinkEnd end_told_by_peer() const;
  void end(const LinkEnd& end, const CloseReason* reason, base::Time now);

  Endpoint& endpoint_;
  bool dirty_ = false;              // in the endpoint's list
  std::vector<std::uint64_t> ids_;  // under which the endpoint finds it
  std::vector<std::byte> closing_packet_;
  io::Address peer_;
  bool server_ = false;
  State state_ = State::kHandshake;
  ngtcp2_conn* conn_ = nullptr;
  std::unique_ptr<TlsSession> tls_;
  LinkHandler* handler_ = nullptr;
  BulkSource* bulk_ = nullptr;
  bool bulk_waits_ = false;  // the source had nothing
  std::array<OutgoingLane, kLanes> outgoing_;
  std::array<IncomingLane, kLanes> incoming_;
  std::array<LaneCounters, kLanes> counters_{};
  PacketSize packet_size_;
  bool progress_ = false;               // the packet being read acknowledges frames
  bool brought_ = false;                // it brings some
  std::size_t unanswered_packets_ = 0;  // read since the last was written
  std::size_t unanswered_bytes_ = 0;
  std::optional<base::Time> unanswered_since_;  // since when an acknowledgement may be due
  bool put_off_ = false;                        // it was, and with it whatever else there was but frames
  bool ready_due_ = false;
  bool room_due_ = false;
  bool abort_due_ = false;
  bool expels_ = false;  // when it aborts
  wire::GoodbyeReason close_reason_ = wire::GoodbyeReason::kLeaving;
  std::string close_text_;
  std::optional<Error> handler_error_;  // what the handler answered to a frame
};

}  // namespace nexar::transport::quic
