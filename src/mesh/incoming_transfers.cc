#include "mesh/incoming_transfers.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/transfer_text.h"

namespace nexar::mesh {

void IncomingTransfers::grant(std::uint64_t transfer, IncomingTransfer incoming) {
  start({.transfer = transfer, .bytes = incoming.bytes, .stripes = stripes_for(incoming.bytes)}, std::move(incoming));
}

std::uint64_t IncomingTransfers::grant_ahead(const AheadOf& call, IncomingTransfer incoming) {
  const std::uint64_t transfer = next_ahead_++ | wire::kChosenByReceiver;
  const wire::Grant grant{.transfer = transfer,
                          .bytes = incoming.bytes,
                          .stripes = stripes_for(incoming.bytes),
                          .ahead = true,
                          .sequence = call.sequence,
                          .step = call.step,
                          .fingerprint = call.fingerprint};
  start(grant, std::move(incoming));
  return transfer;
}

void IncomingTransfers::start(const wire::Grant& grant, IncomingTransfer incoming) {
  NEXAR_ASSERT(incoming.bytes > 0 && incoming.sink != nullptr, "what is granted has bytes and a sink for them");
  const GroupId group = incoming.owner.group;
  Transfer transfer{std::move(incoming), std::vector<Stripe>(grant.stripes), 0};
  for (std::uint16_t number = 0; number < grant.stripes; ++number) {
    Stripe& stripe = transfer.stripes[number];
    stripe.range = grant.stripe(number);
    stripe.generation = grant.generation;
    stripe.position = stripe.range.begin;
    if (!stripe.complete()) ++transfer.incomplete;
  }
  const bool fresh = transfers_.emplace(grant.transfer, std::move(transfer)).second;
  NEXAR_ASSERT(fresh, "a transfer is granted once");
  control_.send(grant, group);
  if (wanted_ && grant.bytes >= kLaneBytesMin) wanted_();
}

std::uint16_t IncomingTransfers::stripes_for(std::uint64_t bytes) const {
  return static_cast<std::uint16_t>(std::clamp<std::uint64_t>(bytes / kStripeBytesMin, 1, std::max<std::uint16_t>(lanes_, 1)));
}

bool IncomingTransfers::cancel(std::uint64_t transfer, wire::RefuseReason reason) {
  const auto found = transfers_.find(transfer);
  if (found == transfers_.end()) return false;
  const GroupId group = found->second.incoming.owner.group;
  transfers_.erase(found);
  control_.send(wire::Refuse{.transfer = transfer, .reason = reason}, group);
  return true;
}

bool IncomingTransfers::on_withdraw(const wire::Withdraw& withdraw) {
  const auto found = transfers_.find(withdraw.transfer);
  if (found == transfers_.end()) return false;
  const IncomingTransfer ended = std::move(found->second.incoming);
  transfers_.erase(found);
  ended.done(withdrawal(peer_, ended.owner));
  return true;
}

void IncomingTransfers::end_all_but_calls(const Error& verdict) {
  const auto transfers = take_others(transfers_);
  for (const auto& [number, transfer] : transfers) transfer.incoming.done(verdict);
}

void IncomingTransfers::way_ended(WayNumber way) { leave_way(way, 1); }

void IncomingTransfers::leave_way(WayNumber way, std::uint64_t bytes_left) {
  std::vector<std::uint64_t> worn_out;
  for (auto& [number, transfer] : transfers_)
    if (!resume(number, transfer, way, bytes_left)) worn_out.push_back(number);
  for (const std::uint64_t number : worn_out) {
    const auto found = transfers_.find(number);
    if (found == transfers_.end()) continue;
    const IncomingTransfer ended = found->second.incoming;
    cancel(number);
    ended.done(
        Error(ErrorCode::kIo, fmt::format("the lanes to rank {} died too often under {}", peer_, describe(ended.owner))).with_rank(peer_));
  }
}

// A stripe of which nothing has come yet may have been on its way there. False when there is no further generation.
bool IncomingTransfers::resume(std::uint64_t number, Transfer& transfer, WayNumber way, std::uint64_t bytes_left) {
  for (std::uint16_t index = 0; index < transfer.stripes.size(); ++index) {
    Stripe& stripe = transfer.stripes[index];
    if (stripe.range.end - stripe.position < bytes_left || stripe.way.value_or(way) != way) continue;
    if (stripe.generation == std::numeric_limits<std::uint16_t>::max()) return false;
    ++stripe.generation;
    stripe.way.reset();
    stripe.carried = 0;
    stripe.position -= stripe.position % kTransferAlignment;
    control_.send(
        wire::Resume{.transfer = number, .stripe = index, .generation = stripe.generation, .bytes = stripe.position - stripe.range.begin},
        transfer.incoming.owner.group);
  }
  return true;
}

// The stripe that a frame belongs to; null when nobody wants it (any more): the sender may not know yet.
IncomingTransfers::Stripe* IncomingTransfers::find(const wire::Bulk& frame, IncomingTransfer** incoming) {
  const auto found = transfers_.find(frame.transfer);
  if (found == transfers_.end() || frame.stripe >= found->second.stripes.size()) return nullptr;
  Stripe& stripe = found->second.stripes[frame.stripe];
  if (frame.generation != stripe.generation) return nullptr;
  *incoming = &found->second.incoming;
  return &stripe;
}

void IncomingTransfers::take(const wire::Bulk& frame, base::ByteView bytes) {
  IncomingTransfer* incoming = nullptr;
  if (Stripe* stripe = find(frame, &incoming); stripe != nullptr) deliver(*stripe, *incoming->sink, bytes);
}

// Up to the last multiple of the alignment, or to the end of the stripe, which is one or the end of the transfer. The rest is carried.
void IncomingTransfers::deliver(Stripe& stripe, TransferSink& sink, base::ByteView bytes) {
  if (stripe.carried > 0) {
    const std::size_t whole = static_cast<std::size_t>(
        std::min<std::uint64_t>(kTransferAlignment - stripe.position % kTransferAlignment, stripe.range.end - stripe.position));
    const std::size_t added = std::min(whole - stripe.carried, bytes.size());
    std::memcpy(stripe.carry.data() + stripe.carried, bytes.data(), added);
    stripe.carried += added;
    bytes = bytes.subspan(added);
    if (stripe.carried < whole) return;
    sink.take(stripe.position, base::ByteView(stripe.carry).first(whole));
    stripe.position += std::exchange(stripe.carried, 0);
  }
  const std::uint64_t end = stripe.position + bytes.size();
  const std::uint64_t cut = end == stripe.range.end ? end : std::max(stripe.position, end - end % kTransferAlignment);
  const auto now = static_cast<std::size_t>(cut - stripe.position);
  if (now > 0) sink.take(stripe.position, bytes.first(now));
  stripe.position = cut;
  stripe.carried = bytes.size() - now;
  if (stripe.carried > 0) std::memcpy(stripe.carry.data(), bytes.data() + now, stripe.carried);
}

Result<transport::Sink*> IncomingTransfers::Arrivals::on_frame(const wire::Header& header) {
  const Result<wire::Bulk> frame = wire::read_header<wire::Bulk>(header);
  if (!frame) return frame.error();
  frame_.reset();
  IncomingTransfer* incoming = nullptr;
  Stripe* stripe = transfers_.find(*frame, &incoming);
  if (stripe == nullptr) return static_cast<transport::Sink*>(nullptr);
  const std::uint64_t due = stripe->position + stripe->carried;
  if (frame->offset != due || header.length > stripe->range.end - due)
    return Error(ErrorCode::kRefused, fmt::format("rank {} sent bytes {} to {} of a transfer that has {} of {}", transfers_.peer_,
                                                  frame->offset, frame->offset + header.length, due, stripe->range.end));
  stripe->way = way_;
  frame_ = *frame;
  return static_cast<transport::Sink*>(this);
}

void IncomingTransfers::Arrivals::take(base::ByteView bytes) { transfers_.take(*frame_, bytes); }

std::size_t IncomingTransfers::Arrivals::place(std::size_t bytes, std::span<base::ByteSpan> regions) {
  IncomingTransfer* incoming = nullptr;
  const Stripe* stripe = transfers_.find(*frame_, &incoming);
  return stripe == nullptr || stripe->carried > 0 ? 0 : incoming->sink->place(stripe->position, bytes, regions);
}

void IncomingTransfers::Arrivals::placed(std::size_t bytes) {
  IncomingTransfer* incoming = nullptr;
  Stripe* stripe = transfers_.find(*frame_, &incoming);
  NEXAR_ASSERT(stripe != nullptr, "between a place and its use nothing happens");
  incoming->sink->placed(stripe->position, bytes);
  stripe->position += bytes;
}

// The sender of a collective's message that has more for this rank needs nothing but to know some time that this one is there: the next
// watermark takes this one along. On the link itself acknowledgements do.
bool IncomingTransfers::Arrivals::may_wait(const IncomingTransfer& incoming) const {
  return way_ != kLinkWay && incoming.owner.kind == wire::Kind::kCollective && incoming.bytes <= kHeldWatermarkBytesMax &&
         transfers_.transfers_.size() > 1;
}

Result<void> IncomingTransfers::Arrivals::on_frame_end(const wire::Header&) {
  IncomingTransfer* incoming = nullptr;
  if (!frame_) return {};
  const wire::Bulk frame = *std::exchange(frame_, std::nullopt);
  const Stripe* stripe = transfers_.find(frame, &incoming);
  if (stripe == nullptr) return {};
  const bool passed = stripe->position / kWatermarkBytes != frame.offset / kWatermarkBytes;
  if (!stripe->complete() && !passed) return {};
  const wire::Watermark mark{.transfer = frame.transfer,
                             .stripe = frame.stripe,
                             .generation = frame.generation,
                             .bytes = stripe->position - stripe->range.begin,
                             .final = stripe->complete()};
  if (mark.final && may_wait(*incoming))
    transfers_.control_.send_with_next(mark, incoming->owner.group);
  else
    transfers_.control_.send(mark, incoming->owner.group);
  if (!mark.final) return {};
  const auto found = transfers_.transfers_.find(frame.transfer);
  if (--found->second.incomplete > 0) return {};
  const TransferDone done = std::move(found->second.incoming.done);
  transfers_.transfers_.erase(found);
  done({});
  return {};
}

}  // namespace nexar::mesh
