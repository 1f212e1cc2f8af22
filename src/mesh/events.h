// What the mesh tells its owner about peers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "nexar/ids.h"
#include "transport/link.h"
#include "wire/link_messages.h"
#include "wire/operation_messages.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

// Each may be empty, and may call the mesh back. Thread: engine.
struct Events {
  std::function<void(Rank)> ready{};  // the link to a peer can be used
  // It ended, and the peer had not said goodbye. What needs the peer ends when the owner gives its verdict: Mesh::revoke.
  std::function<void(Rank, const transport::LinkEnd&)> lost{};
  std::function<void(Rank, const wire::Pong&)> pong{};  // a ping was answered
  std::function<void(Rank)> left{};                     // the peer said goodbye
  // Whether a verdict has been decided on that Mesh::revoke is about to give: a peer that leaves meanwhile knew it first, and what needed
  // that peer ends by the verdict, not by its departure.
  std::function<bool()> verdict_due{};
  std::function<void(Rank)> ended{};                         // the link is gone, however; comes last
  std::function<void(Rank, const wire::Revoke&)> revoked{};  // the peer says that the epoch is over
  std::function<void(Rank, const std::string&)> aborted{};   // the peer ended the world, with this reason
  // What the peer says about an operation of a group.
  std::function<void(Rank, std::uint64_t group, const wire::Verdict&)> verdict{};
  std::function<void(Rank, std::uint64_t group, const wire::Probe&)> probe{};
  std::function<void(Rank, std::uint64_t group, const wire::ProbeReply&)> probe_reply{};
  std::function<void(Rank)> lanes_settled{};  // forced TCP lanes are open, or cannot be opened: Lanes::report() says
  // The peer can take a part of an operation, which OutgoingTransfers::begin_ahead() sends; or, before that was called, cannot any more.
  std::function<void(Rank, std::uint64_t group, const wire::Grant&)> granted_ahead{};
  std::function<void(Rank, const wire::Refuse&)> refused_ahead{};
};

template <typename F, typename... Args>
void tell(const F& event, Args&&... args) {
  if (event) event(std::forward<Args>(args)...);
}

}  // namespace nexar::mesh
