#include "runtime/node_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "io/network_namespace.h"
#include "io/random.h"

namespace nexar::runtime {
namespace {

// How long close() waits for peers to acknowledge what was sent: long enough for a few retransmissions, short enough that a dead peer does
// not hold an exit up.
constexpr std::chrono::seconds kCloseLimit(5);

}  // namespace

NodeCore::NodeCore(const Options& options)
    : rank_(options.rank),
      view_(options.view),
      config_(options.config),
      authority_(options.identity->authority),
      mesh_(options.rank, static_cast<int>(options.view.members.size()), options.view.epoch,
            {[this](Rank rank) { on_ready(rank); }, [this](Rank rank, const transport::LinkEnd& end) { on_lost(rank, end); },
             [this](Rank, const wire::Pong& pong) { on_pong(pong); }}),
      ready_(options.view.members.size()),
      ended_(options.view.members.size()) {
  ready_[static_cast<std::size_t>(rank_)] = true;
  ended_[static_cast<std::size_t>(rank_)] = true;
  if (size() == 1) all_ready_.complete();
}

NodeCore::~NodeCore() {
  engine_.reset();
  endpoint_.reset();
}

Result<std::shared_ptr<NodeCore>> NodeCore::open(const Options& options) {
  std::shared_ptr<NodeCore> core(new NodeCore(options));
  if (auto started = core->start_parts(options); !started) return std::move(started).error();
  return core;
}

Result<void> NodeCore::start_parts(const Options& options) {
  Result<std::unique_ptr<io::EpollLoop>> loop = io::EpollLoop::open();
  if (!loop) return std::move(loop).error();
  loop_ = *std::move(loop);
  auto opened = io::in_network_namespace(options.network_namespace, [&]() -> Result<void> {
    auto endpoint = transport::quic::Endpoint::open({*loop_, io::system_random()}, options.address, *options.identity, *this, *this);
    if (!endpoint) return std::move(endpoint).error();
    endpoint_ = *std::move(endpoint);
    return {};
  });
  if (!opened) return opened;
  address_ = endpoint_->local_address();
  Result<std::unique_ptr<Engine>> engine = Engine::start(*loop_, io::real_clock(), {.spin = config_.spin});
  if (!engine) return std::move(engine).error();
  engine_ = *std::move(engine);
  return {};
}

Result<void> NodeCore::connect(const std::vector<io::Address>& addresses) {
  Result<void> result;
  engine_->run([&] {
    for (Rank peer = rank_ + 1; peer < size() && result; ++peer) {
      Result<transport::Link*> link = endpoint_->connect(addresses[static_cast<std::size_t>(peer)], mesh_.handler(peer));
      if (link)
        mesh_.attach(peer, **link);
      else
        result = std::move(link).error();
    }
  });
  return result;
}

Result<void> NodeCore::wait_ready(std::chrono::nanoseconds limit) {
  if (engine_->wait(all_ready_, deadline(limit))) return {};
  std::vector<Rank> missing;
  engine_->run([&] {
    for (Rank peer = 0; peer < size(); ++peer)
      if (!ready_[static_cast<std::size_t>(peer)]) missing.push_back(peer);
  });
  return Error(ErrorCode::kTimeout,
               fmt::format("rank {} has no link to ranks {} after {}", rank_, fmt::join(missing, ", "), base::format_duration(limit)))
      .with_ranks(missing);
}

std::optional<base::Time> NodeCore::deadline(std::optional<std::chrono::nanoseconds> limit) const {
  if (!limit) return std::nullopt;
  return io::real_clock().now() + *limit;
}

Result<void> NodeCore::check_call(std::string_view call) const {
  if (auto outside = engine_->check_outside(call); !outside) return outside;
  if (closed_.load(std::memory_order_acquire))
    return Error(ErrorCode::kCancelled, fmt::format("{} was called on a node that is closed", call));
  return {};
}

void NodeCore::start_and_stay(OperationState& operation) {
  engine_->post_and_stay([this, &operation] { begin(operation); });
}

void NodeCore::start(OperationState& operation) {
  operation.unattended = true;
  engine_->need_background(true);
  engine_->post([this, &operation] { begin(operation); });
}

Result<Status> NodeCore::wait(OperationState& operation, std::optional<std::chrono::nanoseconds> limit) {
  if (!engine_->wait(operation.completion, deadline(limit))) {
    const bool sending = operation.kind == OperationState::Kind::kSend;
    const Rank peer = sending ? operation.send.peer : operation.receive.source;
    const std::string who = peer == kAnySource ? "any rank" : fmt::format("rank {}", peer);
    cancel(operation, Error(ErrorCode::kTimeout, fmt::format("a {} {} did not end within {}", sending ? "send to" : "receive from", who,
                                                             base::format_duration(*limit))));
  }
  return *operation.result;
}

void NodeCore::cancel(OperationState& operation, const Error& verdict) {
  engine_->run([&] {
    if (!operation.active) return;
    operation.verdict = verdict;
    stop(operation);
  });
}

void NodeCore::set_callback(OperationState& operation, std::function<void(const Result<Status>&)> callback) {
  engine_->run([&] {
    operation.callback = std::move(callback);
    if (!operation.active) std::exchange(operation.callback, nullptr)(*operation.result);
  });
}

Result<int> NodeCore::descriptor(OperationState& operation) {
  Result<io::EventDescriptor> made = io::EventDescriptor::open();
  if (!made) return std::move(made).error();
  engine_->run([&] {
    if (operation.event) return;
    operation.event = *std::move(made);
    if (!operation.active) operation.event->signal();
  });
  return operation.event->fd();
}

std::optional<std::size_t> NodeCore::wait_any(std::span<OperationState* const> operations, std::optional<std::chrono::nanoseconds> limit) {
  std::vector<Completion*> completions;
  completions.reserve(operations.size());
  for (OperationState* operation : operations) completions.push_back(&operation->completion);
  return engine_->wait_any(completions, deadline(limit));
}

Result<std::optional<Status>> NodeCore::probe(mesh::GroupId group, Rank from, std::optional<Tag> tag) {
  std::optional<Status> found;
  engine_->run([&] { found = mesh_.probe(group, from, tag); });
  return found;
}

Result<std::chrono::nanoseconds> NodeCore::ping(Rank peer) {
  Ping ping;
  std::uint64_t nonce = 0;
  engine_->post([&] {
    nonce = next_ping_++;
    ping.sent = loop_->refresh();
    pings_[nonce] = &ping;
    if (peer == rank_ || !mesh_.ping(peer, nonce, static_cast<std::uint64_t>(ping.sent.time_since_epoch().count()))) {
      pings_.erase(nonce);
      ping.completion.complete();
    }
  });
  if (!engine_->wait(ping.completion, deadline(config_.rpc_timeout))) engine_->run([&] { pings_.erase(nonce); });
  if (ping.answered) return *ping.answered - ping.sent;
  return Error(ErrorCode::kPeerLost, fmt::format("rank {} did not answer a ping", peer)).with_rank(peer);
}

Result<LinkTraffic> NodeCore::traffic(Rank peer) {
  std::optional<LinkTraffic> traffic;
  engine_->run([&] {
    const transport::Link* link = mesh_.link(peer);
    if (link == nullptr) return;
    traffic.emplace();
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const transport::LaneCounters& counters = link->counters(static_cast<wire::Lane>(lane));
      traffic->frames_sent[lane] = counters.frames_sent;
      traffic->bytes_sent[lane] = counters.bytes_sent;
      traffic->frames_received[lane] = counters.frames_received;
      traffic->bytes_received[lane] = counters.bytes_received;
    }
  });
  if (traffic) return *traffic;
  return Error(ErrorCode::kPeerLost, fmt::format("there is no link to rank {}", peer)).with_rank(peer);
}

