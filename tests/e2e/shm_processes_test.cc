// Ranks of one host that are real processes: what they share, and what remains when one of them dies, stops, or goes mad.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nexar/node.h"
#include "processes.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

// Deaths are noticed by the end of a socket here: a detector that took ten minutes could not be what noticed them.
Config patient(Transport transport = Transport::kShm) {
  Config config;
  config.heartbeat_timeout = 10min;
  config.log = LogLevel::kOff;
  config.transport = transport;
  return config;
}

std::string verdict(const Result<Status>& result) {
  if (result) return "success";
  return fmt::format("{} {}", to_string(result.error().code()), fmt::join(result.error().ranks(), ","));
}

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(&bytes[i], &word, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

std::string transports(const Node& node) {
  std::string text;
  const NodeCounters counters = node.counters().value();
  for (const PeerCounters& peer : counters.peers)
    if (peer.rank != node.rank()) text += peer.transport + " ";
  return text;
}

// Lines of /proc/self/maps that name a segment of ours.
std::vector<std::string> mapped_segments() {
  std::vector<std::string> lines;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:nexar") != std::string::npos) lines.push_back(line);
  return lines;
}

TEST(Shm, ProcessesExchangeMessagesOfEverySize) {
  constexpr int kRanks = 3;
  Processes ranks(kRanks, patient(), [](Node& node, const Wire& wire) {
    std::string said;
    for (const std::size_t size : {0, 1, 48, 4096, 65536, 65537, 200'000, 5 << 20}) {
      for (int step = 1; step < kRanks; ++step) {
        const Rank to = (node.rank() + step) % kRanks;
        const Rank from = (node.rank() + kRanks - step) % kRanks;
        const std::vector<std::byte> out = pattern(size, static_cast<std::uint64_t>(node.rank()) * 7 + size);
        std::vector<std::byte> in(size);
        const Result<Status> result = node.world().exchange(out.data(), size, to, 5, in.data(), size, from, 5);
        if (!result) said += result.error().to_string();
        if (in != pattern(size, static_cast<std::uint64_t>(from) * 7 + size)) said += fmt::format("{} bytes are wrong; ", size);
      }
    }
    wire.say(said.empty() ? transports(node) : said);
    wire.hear();
    if (auto closed = node.close(); !closed) wire.say(closed.error().to_string());
  });
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.hear(rank), "shm shm ");
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.say(rank, "leave");
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.hear(rank), "");
}

TEST(Shm, KeepsTheOrderOfSendingAndMatchesAnySource) {
  constexpr int kRanks = 4;
  constexpr std::uint32_t kMessages = 1000;
  Processes ranks(kRanks, patient(), [](Node& node, const Wire& wire) {
    std::string said = "fine";
    if (node.rank() != 0) {
      std::vector<std::byte> bytes(100'000);
      for (std::uint32_t i = 0; i < kMessages && said == "fine"; ++i) {
        std::memcpy(bytes.data(), &i, sizeof i);
        const std::size_t size = i % 50 == 0 ? bytes.size() : sizeof i + i % 300;  // announced ones among eager ones
        if (auto sent = node.world().send(bytes.data(), size, 0, 1); !sent) said = sent.error().to_string();
      }
    } else {
      std::vector<std::uint32_t> next(kRanks);
      for (std::uint32_t i = 0; i < (kRanks - 1) * kMessages && said == "fine"; ++i) {
        const Result<OwnedMessage> message = node.world().recv_owned(kAnySource, 1);
        if (!message) {
          said = message.error().to_string();
          break;
        }
        std::uint32_t number = 0;
        std::memcpy(&number, message->bytes.data(), sizeof number);
        if (number != next[static_cast<std::size_t>(message->status.source)]++) said = "out of order";
      }
    }
    wire.say(said);
    wire.hear();
  });
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.hear(rank), "fine") << rank;
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.say(rank, "leave");
}

