// SharedBuffers between ranks that are real processes: what is read in place, by whom it can be written, and when it goes.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nexar/node.h"
#include "nexar/shared_buffer.h"
#include "processes.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

// Less is copied all the same: 32 MiB and a little.
constexpr std::uint64_t kCount = (8u << 20) + 1003;

Config sharing() {
  Config config;
  config.transport = Transport::kShm;
  config.heartbeat_timeout = 10min;  // deaths are noticed by the end of a socket
  config.log = LogLevel::kOff;
  return config;
}

std::string verdict(const Result<void>& result) {
  if (result) return "success";
  return fmt::format("{} {}", to_string(result.error().code()), fmt::join(result.error().ranks(), ","));
}

// Lines of /proc/self/maps that name memory of a SharedBuffer.
std::vector<std::string> mapped_buffers() {
  std::vector<std::string> lines;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:nexar buffer") != std::string::npos) lines.push_back(line);
  return lines;
}

// Memory for kCount numbers, shared or not, that begins somewhere inside what was allocated.
class Memory {
 public:
  Memory(bool shared, std::uint64_t first) {
    const std::uint64_t bytes = (first + kCount) * sizeof(std::int32_t);
    if (shared)
      shared_ = alloc_shared(bytes).value();
    else
      own_.resize(first + kCount);
    values_ = (shared ? shared_.as<std::int32_t>().data() : own_.data()) + first;
  }

  std::int32_t* data() { return values_; }
  void fill(std::int32_t seed) {
    for (std::uint64_t i = 0; i < kCount; ++i) values_[i] = seed + static_cast<std::int32_t>(i % 1009);
  }
  // Whether element i is a * (i % 1009) + b, everywhere.
  bool holds(std::int32_t a, std::int32_t b) const {
    for (std::uint64_t i = 0; i < kCount; ++i)
      if (values_[i] != a * static_cast<std::int32_t>(i % 1009) + b) return false;
    return true;
  }

 private:
  SharedBuffer shared_;
  std::vector<std::int32_t> own_;
  std::int32_t* values_ = nullptr;
};

Result<void> sum(const Group& world, std::int32_t* data) { return world.all_reduce(data, data, kCount, DataType::kI32, ReduceOp::kSum); }

