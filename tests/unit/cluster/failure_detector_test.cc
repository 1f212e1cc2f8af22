#include "cluster/failure_detector.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::cluster {
namespace {

using namespace std::chrono_literals;
using base::Duration;
using base::Time;

constexpr Time kStart{1h};
constexpr HeartbeatOptions kOptions{1s, 5s};

// Ticks the detector as its loop would until `end`; peers in `answering` answer every ping at once. Returns who was lost when.
std::map<Rank, Time> run(FailureDetector& detector, Time end, const std::vector<Rank>& answering, std::map<Rank, int>* pings = nullptr) {
  std::map<Rank, Time> lost;
  while (detector.next() <= end) {
    const Time now = detector.next();
    const FailureDetector::Tick tick = detector.tick(now);
    for (const Rank rank : tick.ping) {
      if (pings != nullptr) ++(*pings)[rank];
      if (std::find(answering.begin(), answering.end(), rank) != answering.end()) detector.heard(rank, now);
    }
    for (const Rank rank : tick.lost) lost[rank] = now;
  }
  return lost;
}

TEST(FailureDetector, NamesAPeerThatStoppedAnsweringWhenTheTimeoutIsOver) {
  FailureDetector detector(3, kOptions);
  detector.add(1, kStart);
  detector.add(2, kStart);
  EXPECT_TRUE(run(detector, kStart + 20s, {1, 2}).empty());
  const std::map<Rank, Time> lost = run(detector, kStart + 40s, {1});
  ASSERT_EQ(lost.size(), 1u);
  ASSERT_TRUE(lost.contains(2));
  EXPECT_GT(lost.at(2), kStart + 24s);
  EXPECT_LE(lost.at(2), kStart + 25s + 1ms);
}

TEST(FailureDetector, PingsEachPeerOnceInAnIntervalAndNotAllAtOnce) {
  FailureDetector detector(64, kOptions);
  std::vector<Rank> all;
  for (Rank rank = 1; rank < 64; ++rank) {
    detector.add(rank, kStart);
    all.push_back(rank);
  }
  std::size_t most = 0;
  std::map<Rank, int> pings;
  while (detector.next() <= kStart + 10s) {
    const Time now = detector.next();
    const FailureDetector::Tick tick = detector.tick(now);
    most = std::max(most, tick.ping.size());
    for (const Rank rank : tick.ping) {
      ++pings[rank];
      detector.heard(rank, now);
    }
  }
  EXPECT_LE(most, 64u / 8 + 1);
  for (const Rank rank : all) {
    EXPECT_GE(pings[rank], 9) << rank;
    EXPECT_LE(pings[rank], 11) << rank;
  }
}

TEST(FailureDetector, DoesNotAccuseAnybodyForATimeThatItSleptThrough) {
  FailureDetector detector(2, kOptions);
  detector.add(1, kStart);
  EXPECT_TRUE(run(detector, kStart + 3s, {1}).empty());
  const Time woken = kStart + 1h;
  const FailureDetector::Tick tick = detector.tick(woken);
  EXPECT_TRUE(tick.lost.empty());
  EXPECT_TRUE(run(detector, woken + 1s - 1ms, {}).empty()) << "a whole interval to be heard in";
}

TEST(FailureDetector, StillFindsALossAfterAPause) {
  FailureDetector detector(2, kOptions);
  detector.add(1, kStart);
  EXPECT_TRUE(run(detector, kStart + 4900ms, {}).empty());
  const Time woken = kStart + 1h;
  EXPECT_TRUE(detector.tick(woken).lost.empty());
  const std::map<Rank, Time> lost = run(detector, woken + 10s, {});
  ASSERT_TRUE(lost.contains(1));
  EXPECT_LE(lost.at(1), woken + 5s + 1ms);
}

TEST(FailureDetector, NamesPeersThatDieTogetherTogether) {
  FailureDetector detector(8, kOptions);
  for (Rank rank = 1; rank < 8; ++rank) detector.add(rank, kStart);
  EXPECT_TRUE(run(detector, kStart + 10s, {1, 2, 3, 4, 5, 6, 7}).empty());
  const std::map<Rank, Time> lost = run(detector, kStart + 30s, {1, 3, 4, 6, 7});
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost.at(2), lost.at(5));
}

