// A process's end of the memory that its host shares: all its links through it, and its doorbell.
//
// While a thread spins it looks into the rings on every turn. Before it blocks it says so in the segment; then whoever writes for it
// rings its doorbell.
//
// Thread: engine. Owned by the node; outlives its links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "io/event_descriptor.h"
#include "io/loop.h"
#include "io/process_memory.h"
#include "io/random.h"
#include "transport/link.h"
#include "transport/shm/bells.h"
#include "transport/shm/connection.h"
#include "transport/shm/loan.h"
#include "transport/shm/segment.h"
#include "wire/limits.h"

namespace nexar::transport::shm {

class Endpoint final : private io::Poller, private io::Watcher {
 public:
  static Result<std::unique_ptr<Endpoint>> open(io::Loop& loop, io::Random& random);
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // What peers are given: a descriptor to ring, and a word to find in this process's memory.
  int bell() const { return bell_.fd(); }
  io::ProcessMemory::Proof proof() const;

  // The segment of this epoch, in which this process is local rank `self`. Once, before the first link.
  void use(std::shared_ptr<HostSegment> segment, int self);
  const std::shared_ptr<HostSegment>& segment() const { return segment_; }

  // The doorbells of those to whom there is a link; null before use().
  const std::shared_ptr<Bells>& bells() const { return bells_; }

  // Who hears of memory that is lent; null: nobody. It outlives this.
  void set_loans(LoanHandler* handler) { loans_ = handler; }
  // False when there is no link, or too much waits to be told.
  bool tell(int local, SentLoan loan);

  // A link to a local rank, ready at once: its handler hears no on_ready. Both ends have agreed on it.
  Result<Link*> connect(Ends ends, Channel channel, LinkHandler& handler);

  // Reads everything that is in the rings. Not from a handler's call.
  void drain();

  std::size_t connections() const { return connections_.size(); }

 private:
  friend class Connection;

  Endpoint(io::Loop& loop, io::Random& random, io::EventDescriptor bell);

  bool poll() override;
  bool fall_asleep() override;
  void wake_up() override;
  void flush() override;
  void on_ready(io::Readiness ready) override;
  void bury();

  // For connections.
  io::Loop& loop() { return loop_; }
  bool can_be_read(std::uint64_t address) const;
  base::ByteSpan scratch() { return {scratch_.get(), wire::kBulkBytesMax}; }
  Result<void> take_loan(int from, ReceivedLoan loan);
  void unlinked(int local);
  void flush_later(Connection& connection);
  void forget(Connection& connection) { std::erase(to_flush_, &connection); }

  io::Loop& loop_;
  io::EventDescriptor bell_;
  std::unique_ptr<std::uint64_t> word_;  // of the proof
  io::ProcessMemory own_;                // this process's, as the kernel lets it be read
  std::shared_ptr<HostSegment> segment_;
  std::shared_ptr<Bells> bells_;
  LoanHandler* loans_ = nullptr;
  int self_ = -1;
  bool registered_ = false;
  const std::unique_ptr<std::byte[]> scratch_ = std::make_unique_for_overwrite<std::byte[]>(wire::kBulkBytesMax);
  std::vector<Connection*> to_flush_;  // outlives the connections
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace nexar::transport::shm
