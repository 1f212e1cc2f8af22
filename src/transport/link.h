// A link to one peer: frames on independent lanes.
//
// Frames of one lane arrive in order, exactly once, until the link ends; lanes do not wait for each other, and of frames that wait to be
// sent those of the more urgent lane go first. The receiver takes payload as it arrives, into a sink that the owner names when it sees the
// header.
//
// Thread: engine, for every class here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "crypto/certificate.h"
#include "io/address.h"
#include "nexar/error.h"
#include "nexar/result.h"
#include "wire/header.h"
#include "wire/link_messages.h"

namespace nexar::transport {

// Where the payload of a frame goes, piece by piece.
class Sink {
 public:
  virtual ~Sink() = default;
  // Takes the next bytes, which are valid only during the call.
  virtual void take(base::ByteView bytes) = 0;

  // A sink that only stores may name where: the memory of the next `bytes` of payload, into which they are then decrypted, or read, before
  // it is known that nobody changed them. Fills `regions` with spans that together have exactly that many bytes and returns how many spans
  // they are; 0, as when there is no room for all of them, asks for take(). Spans are not used after the call of the link that asked.
  virtual std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) {
    (void)bytes, (void)regions;
    return 0;
  }

  // The next `bytes` are where place() said, and are what the peer sent. Follows place(), unless that was in vain: after a forged record
  // nothing comes any more, and the memory holds zeros.
  virtual void placed(std::size_t bytes) { (void)bytes; }
};

// How a link ended.
struct LinkEnd {
  enum class Kind : std::uint8_t {
    kClosedHere,    // close() was called here and everything before it was acknowledged
    kClosedByPeer,  // the peer closed, after everything it had sent
    kRefused,       // one side did not accept the other's identity, or the peer what we sent
    kProtocol,      // the peer sent what nobody may send
    kExpelled,      // the peer called expel(): this node is no member for it any more
    kBroken,        // silence, or the network
  };
  Kind kind;
  Error error;
};

// Hears what happens on a link. Called only from the event loop, never from inside a call to the link; it may call the link back.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;

  // The peer is authenticated and frames can be sent. Comes once, before anything but on_end.
  virtual void on_ready() = 0;

  // A frame begins; its payload goes to the sink, or nowhere when that is null. An error ends the link, with the sentence as the reason.
  virtual Result<Sink*> on_frame(const wire::Header& header) = 0;

  // The whole payload of that frame has come.
  virtual Result<void> on_frame_end(const wire::Header& header) = 0;

  // A lane that refused a frame has room again.
  virtual void on_room(wire::Lane lane) = 0;

  // The last call: nothing is sent or received any more, and the link is gone when it returns.
  virtual void on_end(const LinkEnd& end) = 0;
};

// Supplies bulk frames one at a time, when the link can take one. The payload is copied before next() is called again; one that stays may
// be referred to until the link returns to its loop.
class BulkSource {
 public:
  struct Frame {
    wire::Header header;
    base::ByteView payload;
    bool stays = false;  // the payload stays where it is until the link is told to let its transfer go
  };

  virtual ~BulkSource() = default;
  // At most `bytes_max` of payload: a multiple of kBulkBytes, and kBulkBytesMax or less.
  virtual std::optional<Frame> next(std::size_t bytes_max) = 0;

  // Whether there is one now.
  virtual bool has_next() const = 0;
};

struct LaneCounters {
  std::uint64_t frames_sent = 0;
  std::uint64_t bytes_sent = 0;  // headers included
  std::uint64_t frames_received = 0;
  std::uint64_t bytes_received = 0;
};

// Belongs to what made it, and lives until its handler's on_end has returned.
class Link {
 public:
  // Copies a frame into its lane. False when the lane holds as much as it may: on_room() comes when it does not any more. Not for bulk
  // frames.
  [[nodiscard]] virtual bool send(const wire::Header& header, base::ByteView payload) = 0;

  // Names where bulk frames come from, and says that there are some again. The source outlives the link or is replaced by null.
  virtual void set_bulk_source(BulkSource* source) = 0;
  virtual void bulk_ready() = 0;

  // The bytes of this transfer, which stayed, are no longer what was meant, or need not be any more: nothing that the peer takes of them
  // after this is delivered.
  virtual void let_go(std::uint64_t transfer) { (void)transfer; }

  // Whether it is memory that both ends share, so that no other way carries bulk better.
  virtual bool is_memory() const { return false; }

  // From here on another handler hears what happens; nothing is repeated. Not while a frame of a lane other than control is arriving.
  virtual void set_handler(LinkHandler& handler) = 0;

  // Sends what is queued, waits until the peer has it, says goodbye as the last frame of the control lane, waits until the peer has that,
  // and ends the link. So a departure is never taken for a loss, whatever packet is lost. Meanwhile control frames are still sent, until
  // the goodbye.
  virtual void close(wire::GoodbyeReason reason, std::string_view text) = 0;
  void close(std::string_view text) { close(wire::GoodbyeReason::kLeaving, text); }

  // Ends the link now. `reason` reaches the peer if anything does.
  virtual void abort(std::string_view reason) = 0;

  // The same, and the peer learns that it is no member any more.
  virtual void expel(std::string_view reason) = 0;

  // The peer's certificate; null before on_ready, and when none was asked for.
  virtual const crypto::Certificate* peer_certificate() const = 0;

  // Where the peer is.
  virtual const io::Address& peer_address() const = 0;

  // The shortest time that the way to the peer and back has taken; zero where there is none, or nothing has been measured.
  virtual base::Duration shortest_round_trip() const { return {}; }

  // Keying material that both ends of this link and nobody else can compute, for `label` and `context`. After on_ready.
  virtual Result<void> export_key(std::string_view label, base::ByteView context, base::ByteSpan key) const = 0;

  virtual const LaneCounters& counters(wire::Lane lane) const = 0;

 protected:
  ~Link() = default;
};

}  // namespace nexar::transport
