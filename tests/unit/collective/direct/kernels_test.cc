// Every kernel against the oracle, all ranks' machines stepped by one thread in a random order.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cases.h"
#include "direct_world.h"
#include "reduce/oracle.h"

namespace nexar::test {
namespace {

using collective::Piece;
using collective::direct::Call;
using collective::direct::Operation;
using collective::direct::Outcome;

// The buffer of a call in place, cut anywhere, with each piece in memory of its own.
class Scattered {
 public:
  Scattered(Call& call, std::mt19937_64& random) : element_(size_of(call.type)), whole_(static_cast<std::byte*>(call.recv)) {
    const std::uint64_t longest = std::uint64_t{1} << random() % 16;
    for (std::uint64_t first = 0; first < call.count;) {
      const std::uint64_t count = std::min(1 + random() % longest, call.count - first);
      const std::byte* begin = whole_ + first * element_;
      memory_.emplace_back(begin, begin + count * element_);
      pieces_.push_back({memory_.back().data(), first});
      first += count;
    }
    if (pieces_.empty()) return;
    call.send = call.recv = nullptr;
    call.pieces = pieces_;
  }

  void put_back() const {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      std::memcpy(whole_ + pieces_[i].first * element_, memory_[i].data(), memory_[i].size());
  }

 private:
  std::size_t element_;
  std::byte* whole_;
  std::deque<std::vector<std::byte>> memory_;
  std::vector<Piece> pieces_;
};

class Kernels : public testing::TestWithParam<Rank> {
 protected:
  // Enters and steps the ranks in an order that `random_` gives, until all are done; some ranks may be in the call before others come.
  void check(const Case& what, bool in_pieces = false) {
    CaseMemory memory(what, random_());
    std::vector<Call> calls;
    for (Rank rank = 0; rank < what.ranks; ++rank) calls.push_back(memory.call(rank, sequence_));
    ++sequence_;
    std::deque<Scattered> scattered;
    if (in_pieces)
      for (Call& call : calls) scattered.emplace_back(call, random_);
    std::vector<std::unique_ptr<Operation>> operations(calls.size());
    std::size_t left = calls.size();
    for (std::uint64_t steps = 0; left > 0; ++steps) {
      ASSERT_LT(steps, 10'000'000) << what.to_text() << " does not end";
      const std::size_t rank = random_() % calls.size();
      auto& operation = operations[rank];
      if (operation == nullptr) {
        operation = std::make_unique<Operation>(world_->area(static_cast<Rank>(rank)), calls[rank]);
      } else if (operation->step() == Outcome::kDone) {
        left -= done_[rank] ? 0 : 1;
        done_[rank] = true;
      }
    }
    done_.assign(done_.size(), false);
    for (const Scattered& one : scattered) one.put_back();
    for (Rank rank = 0; rank < what.ranks; ++rank) ASSERT_EQ(memory.wrong_at(rank), "");
  }

  // From here on in an area of its own, with calls done as `tuning` says.
  void use(const collective::direct::Tuning& tuning, const std::vector<const io::Clock*>& clocks = {}) {
    world_.emplace(GetParam(), 1, collective::direct::kSlotBytesMin, std::vector<const collective::direct::Lending*>{}, tuning, clocks);
    sequence_ = 1;
  }

  // Two stages and streaming begin early, so that small counts see them.
  void SetUp() override { use({.one_stage_two_ranks = 200, .one_stage = 200, .stream_in = 2'000, .stream_out = 20'000}); }

  std::mt19937_64 random_{static_cast<std::uint64_t>(GetParam())};
  std::optional<DirectWorld> world_;
  Sequence sequence_ = 1;
  std::vector<bool> done_ = std::vector<bool>(static_cast<std::size_t>(GetParam()));
};

TEST_P(Kernels, GiveWhatTheOracleGivesForEveryTypeAndOp) {
  const auto n = static_cast<std::uint64_t>(GetParam());
  for (const OperationId operation : kDirectOperations)
    for (const DataType type : kDataTypes) {
      const auto ops = reduces(operation) ? ops_of(type) : std::vector{ReduceOp::kSum};
      for (const ReduceOp op : ops)
        for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, n - 1, n, n + 1, std::uint64_t{61}}) {
          const Rank root = static_cast<Rank>(random_() % n);
          const bool in_place = operation != OperationId::kAllToAll && random_() % 2 == 0;
          check({operation, type, op, count, GetParam(), has_root(operation) ? root : 0, in_place});
          if (HasFatalFailure()) return;
        }
    }
}

