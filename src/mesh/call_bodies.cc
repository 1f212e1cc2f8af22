#include "mesh/call_bodies.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "mesh/regions.h"

namespace nexar::mesh {

std::uint64_t CallBodies::offer(OutgoingTransfer transfer) {
  const std::uint64_t number = next_number_++;
  offers_.emplace(number, std::move(transfer));
  return number;
}

void CallBodies::take_back(std::uint64_t transfer) {
  if (offers_.erase(transfer) == 0) outgoing_.cancel(transfer);
}

Result<void> CallBodies::check(std::uint64_t transfer) {
  if (!wire::is_of_call(transfer) || transfer <= last_offered_)
    return Error(ErrorCode::kRefused,
                 fmt::format("rank {} offered the bytes of a call under number {:#x}, after {:#x}", peer_, transfer, last_offered_))
        .with_rank(peer_);
  last_offered_ = transfer;
  return {};
}

Result<void> CallBodies::accept(std::uint64_t transfer, IncomingTransfer incoming) {
  if (auto checked = check(transfer); !checked) return checked;
  incoming_.grant(transfer, std::move(incoming));
  return {};
}

Result<void> CallBodies::decline(std::uint64_t transfer, GroupId group) {
  if (auto checked = check(transfer); !checked) return checked;
  control_.send(wire::Refuse{.transfer = transfer, .reason = wire::RefuseReason::kCancelled}, group);
  return {};
}

Result<void> CallBodies::on_grant(const wire::Grant& grant) {
  const auto found = offers_.find(grant.transfer);
  if (found == offers_.end()) return {};  // taken back meanwhile; the peer learns it
  const std::uint64_t bytes = total_bytes(found->second.regions);
  if (grant.offset != 0 || grant.bytes != bytes)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted {} bytes of a call that has {}", peer_, grant.bytes, bytes));
  OutgoingTransfer transfer = std::move(found->second);
  offers_.erase(found);
  outgoing_.begin(grant, std::move(transfer));
  return {};
}

bool CallBodies::on_refuse(const wire::Refuse& refuse) {
  const auto found = offers_.find(refuse.transfer);
  if (found == offers_.end()) return false;
  const TransferDone done = std::move(found->second.done);
  offers_.erase(found);
  done(Error(ErrorCode::kCancelled, fmt::format("rank {} does not want the bytes of a call", peer_)).with_rank(peer_));
  return true;
}

}  // namespace nexar::mesh