// Until this rank has lent and borrowed as many buffers; false after half a minute.
bool wait_for(const Node& node, std::uint64_t lent, std::uint64_t borrowed) {
  for (const auto until = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < until;) {
    const LendingCounters counters = node.counters().value().lending;
    if (counters.lent == lent && counters.borrowed == borrowed) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// One call, then all know of the buffers, then calls that read them in place. `lenders` has a bit for each rank whose buffer is shared.
std::string call_in_place(Node& node, unsigned lenders) {
  const Group world = node.world();
  const auto n = static_cast<std::int32_t>(world.size());
  const bool lends = (lenders >> node.rank() & 1) != 0;
  std::uint64_t all_lenders = 0;
  for (int rank = 0; rank < world.size(); ++rank) all_lenders += lenders >> rank & 1;
  Memory memory(lends, node.rank() == 0 ? 0 : 12'345);  // where it begins makes no difference
  std::int32_t seeds = 0;
  for (std::int32_t rank = 0; rank < n; ++rank) seeds += rank * 7;

  memory.fill(node.rank() * 7);
  if (auto result = sum(world, memory.data()); !result) return result.error().to_string();
  if (!memory.holds(n, seeds)) return "the first sum is wrong";
  if (!wait_for(node, lends ? 1 : 0, all_lenders - (lends ? 1 : 0))) return "nobody knows of the buffers";
  if (auto result = world.barrier(); !result) return result.error().to_string();

  const std::uint64_t before = node.counters().value().lending.bytes_lent;
  for (int round = 0; round < 2; ++round) {
    memory.fill(node.rank() * 7 + round);
    if (auto result = sum(world, memory.data()); !result) return result.error().to_string();
    if (!memory.holds(n, seeds + n * round)) return "a sum in place is wrong";
  }
  const std::uint64_t after = node.counters().value().lending.bytes_lent;
  if (after - before != (lends ? 2 * kCount * sizeof(std::int32_t) : 0)) return fmt::format("{} bytes were lent", after - before);

  memory.fill(node.rank() * 7);
  for (Rank root = 0; root < world.size(); ++root) {
    if (auto result = world.broadcast(memory.data(), kCount, DataType::kI32, root); !result) return result.error().to_string();
    if (!memory.holds(1, 0)) return "a broadcast is wrong";  // rank 0's came first
  }
  memory.fill(node.rank() * 7);
  Memory result_memory(false, 0);
  if (auto result = world.all_reduce(memory.data(), result_memory.data(), kCount, DataType::kI32, ReduceOp::kMax); !result)
    return result.error().to_string();
  if (!result_memory.holds(1, (n - 1) * 7) || !memory.holds(1, node.rank() * 7)) return "a maximum elsewhere is wrong";
  if (auto result = world.reduce(memory.data(), result_memory.data(), kCount, DataType::kI32, ReduceOp::kSum, n - 1); !result)
    return result.error().to_string();
  if (node.rank() == n - 1 && !result_memory.holds(n, seeds)) return "a sum at a root is wrong";
  if (auto result = world.barrier(); !result) return result.error().to_string();
  return "right";
}

TEST(SharedBuffers, AreReadInPlaceWhoeverHasOne) {
  for (const auto& [size, lenders] : std::vector<std::pair<int, unsigned>>{{2, 0b11}, {2, 0b10}, {2, 0b00}, {3, 0b111}, {3, 0b010}}) {
    SCOPED_TRACE(fmt::format("{} ranks, lenders {:b}", size, lenders));
    Processes ranks(size, sharing(), [lenders = lenders](Node& node, const Wire& wire) { wire.say(call_in_place(node, lenders)); });
    for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(ranks.hear(rank), "right") << rank;
    for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << rank;
  }
}

// A group of some of them, made before its buffers were: those who are not in it are not waited for.
TEST(SharedBuffers, AreLentInGroupsToo) {
  Processes ranks(3, sharing(), [](Node& node, const Wire& wire) {
    std::optional<Group> pair = node.world().split(node.rank() == 1 ? 1 : 0, -node.rank()).value();
    std::string said = "right";
    Memory memory(true, 5);
    for (int round = 0; node.rank() != 1 && round < 3; ++round) {
      memory.fill(node.rank());
      if (auto result = sum(*pair, memory.data()); !result) said = result.error().to_string();
      if (!memory.holds(2, 2)) said = "wrong";
      if (round == 0 && !wait_for(node, 1, 1)) said = "nobody knows of the buffers";
      if (auto result = pair->barrier(); !result) said = result.error().to_string();
    }
    if (node.rank() != 1 && node.counters().value().lending.bytes_lent != 2 * kCount * sizeof(std::int32_t)) said = "they were copied";
    wire.say(said);
    if (auto result = node.world().barrier(); !result) wire.say(result.error().to_string());
  });
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.hear(rank), "right") << rank;
}

// The next buffer may well lie where the last one was, and so may memory of any other kind.
TEST(SharedBuffers, GoWhenTheyAreFreed) {
  Processes ranks(2, sharing(), [](Node& node, const Wire& wire) {
    const Group world = node.world();
    std::string said = "right";
    for (int round = 0; round < 6 && said == "right"; ++round) {
      Memory memory(round % 3 != 2, 0);
      for (int call = 0; call < 2; ++call) {
        memory.fill(node.rank() + 10 * round + call);
        if (auto result = sum(world, memory.data()); !result) said = result.error().to_string();
        if (!memory.holds(2, 1 + 2 * (10 * round + call))) said = fmt::format("wrong in round {}", round);
        if (call == 0 && round % 3 == 1 && !wait_for(node, 1, 1)) said = "nobody knows of the buffers";  // and in round 0 perhaps
      }
      if (auto result = world.barrier(); !result) said = result.error().to_string();
    }
    if (!wait_for(node, 0, 0)) said = "buffers are left";
    if (!mapped_buffers().empty()) said = "mapped: " + mapped_buffers().front();
    wire.say(said);
    if (auto result = world.barrier(); !result) wire.say(result.error().to_string());
  });
  for (Rank rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.hear(rank), "right") << rank;
}

// Tries everything that a process can do with memory that it has mapped, and with its owner's descriptor.
std::string try_to_write() {
  const std::vector<std::string> lines = mapped_buffers();
  if (lines.size() != 1) return fmt::format("{} buffers are mapped", lines.size());
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  char dash = 0;
  std::string permissions;
  std::istringstream(lines[0]) >> std::hex >> from >> dash >> to >> permissions;
  if (permissions != "r--s") return "it is mapped as " + permissions;
  auto* memory = reinterpret_cast<void*>(from);
  if (::mprotect(memory, to - from, PROT_READ | PROT_WRITE) == 0) return "it can be made writable";
  int ends[2];
  if (::pipe(ends) != 0 || ::write(ends[1], "x", 1) != 1) return "no pipe";
  if (::read(ends[0], memory, 1) != -1 || errno != EFAULT) return "the kernel wrote into it";
  const std::string path = fmt::format("/proc/self/map_files/{:x}-{:x}", from, to);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return "it cannot be written";  // nor opened, by whoever is not root
  if (::write(fd, "x", 1) != -1) return "its file can be written";
  if (::mmap(nullptr, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) return "its file can be mapped to be written";
  if (::ftruncate(fd, 0) == 0) return "it can be cut off";
  if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0) return "it can be emptied";
  return "it cannot be written";
}

TEST(SharedBuffers, CannotBeWrittenByAnybodyElse) {
  Processes ranks(2, sharing(), [](Node& node, const Wire& wire) {
    Memory memory(node.rank() == 0, 0);
    memory.fill(node.rank());
    std::string said = verdict(sum(node.world(), memory.data()));
    if (!wait_for(node, node.rank() == 0 ? 1 : 0, node.rank() == 0 ? 0 : 1)) said = "nobody knows of the buffer";
    if (node.rank() == 1 && said == "success") said = try_to_write();
    if (auto result = node.world().barrier(); !result) said = verdict(result);
    if (node.rank() == 0 && said == "success") said = memory.holds(2, 1) ? "it cannot be written" : "it was written";
    wire.say(said);
  });
  for (Rank rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.hear(rank), "it cannot be written") << rank;
}

// Whoever gives a call up has its memory back, and does with it what it likes: no other rank takes that for numbers.
TEST(SharedBuffers, ComeBackFromACallThatWasGivenUp) {
  constexpr int kRanks = 3;
  constexpr int kRounds = 12;
  Processes ranks(kRanks, sharing(), [](Node& node, const Wire& wire) {
    const Group world = node.world();
    std::mt19937 random(static_cast<unsigned>(node.rank()) + 5);
    Memory memory(true, 0);
    std::string said = "right";
    if (auto result = sum(world, memory.data()); !result) said = result.error().to_string();
    if (!wait_for(node, 1, kRanks - 1)) said = "nobody knows of the buffers";
    for (int round = 0; round < kRounds && said == "right"; ++round) {
      memory.fill(node.rank());
      if (auto result = world.barrier(); !result) said = result.error().to_string();
      if (node.rank() == round % kRanks) {
        {
          Operation doomed = world.start_all_reduce(memory.data(), memory.data(), kCount, DataType::kI32, ReduceOp::kSum);
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
        }
        memory.fill(-1'000'000);
      } else if (auto result = sum(world, memory.data()); result) {
        if (!memory.holds(kRanks, 3)) said = fmt::format("round {} succeeded with wrong numbers", round);
      } else if (result.error().code() != ErrorCode::kCancelled) {
        said = result.error().to_string();
      }
    }
    wire.say(said);
    if (auto result = world.barrier(); !result) wire.say(result.error().to_string());
  });
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.hear(rank), "right") << rank;
}

void sum_until_the_end(Node& node, const Wire& wire) {
  const Group world = node.world();
  Memory memory(true, 0);
  Result<void> result = sum(world, memory.data());
  std::string said = wait_for(node, 1, static_cast<std::uint64_t>(world.size()) - 1) ? "runs" : "nobody knows of the buffers";
  wire.say(said);
  while (result) result = sum(world, memory.data());
  memory.fill(node.rank());
  wire.say(verdict(result));
  wire.hear();
  wire.say(memory.holds(1, node.rank()) ? "unchanged" : "changed");
  const NodeCounters counters = node.counters().value();
  std::size_t living = 0;
  for (const PeerCounters& peer : counters.peers) living += peer.state == PeerCounters::State::kLinked ? 1 : 0;
  // Its own, and those of the others that live.
  const bool left = counters.lending.borrowed <= living && mapped_buffers().size() == 1 + counters.lending.borrowed;
  wire.say(left ? "unmapped" : fmt::format("{} of {} others' buffers are mapped", counters.lending.borrowed, living));
}

// At any point of a call in which everything is read in place; what the dead one lent goes with it.
void kill_in_place(int rounds) {
  std::random_device seed;
  std::mt19937 random(seed());
  for (int round = 0; round < rounds; ++round) {
    Processes ranks(3, sharing(), sum_until_the_end);
    for (Rank rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks.hear(rank), "runs");
    const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 60'000'000)};  // the event is time itself: any moment
    nanosleep(&pause, nullptr);
    const auto victim = static_cast<Rank>(random() % 3);
    ranks.signal(victim, SIGKILL);
    for (Rank rank = 0; rank < 3; ++rank)
      if (rank != victim) {
        EXPECT_EQ(ranks.hear(rank), fmt::format("peer_lost {}", victim)) << "round " << round;
      }
    for (Rank rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      ranks.say(rank, "look");
      EXPECT_EQ(ranks.hear(rank), "unchanged");
      EXPECT_EQ(ranks.hear(rank), "unmapped");
      EXPECT_EQ(ranks.wait(rank), 0);
    }
  }
}

TEST(SharedBuffers, OfAKilledRankGoWithIt) { kill_in_place(3); }
TEST(SharedBuffersLong, OfAKilledRankGoWithIt) { kill_in_place(100); }

// The others end the call without it, and use their memory for something else, which it may read and does not use.
TEST(SharedBuffers, OfRanksThatExpelledAStoppedOneStayTheirs) {
  Config config = sharing();
  config.heartbeat_interval = 100ms;
  config.heartbeat_timeout = 1s;
  Processes ranks(3, config, sum_until_the_end);
  for (Rank rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks.hear(rank), "runs");
  ranks.signal(1, SIGSTOP);
  for (const Rank rank : {0, 2}) EXPECT_EQ(ranks.hear(rank), "peer_lost 1");
  ranks.signal(1, SIGCONT);
  EXPECT_EQ(ranks.hear(1), "peer_lost 1") << "it learns that it is out";
  for (const Rank rank : {0, 2}) ranks.say(rank, "look");
  for (const Rank rank : {0, 2}) EXPECT_EQ(ranks.hear(rank), "unchanged");
}

}  // namespace
}  // namespace nexar::test