// However slots are filled and results stored (streaming.h).
TEST_P(Kernels, GiveTheSameThroughTheCachesAndPastThem) {
  const auto n = static_cast<std::uint64_t>(GetParam());
  for (const std::size_t stream_in : {std::size_t{0}, SIZE_MAX})
    for (const std::size_t stream_out : {std::size_t{0}, SIZE_MAX})
      for (const std::size_t one_stage : {std::size_t{200}, SIZE_MAX}) {
        use({.one_stage_two_ranks = one_stage, .one_stage = one_stage, .stream_in = stream_in, .stream_out = stream_out});
        for (const OperationId operation : kDirectOperations)
          for (const std::uint64_t count : {std::uint64_t{1}, 16 * n + 5, collective::direct::kSlotBytesMin / sizeof(float) + 3}) {
            const Rank root = static_cast<Rank>(random_() % n);
            const bool in_place = operation != OperationId::kAllToAll && random_() % 2 == 0;
            check({operation, DataType::kF32, ReduceOp::kSum, count, GetParam(), has_root(operation) ? root : 0, in_place});
            if (HasFatalFailure()) return;
          }
      }
}

// A slot of these tests holds 16 KiB, and a block for each rank its share of that: these counts take one round and part of another, more
// rounds than there are slots, and divide nothing.
TEST_P(Kernels, CutLargeBuffersIntoRounds) {
  const auto n = static_cast<std::uint64_t>(GetParam());
  for (const OperationId operation : kDirectOperations)
    for (const DataType type : {DataType::kF32, DataType::kU8}) {
      const std::uint64_t slot = collective::direct::kSlotBytesMin / size_of(type);
      const bool has_blocks =
          operation == OperationId::kReduceScatter || operation == OperationId::kAllToAll || operation == OperationId::kScatter;
      const std::uint64_t round = has_blocks ? slot / n : slot;
      for (const std::uint64_t count : {round / 8 + 1, round + 3, 3 * round + 7}) {
        if (count > slot && n > 3 && type == DataType::kU8) continue;
        const Rank root = static_cast<Rank>(random_() % n);
        const bool in_place = operation != OperationId::kAllToAll && random_() % 2 == 0;
        check({operation, type, ReduceOp::kSum, count, GetParam(), has_root(operation) ? root : 0, in_place});
        if (HasFatalFailure()) return;
      }
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTurnsByPace = 17;  // each takes ten times as long; pieces of either type are among them
#else
constexpr int kTurnsByPace = 30;
#endif

// Ranks are slow and fast, become the other, and do not know their pace in the first calls (shares.h).
TEST_P(Kernels, GiveTheSameWhoeverReducesHowMuch) {
  SteppingClocks clocks(GetParam());
  use({.one_stage_two_ranks = 200, .one_stage = 200, .stream_in = 2'000, .stream_out = 20'000, .shares_by_pace = 1'000}, clocks.all());
  for (int turn = 0; turn < kTurnsByPace; ++turn) {
    clocks.of(static_cast<Rank>(random_() % static_cast<std::uint64_t>(GetParam()))).go_by(std::chrono::microseconds(1 + random_() % 40));
    const OperationId operation = turn % 3 == 0 ? OperationId::kReduce : OperationId::kAllReduce;
    const DataType type = turn % 2 == 0 ? DataType::kBf16 : DataType::kI32;
    const std::uint64_t rounds = GetParam() < 8 ? 9 : 1 + random_() % 4;
    const std::uint64_t count = rounds * collective::direct::kSlotBytesMin / size_of(type) - random_() % 2'000;
    const Rank root = operation == OperationId::kReduce ? turn % GetParam() : 0;
    const bool in_pieces = operation == OperationId::kAllReduce && turn % 5 == 1;
    check({operation, type, ReduceOp::kAvg, count, GetParam(), root, in_pieces || random_() % 2 == 0}, in_pieces);
    if (HasFatalFailure()) return;
  }
}

// Of which every rank has others.
TEST_P(Kernels, ReduceWhatLiesInPiecesAsInOne) {
  for (const bool streams : {false, true})
    for (const std::size_t one_stage : {std::size_t{200}, SIZE_MAX}) {
      const std::size_t stream = streams ? 0 : SIZE_MAX;
      use({.one_stage_two_ranks = one_stage, .one_stage = one_stage, .stream_in = stream, .stream_out = stream});
      for (const DataType type : {DataType::kF32, DataType::kBf16, DataType::kI32, DataType::kU8}) {
        const std::uint64_t slot = collective::direct::kSlotBytesMin / size_of(type);
        for (const std::uint64_t count :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{11}, std::uint64_t{333}, slot + 3, 3 * slot + 7}) {
          if (count > slot && GetParam() > 4) continue;
          check({OperationId::kAllReduce, type, ReduceOp::kAvg, count, GetParam(), 0, true}, true);
          if (HasFatalFailure()) return;
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Kernels, testing::Range(1, 10));

}  // namespace
}  // namespace nexar::test
