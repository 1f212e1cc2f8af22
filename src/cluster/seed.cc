// Seed: the service on a thread of its own.
#include "nexar/seed.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/host_port.h"
#include "cluster/seed_service.h"
#include "io/epoll_loop.h"
#include "io/stderr_log.h"
#include "io/thread.h"
#include "wire/limits.h"

namespace nexar {
namespace {

// A thread that has nothing to do sleeps; timers, packets and stop() wake it.
constexpr base::Duration kLongestTurn = std::chrono::seconds(10);

// How long stop() waits until everybody has heard of it: a few round trips, and short beside a program's exit.
constexpr base::Duration kStopLimit = std::chrono::milliseconds(500);

// The addresses that HOST:PORT means here, one of which is bound.
Result<std::vector<io::Address>> addresses_of(const std::string& text) {
  const Result<cluster::HostPort> listen = cluster::parse_host_port(text);
  if (!listen) return listen.error();
  return io::resolve(listen->host, listen->port);
}

// What stands behind a Seed.
class SeedThread {
 public:
  static Result<std::unique_ptr<SeedThread>> start(SeedOptions options);
  ~SeedThread() { stop(); }

  const std::string& address() const { return address_; }
  Result<void> wait_formed();
  void stop();

  // In a child of fork, which has neither the thread nor whoever waits here.
  bool is_forked() const { return io::forks() != forks_; }

  // Destroys it; in a child of fork leaves everything as it is.
  static void retire(std::unique_ptr<SeedThread> service);

 private:
  SeedThread() = default;
  Result<void> open(SeedOptions options);
  void run();
  void decide(Result<void> decision);

  std::uint32_t forks_ = io::forks();
  std::string address_;
  std::unique_ptr<io::EpollLoop> loop_;
  std::unique_ptr<cluster::SeedService> seed_;  // of the thread, once that runs
  std::mutex stop_mutex_;                       // whoever stops first does it, and the others wait
  std::thread thread_;
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<void>> decision_;
};

Result<std::unique_ptr<SeedThread>> SeedThread::start(SeedOptions options) {
  std::unique_ptr<SeedThread> service(new SeedThread);
  if (Result<void> opened = service->open(std::move(options)); !opened) return std::move(opened).error();
  Result<std::thread> thread = io::start_thread("nexar-seed", [self = service.get()] { self->run(); });
  if (!thread) return std::move(thread).error();
  service->thread_ = *std::move(thread);
  return service;
}

Result<void> SeedThread::open(SeedOptions options) {
  if (options.world < 1 || options.world > static_cast<int>(wire::kWorldMax))
    return Error(ErrorCode::kInvalidArgument, fmt::format("a world of {} nodes: it has 1 to {}", options.world, wire::kWorldMax));
  if (options.formation <= base::Duration::zero()) return Error(ErrorCode::kInvalidArgument, "a world needs some time to form");
  const Result<std::vector<io::Address>> addresses = addresses_of(options.listen);
  if (!addresses) return addresses.error();
  Result<std::unique_ptr<io::EpollLoop>> loop = io::EpollLoop::open();
  if (!loop) return std::move(loop).error();
  loop_ = *std::move(loop);

  std::optional<Error> first_failure;
  for (const io::Address& address : *addresses) {
    const SeedCredentials::Content& given = options.credentials.content();
    Result<crypto::PrivateKey> key = crypto::PrivateKey::parse(given.key.der().view());
    if (!key) return std::move(key).error();
    auto seed = cluster::SeedService::open({*loop_, io::system_random(), io::real_clock()},
                                           {address,
                                            options.world,
                                            options.formation,
                                            {given.cluster, *std::move(key), crypto::Secret(given.secret.view())},
                                            base::Logger(options.log, io::stderr_log())},
                                           [this](Result<void> decision) { decide(std::move(decision)); });
    if (seed) {
      seed_ = *std::move(seed);
      address_ = seed_->address().to_string();
      return {};
    }
    if (!first_failure) first_failure = std::move(seed).error();
  }
  return *first_failure;
}

void SeedThread::run() {
  while (!stopping_.load()) loop_->turn(kLongestTurn);
  seed_->stop();
  const base::Time until = loop_->refresh() + kStopLimit;
  while (!seed_->is_empty() && loop_->refresh() < until) loop_->turn(std::chrono::milliseconds(10));
  seed_.reset();
}

void SeedThread::decide(Result<void> decision) {
  const std::lock_guard lock(mutex_);
  if (!decision_) decision_ = std::move(decision);
  changed_.notify_all();
}

Result<void> SeedThread::wait_formed() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return decision_.has_value(); });
  return *decision_;
}

void SeedThread::stop() {
  if (is_forked()) return;
  const std::lock_guard lock(stop_mutex_);
  if (!thread_.joinable()) return;
  stopping_.store(true);
  loop_->wake();
  thread_.join();
  decide(Error(ErrorCode::kCancelled, "the seed was stopped before the world was complete"));
}

void SeedThread::retire(std::unique_ptr<SeedThread> service) {
  if (service == nullptr || !service->is_forked()) return;
  static auto& forgotten = *new std::vector<std::unique_ptr<SeedThread>>();  // reachable, so that no leak checker objects
  forgotten.push_back(std::move(service));
}

}  // namespace

class Seed::Service {
 public:
  explicit Service(std::unique_ptr<SeedThread> given) : thread(std::move(given)) {}
  ~Service() { SeedThread::retire(std::move(thread)); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::unique_ptr<SeedThread> thread;
};

Seed::Seed(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Seed::Seed(Seed&&) noexcept = default;
Seed& Seed::operator=(Seed&&) noexcept = default;
Seed::~Seed() = default;

Result<Seed> Seed::start(SeedOptions options) {
  Result<std::unique_ptr<SeedThread>> thread = SeedThread::start(std::move(options));
  if (!thread) return std::move(thread).error();
  return Seed(std::make_unique<Service>(*std::move(thread)));
}

const std::string& Seed::address() const { return service_->thread->address(); }
Result<void> Seed::wait_formed() const { return service_->thread->wait_formed(); }
void Seed::stop() { service_->thread->stop(); }

}  // namespace nexar
