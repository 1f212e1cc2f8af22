// Which buffers are given to whom, and what a peer may say about them.
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collective/host_lending.h"

namespace nexar::collective {
namespace {

using transport::shm::LoanWord;
using transport::shm::ReceivedLoan;
using transport::shm::SentLoan;

// Ranks of one host that are linked, each with all others; what they say waits until it is delivered.
class Host {
 public:
  explicit Host(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back(std::make_unique<HostLending>(HostLending::Environment{[this, rank](int to, SentLoan loan) {
                                                                                said_.push_back({rank, to, std::move(loan)});
                                                                                return true;
                                                                              },
                                                                              [this] { ++woken; }}));
    for (int rank = 0; rank < ranks; ++rank)
      for (int other = 0; other < ranks; ++other)
        if (other != rank) ranks_[static_cast<std::size_t>(rank)]->on_linked(other);
  }

  HostLending& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  std::size_t waiting() const { return said_.size(); }

  void deliver() {
    while (!said_.empty()) {
      Said one = std::move(said_.front());
      said_.pop_front();
      ReceivedLoan received{one.loan.loan, {}};
      if (one.loan.memory != nullptr) received.memory = io::FileDescriptor(::dup(one.loan.memory->fd()));
      EXPECT_TRUE(rank(one.to).on_loan(one.from, std::move(received)));
    }
  }

  int woken = 0;

 private:
  struct Said {
    int from;
    int to;
    SentLoan loan;
  };
  std::vector<std::unique_ptr<HostLending>> ranks_;
  std::deque<Said> said_;
};

TEST(HostLending, LendsWhatAllOfTheGroupHaveMapped) {
  Host host(3);
  const auto pair = host.rank(0).of_group({2, 0}, 1);
  const auto all = host.rank(0).of_group({0, 1, 2}, 0);
  const auto theirs = host.rank(2).of_group({2, 0}, 0);
  auto memory = io::LentMemory::create(10'000).value();
  std::byte* first = memory->bytes().data();
  first[300] = std::byte{42};

  EXPECT_FALSE(pair->find(first + 300, 500));
  EXPECT_FALSE(pair->find(first, 10'001)) << "it does not lie in the buffer";
  EXPECT_FALSE(all->find(first, 1));
  EXPECT_EQ(host.woken, 1) << "it is wanted once";
  host.rank(0).work();
  EXPECT_FALSE(pair->find(first + 300, 500)) << "nobody has mapped it yet";
  host.deliver();
  const auto found = pair->find(first + 300, 500);
  ASSERT_TRUE(found);
  EXPECT_TRUE(all->find(first, 10'000));
  EXPECT_EQ(host.rank(0).lent(), 1U);
  EXPECT_EQ(host.rank(1).borrowed(), 1U);
  theirs->begin_reading();
  const std::byte* there = theirs->address(1, found->buffer, found->offset, 500);
  ASSERT_NE(there, nullptr);
  EXPECT_NE(there, first + 300);
  EXPECT_EQ(*there, std::byte{42});

  EXPECT_FALSE(host.rank(0).is_due());
  memory.reset();
  EXPECT_TRUE(host.rank(0).is_due());
  EXPECT_FALSE(pair->find(first + 300, 500));
  host.rank(0).work();
  host.deliver();
  EXPECT_EQ(host.rank(2).borrowed(), 0U);
  EXPECT_EQ(*there, std::byte{42}) << "who reads it may go on";
  theirs->end_reading();
}

TEST(HostLending, GivesBuffersToWhoComesLaterAndForgetsWhoGoes) {
  Host host(2);
  const auto group = host.rank(0).of_group({0, 1}, 0);
  const auto memory = io::LentMemory::create(100).value();
  EXPECT_FALSE(group->find(memory->bytes().data(), 100));
  host.rank(0).work();
  host.deliver();
  host.rank(1).on_unlinked(0);
  EXPECT_EQ(host.rank(1).borrowed(), 0U);
  host.rank(0).on_linked(7);
  EXPECT_EQ(host.waiting(), 1U);
}

TEST(HostLending, LendsNoMoreThanItMay) {
  Host host(2);
  const auto group = host.rank(0).of_group({0, 1}, 0);
  std::vector<std::shared_ptr<io::LentMemory>> buffers;
  for (std::size_t i = 0; i < direct::Windows::kBuffersMax + 1; ++i) {
    buffers.push_back(io::LentMemory::create(64).value());
    EXPECT_FALSE(group->find(buffers.back()->bytes().data(), 64));
  }
  host.rank(0).work();
  host.deliver();
  EXPECT_EQ(host.rank(0).lent(), direct::Windows::kBuffersMax);
  EXPECT_FALSE(group->find(buffers.back()->bytes().data(), 64));
  buffers.erase(buffers.begin());
  host.rank(0).work();
  host.deliver();
  EXPECT_TRUE(group->find(buffers.back()->bytes().data(), 64)) << "there is room for it now";
}

TEST(HostLending, RefusesWhatNoPeerSays) {
  Host host(2);
  HostLending& here = host.rank(0);
  const auto lent = [&](int fd, std::uint32_t buffer, std::uint64_t bytes) {
    return here.on_loan(1, {{LoanWord::kLent, buffer, bytes}, io::FileDescriptor(fd)});
  };
  const auto memory = io::LentMemory::create(8192).value();
  EXPECT_FALSE(lent(::dup(memory->fd()), 1, 8191)) << "another size";
  EXPECT_FALSE(lent(::dup(memory->fd()), 1, 0));
  const int open = ::memfd_create("not sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(open, 8192), 0);
  EXPECT_FALSE(lent(open, 1, 8192)) << "its owner, or anybody, could write or cut it";
  EXPECT_TRUE(lent(-1, 1, 8192)) << "that this process may open no more is nobody's fault";
  EXPECT_EQ(here.borrowed(), 0U);
  EXPECT_TRUE(lent(::dup(memory->fd()), 1, 8192));
  EXPECT_FALSE(lent(::dup(memory->fd()), 1, 8192)) << "twice";
  EXPECT_TRUE(here.on_loan(1, {{LoanWord::kTakenBack, 99, 0}, {}})) << "what could not be mapped is taken back, too";
  EXPECT_FALSE(here.on_loan(1, {{LoanWord::kMapped, 5, 0}, {}})) << "nothing has that number";
}

}  // namespace
}  // namespace nexar::collective
