// Links through shared memory: what they carry, how they end, and what a peer cannot do to them.
#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "io/timer.h"
#include "transport/shm_pair.h"
#include "wire/rpc_messages.h"

namespace nexar::transport::test {
namespace {

using wire::Lane;
using Kind = LinkEnd::Kind;

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// One transfer of bytes that stay where they are.
struct Source : BulkSource {
  Source(std::uint64_t number, const std::vector<std::byte>& content, bool in_place) : transfer(number), bytes(content), stays(in_place) {}
  std::optional<Frame> next(std::size_t bytes_max) override {
    const std::size_t size = std::min<std::size_t>(bytes_max, bytes.size() - at);
    if (size == 0) return std::nullopt;
    const Frame frame{
        wire::header_of(wire::Bulk{.transfer = transfer, .offset = at}, {.group = 1, .epoch = 1}, static_cast<std::uint32_t>(size)),
        base::ByteView(bytes).subspan(at, size), stays};
    at += size;
    return frame;
  }
  bool has_next() const override { return at < bytes.size(); }
  std::uint64_t transfer;
  const std::vector<std::byte>& bytes;
  bool stays;
  std::size_t at = 0;
};

std::vector<std::byte> received(const Recorder& recorder) {
  std::vector<std::byte> all;
  for (const Recorder::Frame& frame : recorder.frames) all.insert(all.end(), frame.payload.begin(), frame.payload.end());
  return all;
}

using ShmLink = ShmTest;

struct SmallRings : ShmTest {
  SmallRings() : ShmTest(1u << 20) {}
};

TEST_F(ShmLink, CarriesFramesOfEveryLaneInOrder) {
  ASSERT_TRUE(say(0, wire::Ping{.nonce = 5}));
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    const std::vector<std::byte> payload = pattern(tag * 13, 1);
    ASSERT_TRUE(link(0).send(message(tag, payload.size()), payload));
  }
  const wire::Header call = wire::header_of(wire::RpcRequest{.call = 9, .function = 3}, {.group = 1, .epoch = 1}, 4);
  ASSERT_TRUE(link(0).send(call, pattern(4, 2)));
  run_until([&] { return heard(1).frames.size() == 102; });
  ASSERT_EQ(heard(1).frames.size(), 102u);
  EXPECT_EQ(heard(1).frames[0].header.type, wire::FrameType::kPing) << "the most urgent lane first";
  EXPECT_EQ(heard(1).frames[1].header, call);
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    EXPECT_EQ(heard(1).frames[2 + tag].header.key, tag);
    EXPECT_EQ(heard(1).frames[2 + tag].payload, pattern(tag * 13, 1));
  }
  EXPECT_EQ(link(0).counters(Lane::kData).frames_sent, 100u);
  EXPECT_EQ(link(1).counters(Lane::kData).frames_received, 100u);
  EXPECT_EQ(link(0).counters(Lane::kData).bytes_sent, link(1).counters(Lane::kData).bytes_received);
}

// The positions that the other end sees.
std::uint64_t shown(const shm::HostSegment& segment, Lane lane) { return segment.lines(0, 1).tails[static_cast<std::size_t>(lane)].load(); }

TEST_F(ShmLink, FramesOfOneTurnAreShownTogetherAndAtItsEnd) {
  std::vector<std::uint64_t> seen;
  sides[0].loop->post([&] {
    for (std::uint64_t tag = 0; tag < 10; ++tag) {
      ASSERT_TRUE(link(0).send(message(tag, 0), {}));
      seen.push_back(shown(*segment, Lane::kData));
    }
  });
  sides[0].loop->turn(base::Duration::zero());
  ASSERT_EQ(seen.size(), 10u);
  EXPECT_EQ(seen[6], 0u);
  EXPECT_EQ(seen[7], 8 * wire::kHeaderBytes) << "many do not wait for the end";
  EXPECT_EQ(seen[9], 8 * wire::kHeaderBytes);
  EXPECT_EQ(shown(*segment, Lane::kData), 10 * wire::kHeaderBytes);
  sides[1].loop->turn(base::Duration::zero());
  EXPECT_EQ(heard(1).frames.size(), 10u);
}

