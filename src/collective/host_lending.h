// Gives the shared buffers of this rank to the others of its host, and maps theirs.
//
// A buffer is given when a call first wants to lend it, and lent in the calls that begin after every member of their group has said that it
// has mapped it; until then it is copied like any other memory. It is taken back when it has been freed: nobody is asked to use a buffer
// in a special way.
//
// Owned by the node; outlives the groups that lend. Thread: engine, where nothing else is said.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "collective/direct/lending.h"
#include "collective/direct/windows.h"
#include "io/lent_memory.h"
#include "nexar/ids.h"
#include "transport/shm/loan.h"

namespace nexar::collective {

class HostLending final : public transport::shm::LoanHandler {
 public:
  struct Environment {
    std::function<bool(int, transport::shm::SentLoan)> tell;  // a local rank; false when it cannot be told
    std::function<void()> wake;                               // work() is due. Thread: any
  };

  explicit HostLending(Environment environment) : environment_(std::move(environment)) {}

  // What a group's calls ask; `locals` as in GroupWindows. It refers to this.
  std::unique_ptr<direct::Lending> of_group(std::vector<int> locals, Rank self);

  // Gives what is wanted, takes back what has been freed.
  void work();

  // Whether a buffer of this process has been freed since work() looked: cheap.
  bool is_due() const { return io::LentMemory::freed() != freed_seen_; }

  // LoanHandler
  Result<void> on_loan(int from, transport::shm::ReceivedLoan received) override;
  void on_linked(int local) override;
  void on_unlinked(int local) override;

  std::size_t lent() const { return windows_.own(linked_); }  // own buffers that all others have mapped
  std::size_t borrowed() const { return windows_.peers(); }
  std::uint64_t bytes_lent() const { return bytes_lent_.load(std::memory_order_relaxed); }  // by calls, instead of copying them

 private:
  class OfGroup;
  struct Given {
    std::uint32_t buffer;
    std::weak_ptr<io::LentMemory> memory;
    std::vector<int> to;
  };

  // Thread: any.
  std::optional<direct::Lent> find(const direct::GroupWindows& windows, const void* memory, std::uint64_t bytes);
  void want(const void* memory, std::uint64_t bytes);

  void take_back_freed();
  bool give(const std::shared_ptr<io::LentMemory>& memory);
  void tell_of(Given& given, const std::shared_ptr<io::LentMemory>& memory, int local);

  const Environment environment_;
  direct::Windows windows_;
  std::atomic<std::uint64_t> bytes_lent_ = 0;
  std::mutex mutex_;
  std::vector<std::weak_ptr<io::LentMemory>> wanted_;  // by calls, under the mutex: given or to be given
  std::vector<Given> given_;
  std::vector<int> linked_;  // sorted
  std::uint32_t next_buffer_ = 1;
  std::uint64_t freed_seen_ = 0;
};

}  // namespace nexar::collective