Result<void> NodeCore::close() {
  if (auto outside = engine_->check_outside("close"); !outside) return outside;
  if (closed_.exchange(true)) return {};
  bool waits = false;
  engine_->run([&] {
    const Error closed(ErrorCode::kCancelled, fmt::format("rank {} closed its node", rank_));
    while (!active_.empty()) {
      OperationState& operation = **active_.begin();
      operation.verdict = closed;
      stop(operation);
    }
    for (Rank peer = 0; peer < size(); ++peer)
      if (transport::Link* link = mesh_.link(peer); link != nullptr) link->close(fmt::format("rank {} leaves", rank_));
    waits = !all_ended_.is_done() && std::find(ended_.begin(), ended_.end(), false) != ended_.end();
  });
  if (waits) engine_->wait(all_ended_, deadline(kCloseLimit));
  engine_->stop();
  return {};
}

// A peer's certificate must be of our authority and name a member.
Result<void> NodeCore::verify(const crypto::Certificate& certificate) {
  if (auto verified = crypto::verify(certificate, authority_, authority_.cluster(), io::real_clock().wall()); !verified) return verified;
  if (rank_of(certificate.node())) return {};
  return Error(ErrorCode::kRefused, fmt::format("node {} is not in the view", to_string(certificate.node())));
}

