// Two ranks of one host, from when their link is agreed on until they know whether they share memory (wire/host_messages.h).
//
//   lower rank: offers; waits for the answer, the channel and the segment; pronounces
//   higher rank: connects; waits for the greeting and the segment; answers; waits for the verdict
//
// Afterwards it keeps the other link, if memory is used: that stays open, idle, and ends with the one through memory.
//
// Thread: engine. Owned by HostFormation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "io/loop.h"
#include "nexar/ids.h"
#include "transport/link.h"
#include "transport/shm/channel.h"
#include "wire/host_messages.h"
#include "wire/link_messages.h"

namespace nexar::cluster {

class HostFormation;

class HostPair final : public transport::LinkHandler, private transport::Sink, private io::Watcher {
 public:
  enum class State : std::uint8_t { kAbsent, kUndecided, kMemory, kNetwork };

  HostPair(HostFormation& host, Rank rank, int local, bool caller) : host_(host), rank_(rank), local_(local), caller_(caller) {}
  ~HostPair() override;

  State state() const { return state_; }
  const std::string& why() const { return why_; }  // not memory
  base::Time deadline() const { return state_ == State::kUndecided ? deadline_ : base::Time::max(); }

  // Its link, on which both have said hello.
  void attach(transport::Link& link, const wire::Hello& hello, base::Time deadline);

  // Of a caller: the peer takes frames.
  void offer();

  // The segment is here, or will never be.
  void go_on();

  // The deadline has come.
  void give_up();

  // The link through memory has ended, or this node closes.
  void end(std::string_view reason);

  // transport::LinkHandler
  void on_ready() override {}
  Result<transport::Sink*> on_frame(const wire::Header& header) override;
  Result<void> on_frame_end(const wire::Header& header) override;
  void on_room(wire::Lane) override {}
  void on_end(const transport::LinkEnd& end) override;

 private:
  void take(base::ByteView bytes) override { payload_.insert(payload_.end(), bytes.begin(), bytes.end()); }
  void on_ready(io::Readiness ready) override;  // the channel can be read

  template <typename M>
  void say(const M& message);
  Result<void> on_offer(const wire::HostOffer& offer);
  Result<void> open_channel(const wire::HostOffer& offer);
  void arrived(transport::shm::Channel channel);
  void answer(const std::string& why_not);
  void decide();
  void pronounce(bool memory, const std::string& why_not);
  void use_memory(bool peer_reads);
  void use_network(const std::string& why_not);
  bool reads() const;
  void unwatch();

  HostFormation& host_;
  Rank rank_;
  int local_;
  bool caller_;
  State state_ = State::kAbsent;
  base::Time deadline_;
  transport::Link* link_ = nullptr;  // the other kind; null after its end
  wire::Hello hello_;
  wire::HostNonce nonce_{};
  std::optional<transport::shm::Channel> channel_;  // until the link through memory has it
  bool watched_ = false;
  bool greeted_ = false;   // of the higher rank: the channel's other end has
  bool answered_ = false;  // of the higher rank
  std::optional<wire::HostAnswer> their_answer_;
  std::string why_;
  std::vector<std::byte> payload_;
};

}  // namespace nexar::cluster