// Transfers that either side cancels at any moment; what is not cancelled arrives whole, though cancelled buffers are overwritten at once.
TEST(Shm, CancelledTransfersSpoilNothing) {
  Processes ranks(2, patient(), [](Node& node, const Wire& wire) {
    std::mt19937 random(static_cast<unsigned>(node.rank()) + 1);
    const std::vector<std::byte> whole = pattern(1'000'000, 3);
    std::string said = "fine";
    for (Tag tag = 0; tag < 100 && said == "fine"; ++tag) {
      std::vector<std::byte> doomed = node.rank() == 0 ? whole : std::vector<std::byte>(whole.size());
      {
        Operation operation = node.rank() == 0 ? node.world().start_send(doomed.data(), doomed.size(), 1, 2 * tag)
                                               : node.world().start_recv(doomed.data(), doomed.size(), 0, 2 * tag);
        const Result<Status> ended = operation.wait(std::chrono::microseconds(random() % 500));
        if (ended && node.rank() == 1 && doomed != whole) said = "a transfer that succeeded has wrong bytes";
      }
      std::fill(doomed.begin(), doomed.end(), std::byte{0xEE});
      std::vector<std::byte> sure(whole.size());
      if (node.rank() == 0) {
        if (auto sent = node.world().send(whole.data(), whole.size(), 1, 2 * tag + 1); !sent) said = sent.error().to_string();
      } else {
        const Result<Status> got = node.world().recv(sure.data(), sure.size(), 0, 2 * tag + 1);
        if (!got || sure != whole) said = got ? "wrong bytes" : got.error().to_string();
      }
    }
    wire.say(said);
    wire.hear();
  });
  for (const Rank rank : {0, 1}) EXPECT_EQ(ranks.hear(rank), "fine") << rank;
  for (const Rank rank : {0, 1}) ranks.say(rank, "leave");
}

void exchange_until_the_end(Node& node, const Wire& wire) {
  std::vector<std::byte> out(300'000);
  std::vector<std::byte> in(out.size());
  wire.say("begins");
  Result<Status> result = Status{};
  for (std::uint64_t i = 0; result; ++i) {
    const std::size_t size = i % 5 == 0 ? out.size() : 100 * (i % 7);
    const int step = 1 + static_cast<int>(i % 2);
    const Rank to = (node.rank() + step) % node.size();
    const Rank from = (node.rank() + node.size() - step) % node.size();
    result = node.world().exchange(out.data(), size, to, 1, in.data(), in.size(), from, 1);
  }
  wire.say(verdict(result));
}

void kill_at_random(int rounds) {
  std::random_device seed;
  std::mt19937 random(seed());
  for (int round = 0; round < rounds; ++round) {
    Processes ranks(3, patient(), exchange_until_the_end);
    for (Rank rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks.hear(rank), "begins");
    const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(random() % 5'000'000)};  // the event is time itself: any moment
    nanosleep(&pause, nullptr);
    const auto victim = static_cast<Rank>(random() % 3);
    ranks.signal(victim, SIGKILL);
    for (Rank rank = 0; rank < 3; ++rank)
      if (rank != victim) {
        EXPECT_EQ(ranks.hear(rank), fmt::format("peer_lost {}", victim)) << "round " << round;
        EXPECT_EQ(ranks.wait(rank), 0);
      }
  }
}

TEST(Shm, AKilledRankIsMissedAtOnceWheneverThatIs) { kill_at_random(20); }
TEST(ShmLong, AKilledRankIsMissedAtOnceWheneverThatIs) { kill_at_random(200); }