std::optional<Rank> NodeCore::rank_of(const NodeId& node) const {
  const auto found = std::find(view_.members.begin(), view_.members.end(), node);
  if (found == view_.members.end()) return std::nullopt;
  return static_cast<Rank>(found - view_.members.begin());
}

// Lower ranks call; a member that calls twice, or should be called, is refused.
transport::LinkHandler* NodeCore::on_link(transport::Link& link) {
  const std::optional<Rank> rank = rank_of(link.peer_certificate()->node());
  if (!rank || *rank >= rank_ || mesh_.link(*rank) != nullptr || closed_.load(std::memory_order_acquire)) return nullptr;
  mesh_.attach(*rank, link);
  return &mesh_.handler(*rank);
}

void NodeCore::on_ready(Rank rank) {
  ready_[static_cast<std::size_t>(rank)] = true;
  if (std::find(ready_.begin(), ready_.end(), false) == ready_.end() && !all_ready_.is_done()) all_ready_.complete();
}

void NodeCore::on_lost(Rank rank, const transport::LinkEnd&) {
  ended_[static_cast<std::size_t>(rank)] = true;
  if (std::find(ended_.begin(), ended_.end(), false) == ended_.end() && !all_ended_.is_done()) all_ended_.complete();
}

void NodeCore::on_pong(const wire::Pong& pong) {
  const auto found = pings_.find(pong.nonce);
  if (found == pings_.end()) return;
  Ping* ping = found->second;
  pings_.erase(found);
  ping->answered = loop_->refresh();
  ping->completion.complete();
}

void NodeCore::begin(OperationState& operation) {
  if (closed_.load(std::memory_order_acquire))
    return finish(operation, Error(ErrorCode::kCancelled, fmt::format("rank {} closed its node", rank_)));
  operation.active = true;
  active_.insert(&operation);
  if (operation.kind == OperationState::Kind::kSend) {
    operation.send.done = [this, &operation](Result<void> result) {
      if (result)
        finish(operation, Status{operation.send.bytes, operation.send.peer, operation.send.tag});
      else
        finish(operation, std::move(result).error());
    };
    mesh_.send(operation.send);
  } else {
    operation.receive.done = [this, &operation](Result<Status> result) { finish(operation, std::move(result)); };
    mesh_.receive(operation.receive);
  }
}

void NodeCore::stop(OperationState& operation) {
  if (operation.kind == OperationState::Kind::kSend)
    mesh_.cancel(operation.send);
  else
    mesh_.cancel(operation.receive);
}

void NodeCore::finish(OperationState& operation, Result<Status> result) {
  if (std::exchange(operation.active, false)) active_.erase(&operation);
  if (operation.unattended) engine_->need_background(false);
  if (!result && result.error().code() == ErrorCode::kCancelled && operation.verdict)
    operation.result.emplace(*operation.verdict);
  else
    operation.result.emplace(std::move(result));
  if (operation.event) operation.event->signal();
  if (operation.callback) std::exchange(operation.callback, nullptr)(*operation.result);
  operation.completion.complete();  // the caller may be gone after this
}

}  // namespace nexar::runtime
