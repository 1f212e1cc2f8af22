// Sentences about transfers that the other end did not want.
#pragma once

#include <string>

#include "mesh/transfers.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

// `the message with tag 7`, or `a part of operation 7`.
std::string describe(const TransferOwner& owner);

// How a transfer that the receiver refused ends for its sender: a receive that was too short is the receiver's error.
Result<void> refusal(Rank peer, const TransferOwner& owner, wire::RefuseReason reason);

// How one that the sender took back ends for its receiver.
Error withdrawal(Rank peer, const TransferOwner& owner);

}  // namespace nexar::mesh
