// Opening and closing a node.
#include "runtime/node_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "io/network_namespace.h"
#include "io/random.h"
#include "io/stderr_log.h"

namespace nexar::runtime {
namespace {

// How long close() waits for peers to acknowledge what was sent: long enough for a few retransmissions, short enough that a dead peer does
// not hold an exit up.
constexpr std::chrono::seconds kCloseLimit(5);

// One record at a time, whichever thread speaks.
LogSink serialised(LogSink sink, std::shared_ptr<std::mutex> mutex) {
  if (!sink) sink = io::stderr_log();
  return [sink = std::move(sink), mutex = std::move(mutex)](const LogRecord& record) {
    const std::lock_guard lock(*mutex);
    sink(record);
  };
}

}  // namespace

NodeCore::NodeCore(const Options& options)
    : config_(options.config),
      pool_(options.pool != nullptr ? options.pool : BufferPool::make(options.config.memory_budget)),
      adapter_(options.adapter != nullptr ? options.adapter : std::make_shared<CpuAdapter>()),
      authority_(options.identity->authority),
      node_(options.identity->certificate.node()),
      network_namespace_(options.network_namespace),
      log_(options.config.log, serialised(options.log, log_mutex_)) {}

NodeCore::~NodeCore() {
  engine_.reset();
  if (direct_poller_ != nullptr) loop_->remove_poller(*direct_poller_);
  if (programs_.poller != nullptr) loop_->remove_poller(*programs_.poller);
  endpoint_.reset();  // before those whom its links call
  host_.reset();
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
  Result<io::EventDescriptor> event = io::EventDescriptor::open();
  if (!event) return std::move(event).error();
  failure_event_ = *std::move(event);
  heartbeat_timer_ = std::make_unique<io::Timer>(*loop_, [this] { beat(); });
  formation_ = std::make_unique<cluster::Formation>(
      cluster::Formation::Environment{
          *loop_, io::system_random(), log_,
          [this](const io::Address& address, transport::LinkHandler& handler) { return endpoint_->connect(address, handler); }},
      hello(),
      cluster::Formation::Events{[this](Rank rank, transport::Link& link, const wire::Hello& theirs) -> transport::LinkHandler& {
                                   if (host_->covers(rank)) return host_->greeted(rank, link, theirs);
                                   mesh_->attach(rank, link, {theirs.eager_bytes, theirs.eager_messages, theirs.announcements});
                                   return mesh_->handler(rank);
                                 },
                                 [this](Rank rank) {
                                   if (host_->covers(rank)) return host_->caller_may_send(rank);
                                   mesh_->handler(rank).on_ready();
                                 },
                                 [this](const Error& error) { end_formation(error); }});

  if (options.token != nullptr)
    observers_ = std::make_unique<cluster::Observers>(*loop_, log_, crypto::Secret(options.token->secret.view()), options.token->cluster,
                                                      [this] { return snapshot(); });
  auto opened = io::in_network_namespace(options.network_namespace, [&] { return open_ports(options); });
  if (!opened) return opened;
  address_ = endpoint_->local_address();
  open_lanes(options);
  Result<std::unique_ptr<Engine>> engine = Engine::start(*loop_, io::real_clock(), {.spin = config_.spin});
  if (!engine) return std::move(engine).error();
  engine_ = *std::move(engine);
  return {};
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

Error NodeCore::closed_error() const { return Error(ErrorCode::kCancelled, fmt::format("rank {} closed its node", rank_)); }

void NodeCore::warn(std::string_view message, const Error& error) const {
  log_.warning("runtime", message, {{"error", error.to_string()}});
}

// Calls that came before may still be under way on other threads: the engine stops when the last of them has left.
Result<void> NodeCore::close() {
  if (auto outside = engine_->check_outside("close"); !outside) return outside;
  if (rpc_ != nullptr && rpc_->is_worker())
    return Error(ErrorCode::kInvalidArgument, "close was called from a handler of the node; it would wait for itself");
  if (closed_.exchange(true)) return {};
  engine_->run([this] {
    heartbeat_timer_->cancel();
    formation_->stop("this node closes");
    if (observers_ != nullptr) observers_->stop("this node closes");
    if (host_ != nullptr) host_->stop("this node closes");
    const Error closed = closed_error();
    end_formation(closed);
    while (OperationState* operation = first_unstopped()) {
      operation->verdict = closed;
      stop(*operation);
    }
    cancel_offers(closed);
    cancel_programs(closed);
    for (const auto& [nonce, ping] : std::exchange(pings_, {})) ping->completion.complete();
    if (rpc_ != nullptr) rpc_->begin_close(Error(ErrorCode::kPeerLost, fmt::format("rank {} closes its node", rank_)).with_rank(rank_));
  });
  wait_for_programs();
  if (rpc_ != nullptr) finish_handlers();
  engine_->run([this] {
    if (mesh_ != nullptr) mesh_->leave(fmt::format("rank {} leaves", rank_));
  });
  Result<void> drained = wait_for_farewells();
  engine_->run([this] {
    if (collectives_ != nullptr) collectives_->end_leaving();  // who has not answered is not waited for any longer
  });
  gate_.shut();
  engine_->run([this] { endpoint_->flush(); });  // what was posted before has run now
  engine_->stop();
  gate_.open_exit();
  return drained;
}

// Those that only wait until nobody reads their memory any more have been stopped.
OperationState* NodeCore::first_unstopped() const {
  const auto found = std::find_if(active_.rbegin(), active_.rend(), [this](const OperationState* one) {
    return one->kind != OperationState::Kind::kCollective || !collectives_->is_leaving(*one->collective);
  });
  return found == active_.rend() ? nullptr : *found;
}

Result<void> NodeCore::wait_for_farewells() {
  Completion done;
  engine_->run([&] {
    if (mesh_ == nullptr || mesh_->open_links() == 0)
      done.complete();
    else
      farewells_.push_back(&done);
  });
  if (engine_->wait(done, deadline(kCloseLimit))) return {};
  std::vector<Rank> open;
  engine_->run([&] {
    std::erase(farewells_, &done);
    for (Rank peer = 0; peer < size(); ++peer)
      if (mesh_->link(peer) != nullptr) open.push_back(peer);
  });
  if (open.empty()) return {};
  return Error(ErrorCode::kTimeout, fmt::format("ranks {} did not acknowledge what rank {} had sent within {}", fmt::join(open, ", "),
                                                rank_, base::format_duration(kCloseLimit)))
      .with_ranks(open);
}

}  // namespace nexar::runtime
