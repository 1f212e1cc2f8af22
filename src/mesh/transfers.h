// Large transfers: bytes that flow only under a grant, in stripes, over whatever ways there are to the peer, and arrive exactly once.
//
//   sender: OutgoingTransfers                     receiver: IncomingTransfers
//     announces, or waits to be granted ahead       grant(number, incoming)  or  grant_ahead(call, incoming)
//     begin(grant, outgoing)                        its sink takes the bytes: each stripe's in order, stripes independently
//     done when every stripe's last watermark       done when every stripe is there
//     is back
//
// Either end may cancel; the other's `done` then says so. A way that dies costs time, never a byte: the receiver says how far each stripe
// is, and the sender goes on from there by another way, out of the same memory. So an outgoing transfer's memory keeps its bytes until
// `done`.
//
// Stripes begin, and frames end, at multiples of kTransferAlignment from the transfer's start, also after a way has died; only the
// transfer's last byte may lie anywhere. So elements of up to that size are never split between two calls of a sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "mesh/message.h"
#include "nexar/message.h"
#include "nexar/result.h"
#include "wire/limits.h"
#include "wire/matching_messages.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

inline constexpr std::size_t kTransferAlignment = 64;
static_assert(wire::kBulkBytes % kTransferAlignment == 0 && wire::kRecordBytesMax % kTransferAlignment == 0);

// From here on a transfer goes by TCP lanes where there are some: below, the link's own bytes are as fast.
inline constexpr std::uint64_t kLaneBytesMin = 64u << 10;

// Less than this is not worth a stripe of its own.
inline constexpr std::uint64_t kStripeBytesMin = 1u << 20;

// The receiver says how far a stripe is at every multiple of this, so that the sender can tell a slow way from a dead one.
inline constexpr std::uint64_t kWatermarkBytes = 4u << 20;

// Up to this size it matters to a collective how many packets its control frames take: one of 11 us, for both ends together, when a MiB
// takes 450.
inline constexpr std::uint64_t kHeldWatermarkBytesMax = 1u << 20;

// Where an incoming transfer's bytes go. Its calls may not call the mesh back.
class TransferSink {
 public:
  virtual ~TransferSink() = default;

  // Bytes from `offset` of the transfer on, authenticated, each exactly once; valid only during the call. Begins and ends at a multiple of
  // kTransferAlignment or at the end, unless the sink has placed what is before.
  virtual void take(std::uint64_t offset, base::ByteView bytes) = 0;

  // As of a transport::Sink: a sink that only stores may name the memory. It bears that the last bytes before a way died, fewer than
  // kTransferAlignment of them, come again.
  virtual std::size_t place(std::uint64_t offset, std::size_t bytes, std::span<base::ByteSpan> regions) {
    (void)offset, (void)bytes, (void)regions;
    return 0;
  }
  virtual void placed(std::uint64_t offset, std::size_t bytes) { (void)offset, (void)bytes; }
};

// Leaves the transfers of calls in a table of them by number, and takes the others out.
template <typename Table>
Table take_others(Table& transfers) {
  Table others = std::exchange(transfers, {});
  for (auto at = others.begin(); at != others.end();) {
    const auto next = std::next(at);
    if (wire::is_of_call(at->first)) transfers.insert(others.extract(at));
    at = next;
  }
  return others;
}

// Called once when a transfer has ended, unless it was cancelled here: with success; with kCancelled or kMismatch when the other end does
// not want it any more; with the verdict when the peer is lost or the epoch is over. It may call the mesh back.
using TransferDone = std::function<void(Result<void>)>;

// What a transfer belongs to, for frames and for sentences.
struct TransferOwner {
  GroupId group = 0;
  wire::Kind kind = wire::Kind::kPointToPoint;
  std::uint64_t key = 0;  // tag, or sequence number of a collective
};

struct OutgoingTransfer {
  TransferOwner owner{};
  std::span<const ConstRegion> regions{};  // list and memory stay until `done`
  TransferDone done{};
};

struct IncomingTransfer {
  TransferOwner owner{};
  std::uint64_t bytes = 0;
  TransferSink* sink = nullptr;  // stays until `done`
  TransferDone done{};
};

}  // namespace nexar::mesh
