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
      authority_(options.identity->authority),
      node_(options.identity->certificate.node()),
      log_(options.config.log, serialised(options.log, log_mutex_)) {}

NodeCore::~NodeCore() {
  engine_.reset();
  endpoint_.reset();  // before those whom its links call
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
                                   mesh_->attach(rank, link, {theirs.eager_bytes, theirs.eager_messages, theirs.announcements});
                                   return mesh_->handler(rank);
                                 },
                                 [this](Rank rank) { mesh_->handler(rank).on_ready(); },
                                 [this](const Error& error) { end_formation(error); }});

  auto opened = io::in_network_namespace(options.network_namespace, [&]() -> Result<void> {
    if (options.port_first == 0) return open_endpoint(options, options.address);
    Result<void> last;
    for (std::uint32_t port = options.port_first; port <= options.port_last; ++port) {
      last = open_endpoint(options, options.address.with_port(static_cast<std::uint16_t>(port)));
      if (last) return last;
    }
    return Error(ErrorCode::kIo, fmt::format("no port from {} to {} could be opened", options.port_first, options.port_last))
        .with_cause(std::move(last).error());
  });
  if (!opened) return opened;
  address_ = endpoint_->local_address();
  Result<std::unique_ptr<Engine>> engine = Engine::start(*loop_, io::real_clock(), {.spin = config_.spin});
  if (!engine) return std::move(engine).error();
  engine_ = *std::move(engine);
  return {};
}

// Links never end for silence by themselves: the detector decides who is lost, and it knows when its own loop did not run.
Result<void> NodeCore::open_endpoint(const Options& options, const io::Address& address) {
  auto endpoint =
      transport::quic::Endpoint::open({*loop_, io::system_random(), base::Duration::zero()}, address, *options.identity, *this, *this);
  if (!endpoint) return std::move(endpoint).error();
  endpoint_ = *std::move(endpoint);
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
  if (closed_.exchange(true)) return {};
  engine_->run([this] {
    heartbeat_timer_->cancel();
    formation_->stop("this node closes");
    const Error closed = closed_error();
    end_formation(closed);
    while (!active_.empty()) {
      OperationState& operation = *active_.back();
      operation.verdict = closed;
      stop(operation);
    }
    for (const auto& [nonce, ping] : std::exchange(pings_, {})) ping->completion.complete();
    if (mesh_ != nullptr) mesh_->leave(fmt::format("rank {} leaves", rank_));
  });
  Result<void> drained = wait_for_farewells();
  gate_.shut();
  engine_->run([] {});  // what was posted before has run now
  engine_->stop();
  gate_.open_exit();
  return drained;
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
