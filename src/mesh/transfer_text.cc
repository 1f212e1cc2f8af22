#include "mesh/transfer_text.h"

#include <fmt/format.h>

namespace nexar::mesh {

std::string describe(const TransferOwner& owner) {
  return owner.kind == wire::Kind::kPointToPoint ? fmt::format("the message with tag {}", owner.key)
                                                 : fmt::format("a part of operation {}", owner.key);
}

Result<void> refusal(Rank peer, const TransferOwner& owner, wire::RefuseReason reason) {
  switch (reason) {
    case wire::RefuseReason::kTruncated: return {};
    case wire::RefuseReason::kMismatch:
      return Error(ErrorCode::kMismatch, fmt::format("rank {} called something else: it does not take {}", peer, describe(owner)))
          .with_rank(peer);
    case wire::RefuseReason::kCancelled: break;
  }
  return Error(ErrorCode::kCancelled, fmt::format("rank {} no longer wants {}", peer, describe(owner))).with_rank(peer);
}

Error withdrawal(Rank peer, const TransferOwner& owner) {
  return Error(ErrorCode::kCancelled, fmt::format("rank {} took {} back", peer, describe(owner))).with_rank(peer);
}

}  // namespace nexar::mesh
