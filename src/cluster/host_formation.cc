#include "cluster/host_formation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "io/network_namespace.h"

namespace nexar::cluster {

using transport::shm::HostSegment;

HostFormation::HostFormation(Environment environment, Rank self, const View& view, const Places& places, const Config& config,
                             Events events)
    : environment_(std::move(environment)),
      self_(self),
      view_(view),
      places_(places),
      config_(config),
      events_(std::move(events)),
      timer_(environment_.loop, [this] { tick(); }),
      pairs_(view.members.size()) {
  if (config_.transport != Transport::kAuto && config_.transport != Transport::kShm) return;
  for (Rank rank = 0; rank < view_.size(); ++rank)
    if (rank != self_ && places_.host_index(rank) == places_.host_index(self_))
      pairs_[static_cast<std::size_t>(rank)] = std::make_unique<HostPair>(*this, rank, places_.local_rank(rank), self_ < rank);
}

HostFormation::~HostFormation() = default;

void HostFormation::begin() {
  for (Rank rank = 0; rank < view_.size() && config_.transport == Transport::kShm; ++rank)
    if (rank != self_ && pair(rank) == nullptr) return not_by_memory(rank, "it is on another host");
  if (std::all_of(pairs_.begin(), pairs_.end(), [](const auto& one) { return one == nullptr; })) return;
  if (auto opened = open(); !opened) fail(opened.error());
}

Result<void> HostFormation::open() {
  Result<std::unique_ptr<transport::shm::Endpoint>> endpoint = transport::shm::Endpoint::open(environment_.loop, environment_.random);
  if (!endpoint) return std::move(endpoint).error();
  endpoint_ = *std::move(endpoint);
  endpoint_->set_loans(environment_.loans);
  if (passes_segment()) {
    const int ranks = places_.local_size(self_);
    Result<std::shared_ptr<HostSegment>> segment =
        HostSegment::create(ranks, view_.epoch, config_.shm_budget_for(static_cast<std::uint32_t>(ranks)));
    if (!segment) return std::move(segment).error();
    endpoint_->use(*std::move(segment), 0);
  }
  return io::in_network_namespace(environment_.network_namespace, [this]() -> Result<void> {
    Result<std::unique_ptr<transport::shm::Listener>> listener = transport::shm::Listener::open(environment_.loop, environment_.random);
    if (!listener) return std::move(listener).error();
    listener_ = *std::move(listener);
    return {};
  });
}

void HostFormation::fail(const Error& error) {
  if (failure_) return;
  failure_ = error.sentence();
  environment_.log.warning("cluster", "this rank shares no memory with the others of its host", {{"why", error.sentence()}});
  go_on();
}

void HostFormation::go_on() {
  for (const auto& one : pairs_)
    if (one != nullptr) one->go_on();
}

void HostFormation::take_segment(io::FileDescriptor fd, std::uint64_t bytes, int from) {
  if (from != 0 || endpoint_->segment() != nullptr) return;  // only the first local rank passes one, once
  Result<std::shared_ptr<HostSegment>> segment = HostSegment::open(std::move(fd), bytes, places_.local_size(self_), view_.epoch);
  if (!segment) return fail(segment.error());
  endpoint_->use(*std::move(segment), local());
  go_on();
}

wire::HostNonce HostFormation::expect(std::function<void(transport::shm::Channel)> arrived) {
  wire::HostNonce nonce;
  environment_.random.fill(nonce);
  listener_->expect(nonce, std::move(arrived));
  return nonce;
}

transport::LinkHandler& HostFormation::greeted(Rank rank, transport::Link& link, const wire::Hello& hello) {
  pair(rank)->attach(link, hello, environment_.loop.now() + kHostTimeout);
  set_timer();
  return *pair(rank);
}

void HostFormation::not_by_memory(Rank rank, const std::string& why) {
  environment_.log.info("cluster", "a rank is not reached by shared memory", {{"peer", rank}, {"why", why}});
  // If the first local rank cannot give its memory to this one, nobody else will.
  if (pair(rank) != nullptr && places_.local_rank(rank) == 0 && segment() == nullptr && !failure_)
    fail(Error(ErrorCode::kUnsupported, fmt::format("rank {} passes no memory: {}", rank, why)));
  if (config_.transport == Transport::kShm)
    events_.impossible(
        Error(ErrorCode::kUnsupported, fmt::format("rank {} cannot be reached by shared memory from rank {}: {}", rank, self_, why))
            .with_rank(rank));
}

bool HostFormation::is_whole_world() const {
  for (Rank rank = 0; rank < view_.size(); ++rank)
    if (rank != self_ && !uses_memory(rank)) return false;
  return true;
}

void HostFormation::ended(Rank rank) {
  if (HostPair* one = pair(rank); one != nullptr) one->end("the link through memory has ended");
}

void HostFormation::stop(std::string_view reason) {
  timer_.cancel();
  for (const auto& one : pairs_)
    if (one != nullptr && one->state() == HostPair::State::kUndecided) one->end(reason);
}

void HostFormation::tick() {
  const base::Time now = environment_.loop.now();
  for (const auto& one : pairs_)
    if (one != nullptr && one->deadline() <= now) one->give_up();
  set_timer();
}

void HostFormation::set_timer() {
  base::Time next = base::Time::max();
  for (const auto& one : pairs_)
    if (one != nullptr) next = std::min(next, one->deadline());
  if (next != base::Time::max())
    timer_.set(next);
  else
    timer_.cancel();
}

}  // namespace nexar::cluster
