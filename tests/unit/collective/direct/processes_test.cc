// Ranks that are processes: each maps the area by itself, at an address of its own, and reads the others' buffers through read-only
// windows.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cases.h"
#include "collective/direct/windows.h"
#include "direct_world.h"
#include "io/lent_memory.h"

namespace nexar::test {
namespace {

using collective::direct::Area;
using collective::direct::Call;
using collective::direct::GroupWindows;
using collective::direct::kSlotBytesMin;
using collective::direct::Layout;
using collective::direct::Operation;
using collective::direct::Outcome;
using collective::direct::Windows;

constexpr std::size_t kLentBytes = 1 << 20;

// What processes have in common: the area, a word, and memory that each lends.
class Host {
 public:
  explicit Host(Rank ranks) : layout_(ranks, kSlotBytesMin), fd_(memfd_create("area", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(bytes())), 0);
    layout_.initialise(map(), 1);
    for (Rank rank = 0; rank < ranks; ++rank) lent_.push_back(io::LentMemory::create(kLentBytes).value());
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::byte* map() const {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(memory);
  }
  // Behind the area: set when the world is over.
  std::atomic<std::uint32_t>& revoked(std::byte* base) const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(base + layout_.bytes());
  }
  const Layout& layout() const { return layout_; }
  const io::LentMemory& lent(Rank rank) const { return *lent_[static_cast<std::size_t>(rank)]; }

 private:
  std::size_t bytes() const { return layout_.bytes() + 64; }

  Layout layout_;
  io::FileDescriptor fd_;
  std::vector<std::shared_ptr<io::LentMemory>> lent_;
};

// In a process of its own: what a rank has.
class ProcessRank {
 public:
  ProcessRank(const Host& host, Rank rank)
      : base_(host.map()),
        revoked_(host.revoked(base_)),
        lending_(windows_, places(host.layout().ranks()), rank),
        area_(base_, host.layout(), rank, nullptr, &lending_, {.lend = 16'384}) {
    windows_.add_own(static_cast<std::uint32_t>(rank), host.lent(rank).bytes(), host.lent(rank).weak_from_this());
    for (Rank other = 0; other < host.layout().ranks(); ++other) {
      if (other == rank) continue;
      auto borrowed = io::BorrowedMemory::map(io::FileDescriptor(dup(host.lent(other).fd())), kLentBytes).value();
      const base::ByteView bytes = borrowed->bytes();
      windows_.add_peer(other, static_cast<std::uint32_t>(other), bytes, std::shared_ptr<const void>(std::move(borrowed)));
      windows_.set_mapped(static_cast<std::uint32_t>(rank), other);
    }
  }

  Outcome run(const Call& call) {
    class UntilRevoked : public collective::direct::Patience {
     public:
      explicit UntilRevoked(const std::atomic<std::uint32_t>& word) : word_(word) {}
      Outcome look(std::uint64_t) override { return word_.load() != 0 ? Outcome::kRevoked : Outcome::kWaiting; }

     private:
      const std::atomic<std::uint32_t>& word_;
    } patience(revoked_);
    Operation operation(area_, call);
    return collective::direct::run(operation, patience, kPoliteSpin);
  }

 private:
  std::byte* base_;
  const std::atomic<std::uint32_t>& revoked_;
  static std::vector<int> places(Rank ranks) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  Windows windows_;
  GroupWindows lending_;
  Area area_;
};

std::vector<pid_t> start(Rank ranks, const std::function<int(Rank)>& body) {
  std::vector<pid_t> processes;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const pid_t process = fork();
    if (process == 0) _exit(body(rank));
    processes.push_back(process);
  }
  return processes;
}

int status_of(pid_t process) {
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  return status;
}

Case case_number(std::size_t i, Rank ranks) {
  std::mt19937_64 random(i);
  Case what;
  what.operation = kDirectOperations[random() % std::size(kDirectOperations)];
  what.type = DataType::kF32;
  what.count = std::array<std::uint64_t, 5>{1, 11, 1'000, 6'000, 15'000}[random() % 5];
  what.ranks = ranks;
  what.root = has_root(what.operation) ? static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks)) : 0;
  what.in_place = what.operation != OperationId::kAllToAll && random() % 2 == 0;
  return what;
}