// A rank that was stopped while it took bytes out of another's memory, was expelled, and wakes up: nothing of the others changes.
TEST(Shm, AnExpelledRankThatWakesUpSpoilsNothing) {
  Config config = patient();
  config.heartbeat_interval = 100ms;
  config.heartbeat_timeout = 1s;
  constexpr std::size_t kBytes = 16u << 20;
  Processes ranks(3, config, [](Node& node, const Wire& wire) {
    std::vector<std::byte> bytes(kBytes);
    Result<Status> result = Status{};
    for (int i = 0; result; ++i) {
      if (i == 1) wire.say("flows");
      if (node.rank() == 1) {
        result = node.world().recv(bytes.data(), bytes.size(), 0, 1);
      } else if (node.rank() == 0) {
        const Result<void> sent = node.world().send(bytes.data(), bytes.size(), 1, 1);
        if (!sent) result = sent.error();
      } else if (i == 1) {
        result = node.world().recv(bytes.data(), 1, 0, 2);  // which never comes
      }
    }
    wire.say(verdict(result));
    if (node.rank() == 1) return;
    const std::vector<std::byte> mine = pattern(kBytes, 2);
    bytes = mine;
    wire.hear();
    wire.say(bytes == mine ? "unchanged" : "changed");
  });
  for (Rank rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks.hear(rank), "flows");
  ranks.signal(1, SIGSTOP);
  for (const Rank rank : {0, 2}) EXPECT_EQ(ranks.hear(rank), "peer_lost 1");
  ranks.signal(1, SIGCONT);
  EXPECT_EQ(ranks.hear(1), "peer_lost 1") << "it learns that it is out";
  EXPECT_EQ(ranks.wait(1), 0);
  for (const Rank rank : {0, 2}) ranks.say(rank, "compare");
  for (const Rank rank : {0, 2}) EXPECT_EQ(ranks.hear(rank), "unchanged");
}

// Writes noise over what the ranks of the host share: positions, leases and rings.
void go_mad(unsigned seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> lines = mapped_segments();
  for (const std::string& line : lines) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> from >> dash >> to;
    auto* words = reinterpret_cast<volatile std::uint64_t*>(from);
    const std::size_t count = std::min<std::uint64_t>(to - from, 8u << 20) / 8;
    for (std::size_t i = 0; i < count; ++i) words[i] = random() >> (random() % 64);
  }
}

TEST(Shm, AMadRankCrashesNobody) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    Processes ranks(3, patient(), [seed](Node& node, const Wire& wire) {
      if (node.rank() != 1) return exchange_until_the_end(node, wire);
      wire.say("begins");
      wire.hear();
      go_mad(seed);
      ::_exit(0);
    });
    for (Rank rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks.hear(rank), "begins");
    ranks.say(1, "go");
    for (const Rank rank : {0, 2}) {
      EXPECT_EQ(ranks.hear(rank).substr(0, 9), "peer_lost") << "seed " << seed;
      EXPECT_EQ(ranks.wait(rank), 0);
    }
  }
}

TEST(Shm, AnotherUserIsRefusedAndReachedByTheNetwork) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr int kRanks = 3;
  const auto body = [](Node& node, const Wire& wire) {
    const int mine = node.rank();
    int theirs = -1;
    const Rank next = (node.rank() + 1) % kRanks;
    const Rank previous = (node.rank() + kRanks - 1) % kRanks;
    const Result<Status> result = node.world().exchange(&mine, sizeof mine, next, 1, &theirs, sizeof theirs, previous, 1);
    wire.say(result && theirs == previous ? transports(node) : verdict(result));
    const PeerCounters peer = node.counters().value().peers[node.rank() == 2 ? 0 : 2];
    wire.say(peer.no_shm.find("user") != std::string::npos ? "another user" : "why: " + peer.no_shm);
    wire.hear();
  };
  Processes ranks(kRanks, patient(Transport::kAuto), body, {}, [](Rank rank) {
    if (rank == 2 && ::setuid(65534) != 0) ::_exit(2);
  });
  EXPECT_EQ(ranks.hear(0), "shm quic ");
  EXPECT_EQ(ranks.hear(1), "shm quic ");
  EXPECT_EQ(ranks.hear(2), "quic quic ");
  EXPECT_EQ(ranks.hear(2), "another user");
  EXPECT_EQ(ranks.hear(0), "another user");
  for (Rank rank = 0; rank < kRanks; ++rank) ranks.say(rank, "leave");
}

}  // namespace
}  // namespace nexar::test