// What comes after the pollers have been asked, in the last part of a turn.
TEST_F(ShmLink, WhatATimerSendsIsShownBeforeTheTurnEnds) {
  bool sent = false;
  io::Timer timer(sides[0].loop->timers(), [&] { sent = link(0).send(message(1, 0), {}); });
  timer.set(sides[0].loop->refresh());
  while (!sent) sides[0].loop->turn(base::Duration::zero());
  EXPECT_EQ(shown(*segment, Lane::kData), wire::kHeaderBytes);
}

TEST_F(ShmLink, WhatIsSentOutsideATurnIsShownAtOnce) {
  ASSERT_TRUE(link(0).send(message(1, 0), {}));
  EXPECT_EQ(shown(*segment, Lane::kData), wire::kHeaderBytes);
}

TEST_F(ShmLink, ALinkThatEndsInTheTurnInWhichItSentLeavesNothingBehind) {
  sides[0].loop->post([&] {
    ASSERT_TRUE(link(0).send(message(1, 0), {}));
    link(0).abort("enough");
  });
  run_until([&] { return heard(0).end.has_value(); });
  ASSERT_TRUE(heard(0).end);
  turn();
  EXPECT_EQ(sides[0].endpoint->connections(), 0u);
}

void expect_bulk(Recorder& from, Recorder& to, const std::function<void(const std::function<bool()>&)>& run, bool stays) {
  const std::vector<std::byte> bytes = pattern(3'000'001, 3);
  Source source(7, bytes, stays);
  from.link->set_bulk_source(&source);
  const std::uint64_t before = to.link->counters(Lane::kBulk).bytes_received;
  run([&] { return to.link->counters(Lane::kBulk).bytes_received - before >= bytes.size() + 46 * wire::kHeaderBytes; });
  EXPECT_TRUE(received(to) == bytes);
  from.link->set_bulk_source(nullptr);
}

TEST_F(ShmLink, CarriesBulkThroughItsRing) {
  expect_bulk(
      heard(0), heard(1), [this](const auto& done) { run_until(done); }, false);
}
TEST_F(ShmLink, LetsThePeerTakeBulkWhereItIs) {
  expect_bulk(
      heard(0), heard(1), [this](const auto& done) { run_until(done); }, true);
}
TEST_F(SmallRings, CarryFramesThatAreLongerThanTheyAre) {
  const std::vector<std::byte> payload = pattern(wire::kEagerBytesMax, 4);
  for (std::uint64_t tag = 0; tag < 5; ++tag) ASSERT_TRUE(link(1).send(message(tag, payload.size()), payload));
  run_until([&] { return heard(0).frames.size() == 5 && heard(0).frames.back().payload.size() == payload.size(); });
  for (const Recorder::Frame& frame : heard(0).frames) EXPECT_TRUE(frame.payload == payload);
}

TEST_F(ShmLink, RefusesWhatALaneDoesNotHoldAndTellsWhenItHasRoom) {
  const std::vector<std::byte> payload = pattern(wire::kEagerBytesMax, 5);
  std::size_t sent = 0;
  while (sent < 1000 && link(0).send(message(sent, payload.size()), payload)) ++sent;
  ASSERT_LT(sent, 1000u);
  ASSERT_TRUE(say(0, wire::Ping{})) << "another lane is not delayed";
  EXPECT_TRUE(heard(0).room.empty());
  run_until([&] { return !heard(0).room.empty() && heard(1).frames.size() == sent + 1; });
  EXPECT_EQ(heard(0).room, std::vector<Lane>{Lane::kData});
  EXPECT_EQ(heard(1).frames.size(), sent + 1);
}