TEST(Processes, CallEveryKernelOnPrivateAndOnLentMemory) {
  constexpr Rank kRanks = 3;
  const Host host(kRanks);
  const auto processes = start(kRanks, [&](Rank rank) {
    ProcessRank self(host, rank);
    for (std::size_t i = 0; i < 80; ++i) {
      CaseMemory memory(case_number(i, kRanks), i);
      const bool lends = (i + static_cast<std::size_t>(rank)) % 3 != 0 && memory.bytes_of_rank() <= kLentBytes;
      if (lends) memory.place(rank, reinterpret_cast<std::uint8_t*>(host.lent(rank).bytes().data()));
      const Call call = memory.call(rank, i + 1);
      if (self.run(call) != Outcome::kDone) return 2;
      const std::string wrong = memory.wrong_at(rank);
      if (!wrong.empty()) {
        std::fprintf(stderr, "%s\n", wrong.c_str());
        return 1;
      }
    }
    return 0;
  });
  for (const pid_t process : processes) EXPECT_EQ(status_of(process), 0);
}

TEST(Processes, SurviveAKilledOneAsSoonAsTheyAreTold) {
  constexpr Rank kRanks = 3;
  for (int round = 0; round < 10; ++round) {
    const Host host(kRanks);
    std::byte* base = host.map();
    const auto processes = start(kRanks, [&](Rank rank) {
      ProcessRank self(host, rank);
      std::vector<float> values(static_cast<std::size_t>(1 + 3'000 * (round % 3)), 1);
      const auto reducer = reduce::Reducer::make(DataType::kF32, ReduceOp::kMax).value();
      for (Sequence sequence = 1;; ++sequence) {
        Call call;
        call.operation = OperationId::kAllReduce;
        call.sequence = sequence;
        call.send = call.recv = values.data();
        call.count = values.size();
        call.type = DataType::kF32;
        call.reducer = &reducer;
        call.op = ReduceOp::kMax;
        const Outcome outcome = self.run(call);
        if (outcome == Outcome::kRevoked) return values.front() == 1 && values.back() == 1 ? 0 : 1;
        if (outcome != Outcome::kDone && outcome != Outcome::kEnded) return 2;
      }
    });
    const auto& progress = host.layout().progress(base, 1);
    while (progress.entered.load() < static_cast<Sequence>(20 + round)) sched_yield();
    kill(processes[1], SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(status_of(processes[1])));
    host.revoked(base).store(1);
    EXPECT_EQ(status_of(processes[0]), 0);
    EXPECT_EQ(status_of(processes[2]), 0);
  }
}

TEST(LentMemory, CanBeReadByOthersAndWrittenByNobodyElse) {
  const auto lent = io::LentMemory::create(5'000).value();
  lent->bytes()[4'999] = std::byte{42};
  EXPECT_EQ(mmap(nullptr, 5'000, PROT_READ | PROT_WRITE, MAP_SHARED, lent->fd(), 0), MAP_FAILED);
  const auto borrowed = io::BorrowedMemory::map(io::FileDescriptor(dup(lent->fd())), 5'000).value();
  EXPECT_EQ(borrowed->bytes()[4'999], std::byte{42});
  EXPECT_NE(mprotect(const_cast<std::byte*>(borrowed->bytes().data()), 4'096, PROT_READ | PROT_WRITE), 0);
  EXPECT_NE(ftruncate(lent->fd(), 10), 0);
  lent->bytes()[0] = std::byte{1};
  EXPECT_EQ(borrowed->bytes()[0], std::byte{1});
}

TEST(LentMemory, IsRefusedUnlessItIsSealedAndOfTheSizeThatWasTold) {
  const auto lent = io::LentMemory::create(5'000).value();
  const auto wrong_size = io::BorrowedMemory::map(io::FileDescriptor(dup(lent->fd())), 5'001);
  ASSERT_FALSE(wrong_size);
  EXPECT_EQ(wrong_size.error().code(), ErrorCode::kRefused);
  io::FileDescriptor open(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open.get(), 5'000), 0);
  const auto unsealed = io::BorrowedMemory::map(std::move(open), 5'000);
  ASSERT_FALSE(unsealed);
  EXPECT_EQ(unsealed.error().code(), ErrorCode::kRefused);
  EXPECT_EQ(io::LentMemory::create(0).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(io::LentMemory::create(std::size_t{1} << 50).error().code(), ErrorCode::kOverloaded);
}

}  // namespace
}  // namespace nexar::test
