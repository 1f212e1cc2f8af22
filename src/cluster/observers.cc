#include "cluster/observers.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "cluster/join_link.h"
#include "cluster/join_proof.h"
#include "cluster/node_address.h"
#include "cluster/seed_client.h"
#include "io/timer.h"

namespace nexar::cluster {

// One of them: a question, and the answer in parts as the lane takes them.
class Observers::Visit final : public JoinLink {
 public:
  Visit(Observers& observers, std::uint64_t id, transport::Link& link)
      : observers_(observers), id_(id), link_(link), timer_(observers.loop_, [this] { link_.abort("it took too long"); }) {
    timer_.set(observers.loop_.now() + kProofTimeout);
  }

  bool is_stranger() const { return !has_asked_ && !ended_; }
  bool has_ended() const { return ended_; }
  void end(std::string_view reason) {
    ended_ = true;
    link_.abort(reason);
  }

 private:
  bool expects(wire::FrameType type) const override { return !has_asked_ && type == wire::FrameType::kInfoRequest; }

  Result<void> on_message(const wire::Header& header, base::ByteView payload) override {
    const Result<wire::InfoRequest> request = wire::decode_frame<wire::InfoRequest>(header, payload);
    if (!request) return request.error();
    const auto proof_of = [&](JoinRole role) { return join_proof(role, observers_.secret_.view(), observers_.cluster_, link_); };
    const Result<crypto::Sha256> theirs = proof_of(JoinRole::kObserver);
    const Result<crypto::Sha256> ours = proof_of(JoinRole::kObserved);
    if (!theirs || !ours) return theirs ? ours.error() : theirs.error();
    has_asked_ = true;
    if (!crypto::equal_constant_time(*theirs, request->proof)) {
      if (std::has_single_bit(++observers_.wrong_proofs_))
        observers_.log_.warning("cluster", "an observer does not know the secret",
                                {{"address", link_.peer_address().to_string()}, {"times", observers_.wrong_proofs_}});
      return refuse(Error(ErrorCode::kRefused, "the token is not this cluster's"));
    }
    timer_.set(observers_.loop_.now() + kVisitTimeout);
    Result<Snapshot> seen = observers_.look_();
    if (!seen) return refuse(seen.error());
    snapshot_ = *std::move(seen);
    snapshot_.answer.proof = *ours;
    snapshot_.answer.peers = static_cast<std::uint32_t>(snapshot_.peers.size());
    if (!request->view) snapshot_.view.reset();
    if (!send(link_, snapshot_.answer)) return Error(ErrorCode::kOverloaded, "there is no room to answer");
    send_parts();
    return {};
  }

  Result<void> refuse(const Error& error) {
    if (!send(link_, wire::JoinRefuse{error})) return error;
    link_.close(error.sentence());
    timer_.set(observers_.loop_.now() + kFarewellTimeout);
    return {};
  }

  // As many as the lane takes; the rest when it has room.
  void send_parts() {
    while (snapshot_.view != nullptr) {
      const wire::JoinView part = view_part(*snapshot_.view, next_member_);
      if (!send(link_, part)) return;
      next_member_ += part.members.size();
      if (next_member_ == snapshot_.view->members.size()) snapshot_.view.reset();
    }
    while (next_peer_ < snapshot_.peers.size() && send(link_, snapshot_.peers[next_peer_])) ++next_peer_;
  }

  void on_goodbye(const wire::Goodbye&) override { link_.abort("goodbye"); }
  void on_ready() override {}
  void on_room(wire::Lane) override { send_parts(); }
  void on_end(const transport::LinkEnd&) override { observers_.visits_.erase(id_); }  // destroys it

  Observers& observers_;
  std::uint64_t id_;
  transport::Link& link_;
  io::Timer timer_;
  bool has_asked_ = false;
  bool ended_ = false;  // here; its link is still on its way out
  Snapshot snapshot_;
  std::size_t next_member_ = 0;
  std::size_t next_peer_ = 0;
};

Observers::Observers(io::Loop& loop, const base::Logger& log, crypto::Secret secret, const ClusterId& cluster, Look look)
    : loop_(loop), log_(log), secret_(std::move(secret)), cluster_(cluster), look_(std::move(look)) {}

Observers::~Observers() = default;

transport::LinkHandler* Observers::accept(transport::Link& link) {
  if (stopped_ || visits_.size() >= 2 * kObserversMax) return nullptr;  // those that make way need a moment to go
  const auto ended = std::count_if(visits_.begin(), visits_.end(), [](const auto& one) { return one.second->has_ended(); });
  if (visits_.size() - static_cast<std::size_t>(ended) >= kObserversMax) {
    const auto stranger = std::find_if(visits_.begin(), visits_.end(), [](const auto& one) { return one.second->is_stranger(); });
    if (stranger == visits_.end()) return nullptr;
    stranger->second->end("others are waiting");
  }
  const std::uint64_t id = next_++;
  return (visits_[id] = std::make_unique<Visit>(*this, id, link)).get();
}

void Observers::stop(std::string_view reason) {
  stopped_ = true;
  for (const auto& [id, visit] : visits_) visit->end(reason);
}

}  // namespace nexar::cluster
