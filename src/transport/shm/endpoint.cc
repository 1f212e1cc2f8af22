#include "transport/shm/endpoint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "io/host.h"

namespace nexar::transport::shm {
namespace {

io::ProcessMemory::Proof proof_of(const std::uint64_t& word) {
  return {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&word)), word};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(io::Loop& loop, io::Random& random) {
  Result<io::EventDescriptor> bell = io::EventDescriptor::open();
  if (!bell) return std::move(bell).error();
  std::unique_ptr<Endpoint> endpoint(new Endpoint(loop, random, *std::move(bell)));
  if (auto watched = loop.watch(endpoint->bell_.fd(), {.read = true}, *endpoint); !watched) return std::move(watched).error();
  endpoint->registered_ = true;
  loop.add_poller(*endpoint);
  return endpoint;
}

Endpoint::Endpoint(io::Loop& loop, io::Random& random, io::EventDescriptor bell)
    : loop_(loop),
      bell_(std::move(bell)),
      word_(std::make_unique<std::uint64_t>(random.number<std::uint64_t>())),
      own_(io::this_process(), proof_of(*word_)) {}

Endpoint::~Endpoint() {
  connections_.clear();
  if (!registered_) return;
  loop_.remove_poller(*this);
  loop_.unwatch(bell_.fd());
}

io::ProcessMemory::Proof Endpoint::proof() const { return proof_of(*word_); }

void Endpoint::use(std::shared_ptr<HostSegment> segment, int self) {
  NEXAR_ASSERT(segment_ == nullptr, "an epoch has one segment");
  segment_ = std::move(segment);
  bells_ = std::make_shared<Bells>(segment_);
  self_ = self;
}

Result<Link*> Endpoint::connect(Ends ends, Channel channel, LinkHandler& handler) {
  NEXAR_ASSERT(segment_ != nullptr && ends.here == self_, "a link leads through the segment, from here");
  bells_->add(ends.there, *std::exchange(channel.bell, std::nullopt));
  const int local = ends.there;
  auto connection = std::make_unique<Connection>(*this, *segment_, ends, std::move(channel), handler);
  if (auto watched = connection->watch(); !watched) return std::move(watched).error();
  connections_.push_back(std::move(connection));
  Link* link = connections_.back().get();
  if (loans_ != nullptr) loans_->on_linked(local);
  return link;
}

bool Endpoint::tell(int local, SentLoan loan) {
  const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& one) { return one->there() == local; });
  return found != connections_.end() && (*found)->tell(std::move(loan));
}

Result<void> Endpoint::take_loan(int from, ReceivedLoan loan) {
  if (loans_ == nullptr) return {};
  return loans_->on_loan(from, std::move(loan));
}

void Endpoint::unlinked(int local) {
  if (loans_ != nullptr) loans_->on_unlinked(local);
}

// Handlers may connect meanwhile, so connections are counted before.
bool Endpoint::poll() {
  bool busy = false;
  flush();  // what was posted
  const std::size_t count = connections_.size();
  bool ended = false;
  for (std::size_t i = 0; i < count; ++i) {
    busy = connections_[i]->turn() || busy;
    ended = ended || connections_[i]->state() == Connection::State::kEnded;
  }
  flush();
  if (ended) bury();
  return busy;
}

void Endpoint::flush_later(Connection& connection) {
  to_flush_.push_back(&connection);
  if (to_flush_.size() == 1) loop_.flush_later(*this);
}

void Endpoint::flush() {
  for (Connection* connection : to_flush_) connection->flush();
  to_flush_.clear();
}

void Endpoint::bury() {
  std::erase_if(connections_, [](const auto& connection) { return connection->state() == Connection::State::kEnded; });
}

void Endpoint::drain() {
  for (std::size_t i = 0; i < connections_.size(); ++i) connections_[i]->drain();
}

bool Endpoint::fall_asleep() {
  if (segment_ == nullptr) return true;
  segment_->rank(self_).asleep.store(1, std::memory_order_seq_cst);
  return std::none_of(connections_.begin(), connections_.end(), [](const auto& connection) { return connection->has_work(); });
}

void Endpoint::wake_up() {
  if (segment_ != nullptr) segment_->rank(self_).asleep.store(0, std::memory_order_relaxed);
}

void Endpoint::on_ready(io::Readiness) {
  bell_.clear();
  poll();
}

// Memory of devices can be copied by its owner and not be read by others: the kernel says so to the owner as well.
bool Endpoint::can_be_read(std::uint64_t address) const {
  std::byte byte{};
  const std::array<base::ByteSpan, 1> one = {base::ByteSpan(&byte, 1)};
  return own_.read(address, one);
}

}  // namespace nexar::transport::shm
