#include "collective/host_lending.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace nexar::collective {

using transport::shm::LoanWord;
using transport::shm::ReceivedLoan;

class HostLending::OfGroup final : public direct::Lending {
 public:
  OfGroup(HostLending& host, std::vector<int> locals, Rank self) : host_(host), windows_(host.windows_, std::move(locals), self) {}

  std::optional<direct::Lent> find(const void* memory, std::uint64_t bytes) const override { return host_.find(windows_, memory, bytes); }
  const std::byte* address(Rank rank, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const override {
    return windows_.address(rank, buffer, offset, bytes);
  }
  void on_lent(std::uint64_t bytes) const override { host_.bytes_lent_.fetch_add(bytes, std::memory_order_relaxed); }
  void begin_reading() const override { windows_.begin_reading(); }
  void end_reading() const override { windows_.end_reading(); }

 private:
  HostLending& host_;
  const direct::GroupWindows windows_;
};

std::unique_ptr<direct::Lending> HostLending::of_group(std::vector<int> locals, Rank self) {
  return std::make_unique<OfGroup>(*this, std::move(locals), self);
}

std::optional<direct::Lent> HostLending::find(const direct::GroupWindows& windows, const void* memory, std::uint64_t bytes) {
  std::optional<direct::Lent> found = windows.find(memory, bytes);
  if (!found) want(memory, bytes);
  return found;
}

void HostLending::want(const void* memory, std::uint64_t bytes) {
  const std::shared_ptr<io::LentMemory> lent = io::LentMemory::containing(memory);
  if (lent == nullptr) return;
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - lent->bytes().data());
  if (bytes > lent->bytes().size() - offset) return;
  {
    const std::lock_guard lock(mutex_);
    const auto is_same = [&](const std::weak_ptr<io::LentMemory>& one) { return !one.owner_before(lent) && !lent.owner_before(one); };
    if (std::any_of(wanted_.begin(), wanted_.end(), is_same)) return;
    wanted_.push_back(lent);
  }
  environment_.wake();
}

void HostLending::work() {
  take_back_freed();
  std::vector<std::weak_ptr<io::LentMemory>> wanted;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [](const auto& one) { return one.expired(); });
    wanted = wanted_;
  }
  for (const auto& one : wanted)
    if (const std::shared_ptr<io::LentMemory> memory = one.lock(); memory != nullptr && !give(memory)) return;
}

// False when there are too many: the rest waits until some have been freed.
bool HostLending::give(const std::shared_ptr<io::LentMemory>& memory) {
  if (std::any_of(given_.begin(), given_.end(), [&](const Given& one) { return one.memory.lock() == memory; })) return true;
  if (next_buffer_ == std::numeric_limits<std::uint32_t>::max() || !windows_.add_own(next_buffer_, memory->bytes(), memory)) return false;
  Given& given = given_.emplace_back(Given{next_buffer_++, memory, {}});
  for (const int local : linked_) tell_of(given, memory, local);
  return true;
}

// Whoever cannot be told has not mapped it, so that it is copied in calls with that rank.
void HostLending::tell_of(Given& given, const std::shared_ptr<io::LentMemory>& memory, int local) {
  if (environment_.tell(local, {{LoanWord::kLent, given.buffer, memory->bytes().size()}, memory})) given.to.push_back(local);
}

void HostLending::take_back_freed() {
  freed_seen_ = io::LentMemory::freed();
  std::erase_if(given_, [&](const Given& one) {
    if (!one.memory.expired()) return false;
    windows_.remove_own(one.buffer);
    for (const int local : one.to) environment_.tell(local, {{LoanWord::kTakenBack, one.buffer, 0}, nullptr});
    return true;
  });
}

Result<void> HostLending::on_loan(int from, ReceivedLoan received) {
  const transport::shm::Loan& loan = received.loan;
  if (loan.word == LoanWord::kMapped) {
    if (loan.buffer >= next_buffer_)
      return Error(ErrorCode::kRefused, fmt::format("a peer has mapped buffer {}, which does not exist", loan.buffer));
    windows_.set_mapped(loan.buffer, from);
    return {};
  }
  if (loan.word == LoanWord::kTakenBack) {
    windows_.remove_peer(from, loan.buffer);
    return {};
  }
  if (!received.memory) return {};  // it cannot be opened here, and is not mapped
  Result<std::unique_ptr<io::BorrowedMemory>> mapped = io::BorrowedMemory::map(std::move(received.memory), loan.bytes);
  if (!mapped && mapped.error().code() == ErrorCode::kRefused) return std::move(mapped).error();
  if (!mapped) return {};
  const base::ByteView memory = (*mapped)->bytes();
  if (!windows_.add_peer(from, loan.buffer, memory, std::shared_ptr<const void>(*std::move(mapped))))
    return Error(ErrorCode::kRefused,
                 fmt::format("a peer lends buffer {} twice, or more than {} buffers", loan.buffer, direct::Windows::kBuffersMax));
  environment_.tell(from, {{LoanWord::kMapped, loan.buffer, 0}, nullptr});
  return {};
}

void HostLending::on_linked(int local) {
  linked_.insert(std::lower_bound(linked_.begin(), linked_.end(), local), local);
  for (Given& given : given_)
    if (const std::shared_ptr<io::LentMemory> memory = given.memory.lock()) tell_of(given, memory, local);
}

void HostLending::on_unlinked(int local) {
  std::erase(linked_, local);
  windows_.remove_peer(local);
}

}  // namespace nexar::collective