TEST(FailureDetector, ForgetsWhoHasLeft) {
  FailureDetector detector(2, kOptions);
  detector.add(1, kStart);
  detector.remove(1);
  EXPECT_EQ(detector.next(), Time::max());
  detector.heard(1, kStart);
  EXPECT_TRUE(detector.tick(kStart + 1h).lost.empty());
}

// Many detectors in virtual time, with delays, pauses and deaths from a seed.
class Simulation {
 public:
  static constexpr int kSize = 8;
  static constexpr Duration kDelayMax = 100ms;

  explicit Simulation(unsigned seed) : random_(seed) {
    for (Rank rank = 0; rank < kSize; ++rank) {
      nodes_.push_back({FailureDetector(kSize, kOptions)});
      for (Rank peer = 0; peer < kSize; ++peer)
        if (peer != rank) nodes_.back().detector.add(peer, kStart);
    }
    for (Node& node : nodes_) {
      const unsigned fate = random_() % 4;
      if (fate == 0) node.dies = kStart + random_time(60s);
      if (fate == 1) {
        node.pauses = kStart + random_time(60s);
        node.wakes = node.pauses + random_time(20s);
      }
    }
  }

  void run() {
    const Time end = kStart + 2min;
    for (Time now = kStart; now < end; now += 5ms) {
      deliver(now);
      for (Rank rank = 0; rank < kSize; ++rank)
        if (runs(rank, now) && nodes_[index(rank)].detector.next() <= now) tick(rank, now);
    }
  }

  void check() const {
    for (Rank rank = 0; rank < kSize; ++rank)
      for (Rank peer = 0; peer < kSize; ++peer) {
        if (rank == peer) continue;
        const Node& accused = nodes_[index(peer)];
        const auto found = nodes_[index(rank)].lost.find(peer);
        const bool lost = found != nodes_[index(rank)].lost.end();
        const bool silent =
            accused.dies != Time::max() || accused.wakes - accused.pauses > kOptions.timeout - kOptions.interval - 2 * kDelayMax;
        EXPECT_TRUE(!lost || silent) << rank << " accuses " << peer << ", which answers";
        if (accused.dies != Time::max() && nodes_[index(rank)].dies == Time::max() && nodes_[index(rank)].pauses == Time::max()) {
          ASSERT_TRUE(lost) << rank << " does not notice the death of " << peer;
          EXPECT_LE(found->second, accused.dies + kOptions.timeout + 2 * kDelayMax + 20ms);
        }
      }
  }

 private:
  struct Node {
    FailureDetector detector;
    Time dies = Time::max();
    Time pauses = Time::max();
    Time wakes = Time::max();
    std::map<Rank, Time> lost{};
  };
  struct Letter {
    Rank from;
    Rank to;
    bool pong;
  };

  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
  Duration random_time(Duration most) { return Duration(static_cast<Duration::rep>(random_() % static_cast<std::uint64_t>(most.count()))); }
  bool runs(Rank rank, Time now) const {
    const Node& node = nodes_[index(rank)];
    return now < node.dies && (now < node.pauses || now >= node.wakes);
  }
  void send(Time now, const Letter& letter) { letters_.emplace(now + random_time(kDelayMax), letter); }

  void tick(Rank rank, Time now) {
    const FailureDetector::Tick tick = nodes_[index(rank)].detector.tick(now);
    for (const Rank peer : tick.ping) send(now, {rank, peer, false});
    for (const Rank peer : tick.lost) nodes_[index(rank)].lost[peer] = now;
  }

  // What comes to a node that does not run waits there; a dead one takes nothing.
  void deliver(Time now) {
    std::multimap<Time, Letter> later;
    while (!letters_.empty() && letters_.begin()->first <= now) {
      const Letter letter = letters_.begin()->second;
      letters_.erase(letters_.begin());
      if (!runs(letter.to, now)) {
        if (now < nodes_[index(letter.to)].dies) later.emplace(now + 1ms, letter);
      } else if (letter.pong) {
        nodes_[index(letter.to)].detector.heard(letter.from, now);
      } else {
        send(now, {letter.to, letter.from, true});
      }
    }
    letters_.merge(later);
  }

  std::mt19937_64 random_;
  std::vector<Node> nodes_;
  std::multimap<Time, Letter> letters_;
};

TEST(FailureDetector, AccusesTheDeadAndNobodyElseWhateverIsDelayedOrPaused) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr unsigned kSeeds = 10;
#else
  constexpr unsigned kSeeds = 40;
#endif
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.run();
    simulation.check();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace nexar::cluster
