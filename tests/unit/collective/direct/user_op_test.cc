// Ops of the application's own.
#include <stdexcept>

#include <gtest/gtest.h>

#include "direct_world.h"

namespace nexar::test {
namespace {

using collective::Piece;
using collective::direct::Call;
using collective::direct::Outcome;

// Neither commutes nor associates: only ((x0 . x1) . x2) ... gives this.
std::uint32_t digits(std::uint32_t left, std::uint32_t right) { return left * 31 + right; }

Call call_of(OperationId operation, std::vector<std::uint32_t>& send, std::vector<std::uint32_t>& recv, const reduce::Reducer& reducer) {
  Call call;
  call.operation = operation;
  call.sequence = 1;
  call.send = send.data();
  call.recv = recv.data();
  call.count = recv.size();
  call.type = DataType::kU32;
  call.reducer = &reducer;
  return call;
}

class UserOps : public testing::TestWithParam<Rank> {};

TEST_P(UserOps, SeeTheValuesInRankOrder) {
  const Rank ranks = GetParam();
  const auto reducer = reduce::Reducer::make(DataType::kU32, user_op<std::uint32_t>("digits", false,
                                                                                    [](auto a, auto b, auto out) {
                                                                                      for (std::size_t i = 0; i < out.size(); ++i)
                                                                                        out[i] = digits(a[i], b[i]);
                                                                                    }))
                           .value();
  for (const std::size_t count : {1, 500, 20'000})
    for (const OperationId operation : {OperationId::kAllReduce, OperationId::kScan})
      for (const bool in_place : {false, true}) {
        DirectWorld world(ranks);
        std::vector<std::vector<std::uint32_t>> send(static_cast<std::size_t>(ranks));
        for (std::size_t rank = 0; rank < send.size(); ++rank)
          for (std::size_t i = 0; i < count; ++i) send[rank].push_back(static_cast<std::uint32_t>(rank * 1'000 + i));
        std::vector<std::vector<std::uint32_t>> recv(send.size(), std::vector<std::uint32_t>(count));
        world.run([&](Rank rank) {
          const auto at = static_cast<std::size_t>(rank);
          Call call = call_of(operation, send[at], in_place ? send[at] : recv[at], reducer);
          auto* data = reinterpret_cast<std::byte*>(send[at].data());
          const Piece pieces[] = {{data, 0}, {data + count / 3 * sizeof(std::uint32_t), count / 3}};
          if (in_place && operation == OperationId::kAllReduce && count > 2) call.pieces = pieces;
          EXPECT_EQ(run_blocking(world.area(rank), call), Outcome::kDone);
        });
        for (std::size_t rank = 0; rank < send.size(); ++rank)
          for (std::size_t i = 0; i < count; ++i) {
            auto wanted = static_cast<std::uint32_t>(i);
            const std::size_t last = operation == OperationId::kScan ? rank : send.size() - 1;
            for (std::size_t from = 1; from <= last; ++from) wanted = digits(wanted, static_cast<std::uint32_t>(from * 1'000 + i));
            ASSERT_EQ((in_place ? send : recv)[rank][i], wanted) << "rank " << rank << ", element " << i << " of " << count;
          }
      }
}

TEST_P(UserOps, ThatThrowEndTheCallForEverybody) {
  const Rank ranks = GetParam();
  const auto reducer =
      reduce::Reducer::make(DataType::kU32,
                            user_op<std::uint32_t>("no", true, [](auto, auto, auto) { throw std::runtime_error("not today"); }))
          .value();
  DirectWorld world(ranks);
  std::vector<std::vector<std::uint32_t>> data(static_cast<std::size_t>(ranks), std::vector<std::uint32_t>(50'000));
  std::atomic<int> thrown = 0;
  world.run([&](Rank rank) {
    const Call call = call_of(OperationId::kAllReduce, data[static_cast<std::size_t>(rank)], data[static_cast<std::size_t>(rank)], reducer);
    Endless endless;
    collective::direct::Operation operation(world.area(rank), call);
    const Outcome outcome = collective::direct::run(operation, endless, kPoliteSpin);
    EXPECT_TRUE(outcome == Outcome::kOpFailed || outcome == Outcome::kEnded);
    if (outcome != Outcome::kOpFailed) return;
    ++thrown;
    const Result<void> error = std::move(operation).error();
    ASSERT_FALSE(error);
    EXPECT_NE(error.error().sentence().find("not today"), std::string::npos);
  });
  EXPECT_GE(thrown, 1);
}

INSTANTIATE_TEST_SUITE_P(Ranks, UserOps, testing::Values(2, 3, 4));

}  // namespace
}  // namespace nexar::test
