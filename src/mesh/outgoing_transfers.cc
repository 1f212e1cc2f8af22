#include "mesh/outgoing_transfers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/transfer_text.h"

namespace nexar::mesh {

void OutgoingTransfers::begin(const wire::Grant& grant, OutgoingTransfer transfer) { start(grant, std::move(transfer), nullptr); }

void OutgoingTransfers::start(const wire::Grant& grant, OutgoingTransfer outgoing, const std::vector<std::uint16_t>* generations) {
  NEXAR_ASSERT(grant.offset == 0 && grant.bytes > 0 && grant.bytes == total_bytes(outgoing.regions), "a grant is for the whole transfer");
  NEXAR_ASSERT(!transfers_.contains(grant.transfer), "a transfer begins once");
  const RegionIndex<ConstRegion> index(outgoing.regions);
  const GroupId group = outgoing.owner.group;
  auto transfer = std::make_unique<Transfer>(Transfer{std::move(outgoing), index, {}, 0});
  transfer->stripes.resize(grant.stripes);
  for (std::uint16_t number = 0; number < grant.stripes; ++number) {
    OutgoingStripe& stripe = transfer->stripes[number];
    stripe = {.transfer = grant.transfer, .group = group, .number = number, .range = grant.stripe(number)};
    stripe.generation = generations == nullptr ? grant.generation : (*generations)[number];
    stripe.position = stripe.range.begin;
    stripe.complete = stripe.range.begin == stripe.range.end;
    if (!stripe.complete) ++transfer->incomplete;
  }
  Transfer& begun = *transfers_.emplace(grant.transfer, std::move(transfer)).first->second;
  for (OutgoingStripe& stripe : begun.stripes) {
    if (stripe.complete) continue;
    stripe.from = begun.index.at(stripe.position);
    choose(grant.bytes).add(stripe);
  }
}

Result<void> OutgoingTransfers::keep_ahead(GroupId group, const wire::Grant& grant) {
  if (ahead_.size() >= kGrantsAheadMax)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted more than {} transfers ahead", peer_, kGrantsAheadMax));
  if (grant.offset != 0 || grant.bytes == 0)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted {} bytes from {} on ahead", peer_, grant.bytes, grant.offset));
  Ahead ahead{grant, group, std::vector<std::uint16_t>(grant.stripes, grant.generation)};
  if (transfers_.contains(grant.transfer) || !ahead_.emplace(grant.transfer, std::move(ahead)).second)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted transfer {} a second time", peer_, grant.transfer));
  return {};
}

const wire::Grant* OutgoingTransfers::ahead(std::uint64_t transfer) const {
  const auto found = ahead_.find(transfer);
  return found == ahead_.end() ? nullptr : &found->second.grant;
}

void OutgoingTransfers::begin_ahead(std::uint64_t transfer, OutgoingTransfer outgoing) {
  const auto found = ahead_.find(transfer);
  NEXAR_ASSERT(found != ahead_.end(), "a transfer that begins ahead was granted");
  const Ahead ahead = std::move(found->second);
  ahead_.erase(found);
  start(ahead.grant, std::move(outgoing), &ahead.generations);
}

// Lanes where there are some; of those the one that has least to do.
BulkWay& OutgoingTransfers::choose(std::uint64_t) {
  if (lanes_.empty()) return link_;
  return **std::min_element(lanes_.begin(), lanes_.end(),
                            [](const BulkWay* a, const BulkWay* b) { return a->waiting_bytes() < b->waiting_bytes(); });
}

void OutgoingTransfers::remove_lane(BulkWay& lane) {
  std::erase(lanes_, &lane);
  for (auto& [number, transfer] : transfers_)
    for (OutgoingStripe& stripe : transfer->stripes)
      if (stripe.way == &lane) lane.remove(stripe);
}

// Takes a transfer out of its table and its stripes off their ways.
std::unique_ptr<OutgoingTransfers::Transfer> OutgoingTransfers::release(std::uint64_t transfer) {
  const auto found = transfers_.find(transfer);
  if (found == transfers_.end()) return nullptr;
  std::unique_ptr<Transfer> released = std::move(found->second);
  transfers_.erase(found);
  for (OutgoingStripe& stripe : released->stripes)
    if (stripe.way != nullptr) stripe.way->remove(stripe);
  return released;
}

bool OutgoingTransfers::cancel(std::uint64_t transfer) {
  GroupId group = 0;
  if (const auto found = ahead_.find(transfer); found != ahead_.end()) {
    group = found->second.group;
    ahead_.erase(found);
  } else if (const auto released = release(transfer); released != nullptr) {
    group = released->outgoing.owner.group;
  } else {
    return false;
  }
  control_.send(wire::Withdraw{.transfer = transfer}, group);
  return true;
}

OutgoingStripe* OutgoingTransfers::find(std::uint64_t transfer, std::uint16_t stripe) {
  const auto found = transfers_.find(transfer);
  if (found == transfers_.end() || stripe >= found->second->stripes.size()) return nullptr;
  return &found->second->stripes[stripe];
}

// Of a transfer that was cancelled here nothing is known any more.
Result<void> OutgoingTransfers::on_watermark(const wire::Watermark& watermark) {
  OutgoingStripe* stripe = find(watermark.transfer, watermark.stripe);
  if (stripe == nullptr || !watermark.final || stripe->complete) return {};
  const std::uint64_t bytes = stripe->range.end - stripe->range.begin;
  if (watermark.bytes != bytes || stripe->position != stripe->range.end)
    return Error(ErrorCode::kRefused, fmt::format("rank {} says it has {} bytes of a stripe of {}, of which {} were sent", peer_,
                                                  watermark.bytes, bytes, stripe->position - stripe->range.begin));
  stripe->complete = true;
  if (stripe->way != nullptr) stripe->way->remove(*stripe);  // it may have died after the last byte
  Transfer& transfer = *transfers_.at(watermark.transfer);
  if (--transfer.incomplete > 0) return {};
  const std::unique_ptr<Transfer> ended = release(watermark.transfer);
  ended->outgoing.done({});
  return {};
}

Result<void> OutgoingTransfers::on_resume(const wire::Resume& resume) {
  const auto refused = [&] {
    return Error(ErrorCode::kRefused,
                 fmt::format("rank {} asks for stripe {} of transfer {} from {} on under generation {}, which cannot be", peer_,
                             resume.stripe, resume.transfer, resume.bytes, resume.generation));
  };
  if (const auto found = ahead_.find(resume.transfer); found != ahead_.end()) {
    std::vector<std::uint16_t>& generations = found->second.generations;
    if (resume.stripe >= generations.size() || resume.bytes != 0 || resume.generation <= generations[resume.stripe]) return refused();
    generations[resume.stripe] = resume.generation;
    return {};
  }
  OutgoingStripe* stripe = find(resume.transfer, resume.stripe);
  if (stripe == nullptr) return {};
  if (stripe->complete || resume.generation <= stripe->generation || resume.bytes % kTransferAlignment != 0 ||
      resume.bytes >= stripe->range.end - stripe->range.begin || stripe->range.begin + resume.bytes > stripe->position)
    return refused();
  if (stripe->way != nullptr) stripe->way->remove(*stripe);
  const Transfer& transfer = *transfers_.at(resume.transfer);
  stripe->generation = resume.generation;
  stripe->position = stripe->range.begin + resume.bytes;
  stripe->from = transfer.index.at(stripe->position);
  choose(total_bytes(transfer.outgoing.regions)).add(*stripe);
  return {};
}

OutgoingTransfers::Refused OutgoingTransfers::on_refuse(const wire::Refuse& refuse) {
  if (ahead_.erase(refuse.transfer) > 0) return Refused::kAhead;
  const std::unique_ptr<Transfer> ended = release(refuse.transfer);
  if (ended == nullptr) return Refused::kUnknown;
  ended->outgoing.done(refusal(peer_, ended->outgoing.owner, refuse.reason));
  return Refused::kEnded;
}

void OutgoingTransfers::end_all(const Error& verdict) {
  ahead_.clear();
  const auto transfers = std::exchange(transfers_, {});
  for (const auto& [number, transfer] : transfers)
    for (OutgoingStripe& stripe : transfer->stripes)
      if (stripe.way != nullptr) stripe.way->remove(stripe);
  for (const auto& [number, transfer] : transfers) transfer->outgoing.done(verdict);
}

}  // namespace nexar::mesh