// What was described and taken back is not delivered, whatever the memory holds by then; another transfer is not disturbed.
TEST_F(ShmLink, DropsBytesThatWereTakenBack) {
  std::vector<std::byte> gone = pattern(1'000'000, 6);
  const std::vector<std::byte> stays = pattern(200'000, 7);
  Source first(1, gone, true);
  link(0).set_bulk_source(&first);
  sides[0].loop->turn(base::Duration::zero());  // everything is described, nothing read
  ASSERT_EQ(first.at, gone.size());
  Source second(2, stays, true);
  link(0).set_bulk_source(&second);
  sides[0].loop->turn(base::Duration::zero());
  link(0).let_go(1);
  std::fill(gone.begin(), gone.end(), std::byte{0xEE});
  run_until([&] { return received(heard(1)).size() >= stays.size(); });
  for (int i = 0; i < 100; ++i) turn();
  EXPECT_TRUE(std::all_of(heard(1).frames.begin(), heard(1).frames.end(), [](const auto& frame) { return frame.header.id == 2; }));
  EXPECT_FALSE(heard(1).end);
}

TEST_F(ShmLink, ClosesWithAGoodbyeAfterEverythingElse) {
  const std::vector<std::byte> payload = pattern(60'000, 8);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(link(0).send(message(1, payload.size()), payload));
  link(0).close("enough");
  EXPECT_FALSE(link(0).send(message(2, 0), {}));
  run_until([&] { return heard(0).end && heard(1).end; });
  ASSERT_TRUE(heard(0).end && heard(1).end);
  EXPECT_EQ(heard(0).end->kind, Kind::kClosedHere);
  EXPECT_EQ(heard(1).end->kind, Kind::kClosedByPeer);
  ASSERT_EQ(heard(1).frames.size(), 11u);
  EXPECT_EQ(heard(1).frames.back().header.type, wire::FrameType::kGoodbye);
  turn();
  EXPECT_EQ(sides[0].endpoint->connections(), 0u);
  EXPECT_EQ(sides[1].endpoint->connections(), 0u);
}

TEST_F(ShmLink, TellsThePeerWhyItAborts) {
  link(0).abort("a test");
  run_until([&] { return heard(1).end.has_value(); });
  EXPECT_EQ(heard(0).end->kind, Kind::kClosedHere);
  EXPECT_EQ(heard(1).end->kind, Kind::kBroken);
  EXPECT_NE(heard(1).end->error.sentence().find("a test"), std::string::npos);
}

TEST_F(ShmLink, TellsThePeerThatItIsExpelled) {
  link(0).expel("you are out");
  run_until([&] { return heard(1).end.has_value(); });
  EXPECT_EQ(heard(1).end->kind, Kind::kExpelled);
}

// The end of a process closes its socket. What it had written is delivered before its death is.
TEST_F(ShmLink, DeliversWhatADeadPeerHadWritten) {
  for (std::uint64_t tag = 0; tag < 3; ++tag) ASSERT_TRUE(link(0).send(message(tag, 0), {}));
  sides[0].endpoint.reset();
  run_until([&] { return heard(1).end.has_value(); });
  EXPECT_EQ(heard(1).frames.size(), 3u);
  EXPECT_EQ(heard(1).end->kind, Kind::kBroken);
  EXPECT_NE(heard(1).end->error.sentence().find("is gone"), std::string::npos) << heard(1).end->error.sentence();
}

TEST_F(ShmLink, EndsWhenItsHandlerRefusesAFrame) {
  heard(1).refuse_frames = true;
  ASSERT_TRUE(say(0, wire::Ping{}));
  run_until([&] { return heard(0).end && heard(1).end; });
  EXPECT_EQ(heard(1).end->kind, Kind::kProtocol);
  EXPECT_EQ(heard(0).end->kind, Kind::kRefused);
}

// Every word that the peer writes, with nonsense in it: the link ends with a reason, and nothing is read or written outside of the rings.
TEST_F(ShmLink, ExpelsAPeerWhosePositionsAreImpossible) {
  std::mt19937_64 random(1);
  for (std::size_t lane = 0; lane < shm::kLanes; ++lane) {
    const bool tail = lane % 2 == 0;
    (tail ? segment->lines(0, 1).tails[lane] : segment->lines(1, 0).heads[lane]).store((random() | 1) << 21);
  }
  ASSERT_TRUE(say(1, wire::Ping{}));
  run_until([&] { return heard(1).end.has_value(); });
  ASSERT_TRUE(heard(1).end);
  EXPECT_EQ(heard(1).end->kind, Kind::kProtocol);
}

TEST_F(ShmLink, ExpelsAPeerThatSaysWhatWasNeverWrittenIsRead) {
  segment->lines(1, 0).heads[2].store(1000);
  ASSERT_TRUE(link(1).send(message(1, 0), {}));
  run_until([&] { return heard(1).end.has_value(); });
  ASSERT_TRUE(heard(1).end);
  EXPECT_EQ(heard(1).end->kind, Kind::kProtocol);
  EXPECT_NE(heard(1).end->error.sentence().find("never written"), std::string::npos);
}

TEST_F(ShmLink, ExpelsAPeerThatWritesRandomBytes) {
  for (std::size_t lane = 0; lane < shm::kLanes; ++lane) {
    const base::ByteSpan ring = segment->ring(0, 1, lane);
    const std::vector<std::byte> noise = pattern(ring.size(), static_cast<unsigned>(lane));
    std::copy(noise.begin(), noise.end(), ring.begin());
    segment->lines(0, 1).tails[lane].store(ring.size());
  }
  run_until([&] { return heard(1).end.has_value(); });
  ASSERT_TRUE(heard(1).end);
  EXPECT_EQ(heard(1).end->kind, Kind::kProtocol);
}

TEST_F(ShmLink, GivesUpAPeerWhoseMemoryIsNotThere) {
  const wire::Header header = wire::header_of(wire::Bulk{.transfer = 1}, {.group = 1, .epoch = 1}, 1000);
  std::vector<std::byte> record(wire::kHeaderBytes + 24);
  wire::encode(header, std::span(record).first<wire::kHeaderBytes>());
  base::store_le(record.data() + wire::kHeaderBytes, std::uint64_t{4096});  // an address that no process has
  std::copy(record.begin(), record.end(), segment->ring(0, 1, 3).begin());
  segment->lines(0, 1).tails[3].store(record.size());
  run_until([&] { return heard(1).end.has_value(); });
  ASSERT_TRUE(heard(1).end);
  EXPECT_EQ(heard(1).end->kind, Kind::kBroken);
}

// Both ends in threads of their own that block whenever they can: no wake-up is lost, or this never ends.
TEST_F(ShmLink, WakesWhoeverSleeps) {
  constexpr std::uint64_t kRounds = 3000;
  const auto play = [&](int self) {
    std::uint64_t sent = self == 0 ? 1 : 0;
    if (self == 0) {
      EXPECT_TRUE(link(0).send(message(0, 0), {}));
    }
    for (std::size_t got = 0; got < kRounds;) {
      sides[self].loop->turn(std::chrono::minutes(5));
      for (; got < heard(self).frames.size(); ++got)
        if (sent < kRounds) {
          EXPECT_TRUE(link(self).send(message(sent, 0), {}));
          ++sent;
        }
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  for (const int side : {0, 1}) EXPECT_EQ(heard(side).frames.size(), kRounds);
}

// The same with rings that are always full: the writer is woken when there is room.
TEST_F(SmallRings, WakeAWriterThatWaitsForRoom) {
  const std::vector<std::byte> bytes = pattern(8'000'000, 9);
  Source source(1, bytes, false);
  std::thread writer([&] {
    link(0).set_bulk_source(&source);
    while (heard(0).frames.empty()) sides[0].loop->turn(std::chrono::minutes(5));
  });
  std::size_t got = 0;
  while (got < bytes.size()) {
    sides[1].loop->turn(std::chrono::minutes(5));
    got = 0;
    for (const Recorder::Frame& frame : heard(1).frames) got += frame.payload.size();
  }
  EXPECT_TRUE(say(1, wire::Ping{}));
  writer.join();
  EXPECT_TRUE(received(heard(1)) == bytes);
}

// Takes what is said of memory that is lent; what it refuses ends the link.
struct Loans : shm::LoanHandler {
  Result<void> on_loan(int from, shm::ReceivedLoan received) override {
    EXPECT_EQ(from, 0);
    if (received.loan.buffer == 13) return Error(ErrorCode::kRefused, "no");
    if (received.memory) {
      const auto memory = io::BorrowedMemory::map(std::move(received.memory), received.loan.bytes).value();
      EXPECT_EQ(memory->bytes()[7], std::byte{9});
      ++mapped;
    }
    heard.push_back(received.loan.buffer);
    return {};
  }
  void on_linked(int) override {}
  void on_unlinked(int) override { unlinked = true; }

  std::vector<std::uint32_t> heard;
  int mapped = 0;
  bool unlinked = false;
};

// More than a socket holds: the rest goes when the other end has read, in order, and each descriptor with its own.
TEST_F(ShmLink, TellsOfMemoryThatIsLentHoweverMuch) {
  Loans loans;
  sides[1].endpoint->set_loans(&loans);
  const std::shared_ptr<io::LentMemory> memory = io::LentMemory::create(8).value();
  memory->bytes()[7] = std::byte{9};
  constexpr std::uint32_t kLoans = 900;
  std::vector<std::uint32_t> told;
  for (std::uint32_t buffer = 100; buffer < 100 + kLoans; ++buffer) {
    const bool lent = buffer % 3 != 0;
    told.push_back(buffer);
    EXPECT_TRUE(sides[0].endpoint->tell(
        1, {{lent ? shm::LoanWord::kLent : shm::LoanWord::kTakenBack, buffer, lent ? 8U : 0U}, lent ? memory : nullptr}));
  }
  run_until([&] { return loans.heard.size() == kLoans; });
  EXPECT_EQ(loans.heard, told);
  EXPECT_EQ(loans.mapped, 600);
  EXPECT_FALSE(sides[0].endpoint->tell(5, {})) << "there is no such rank";
  sides[0].endpoint->tell(1, {{shm::LoanWord::kMapped, 13, 0}, nullptr});
  run_until([&] { return heard(0).end && heard(1).end; });
  ASSERT_TRUE(heard(1).end);
  EXPECT_EQ(heard(1).end->kind, Kind::kProtocol);
  EXPECT_TRUE(loans.unlinked);
}

// A peer that does not read is told of no more; what is taken back it hears of all the same.
TEST_F(ShmLink, HoldsABoundedNumberOfLoansForAPeerThatDoesNotRead) {
  Loans loans;
  sides[1].endpoint->set_loans(&loans);
  const std::shared_ptr<io::LentMemory> memory = io::LentMemory::create(8).value();
  memory->bytes()[7] = std::byte{9};
  const auto lend = [&](std::uint32_t buffer) { return sides[0].endpoint->tell(1, {{shm::LoanWord::kLent, 100 + buffer, 8}, memory}); };
  std::uint32_t lent = 0;
  while (lent < 100'000 && lend(lent + 1)) ++lent;
  ASSERT_GE(lent, shm::kLoansWaitingMax);
  ASSERT_LT(lent, 100'000u);
  EXPECT_FALSE(lend(lent + 1));
  EXPECT_TRUE(sides[0].endpoint->tell(1, {{shm::LoanWord::kTakenBack, 101, 0}, nullptr}));
  run_until([&] { return loans.heard.size() == lent + 1; });
  EXPECT_EQ(loans.heard.size(), lent + 1);
  EXPECT_TRUE(lend(lent + 1)) << "there is room again";
  EXPECT_FALSE(heard(0).end);
}

}  // namespace
}  // namespace nexar::transport::test
