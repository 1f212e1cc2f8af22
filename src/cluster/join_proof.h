// How the two ends of a link of a node that joins, or of an observer, prove to each other that they know the cluster's secret.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "crypto/hash.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "types/node_id.h"

namespace nexar::cluster {

enum class JoinRole : std::uint8_t { kWorker, kSeed, kObserver, kObserved };

// Of this link, this role and this secret only: it can be neither relayed to another link nor reflected to its sender.
Result<crypto::Sha256> join_proof(JoinRole role, base::ByteView secret, const ClusterId& cluster, const transport::Link& link);

}  // namespace nexar::cluster
