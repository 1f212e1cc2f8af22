// Those who look at this node, or at the seed, without joining: they prove the secret and are told what is known.
//
// Bounded like all strangers: at most kObserversMax at a time, of whom the oldest that has proved nothing makes way; each has kProofTimeout
// for its proof and kVisitTimeout in all. Nothing is looked up for who has proved nothing.
//
// Thread: that of its loop. Owned by who is observed; outlived by no link: its owner's endpoint goes first.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "cluster/view.h"
#include "crypto/secret.h"
#include "io/loop.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "types/node_id.h"
#include "wire/info_messages.h"

namespace nexar::cluster {

// People who look, and scripts that look for them. Each costs a snapshot while it is sent.
inline constexpr std::size_t kObserversMax = 8;
inline constexpr base::Duration kVisitTimeout = std::chrono::seconds(30);

class Observers {
 public:
  struct Snapshot {
    wire::InfoAnswer answer;  // but for its proof and the number of peers
    std::shared_ptr<const View> view;
    std::vector<wire::InfoPeer> peers;
  };
  // What is known now. An error is what the observer is told.
  using Look = std::function<Result<Snapshot>()>;

  Observers(io::Loop& loop, const base::Logger& log, crypto::Secret secret, const ClusterId& cluster, Look look);
  ~Observers();
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

  // The handler of an observer's link; null when there are too many.
  transport::LinkHandler* accept(transport::Link& link);

  // Ends all of them, and takes no more.
  void stop(std::string_view reason);

  std::size_t size() const { return visits_.size(); }
  std::uint64_t wrong_proofs() const { return wrong_proofs_; }

 private:
  class Visit;

  io::Loop& loop_;
  const base::Logger& log_;
  crypto::Secret secret_;
  ClusterId cluster_;
  Look look_;
  std::map<std::uint64_t, std::unique_ptr<Visit>> visits_;  // in the order of arrival
  std::uint64_t next_ = 1;
  std::uint64_t wrong_proofs_ = 0;
  bool stopped_ = false;
};

}  // namespace nexar::cluster
