#include "wire/call.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

namespace nexar::wire {
namespace {

CallDescriptor all_reduce() { return {.operation = OperationId::kAllReduce, .count = 1024, .dtype = DataType::kF32, .op = ReduceOp::kSum}; }

// A call that has whatever its operation needs.
CallDescriptor valid(OperationId operation) {
  CallDescriptor call{.operation = operation};
  for (const bool typed : {false, true})
    for (const bool reduces : {false, true})
      for (const Rank root : {-1, 2}) {
        call.dtype = typed ? std::optional(DataType::kI32) : std::nullopt;
        call.op = reduces ? std::optional(ReduceOp::kMax) : std::nullopt;
        call.root = root;
        if (call.fault() == nullptr) return call;
      }
  ADD_FAILURE() << "no call of " << to_string(operation) << " is valid";
  return call;
}

TEST(Call, ReadsAsItIsWritten) {
  EXPECT_EQ(all_reduce().to_text(), "all_reduce(count=1024, f32, sum)");
  EXPECT_EQ((CallDescriptor{.operation = OperationId::kBroadcast, .count = 4, .dtype = DataType::kBf16, .root = 2}.to_text()),
            "broadcast(count=4, bf16, root=2)");
  EXPECT_EQ((CallDescriptor{.operation = OperationId::kScan, .count = 1, .dtype = DataType::kF64, .user_op = true}.to_text()),
            "scan(count=1, f64, user op)");
  EXPECT_EQ((CallDescriptor{.operation = OperationId::kBarrier}.to_text()), "barrier()");
  EXPECT_EQ((CallDescriptor{.operation = OperationId::kGatherBytes, .count = 9, .root = 0}.to_text()), "gather_bytes(count=9, root=0)");
}

TEST(Call, HasANameForEveryOperation) {
  std::set<std::string_view> names;
  for (std::uint8_t id = 1; id <= kOperationIdMax; ++id) {
    EXPECT_TRUE(names.insert(to_string(static_cast<OperationId>(id))).second);
    EXPECT_EQ(valid(static_cast<OperationId>(id)).fault(), nullptr);
  }
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(to_string(OperationId::kAllReduceRsAg), "all_reduce_rs_ag");
  EXPECT_EQ(to_string(OperationId::kGatherBytes), "gather_bytes");
  EXPECT_EQ(to_string(static_cast<OperationId>(99)), "unknown");
}

// Ranks of one job may be different builds: the numbers may never change.
TEST(Call, FingerprintIsTheSameInEveryBuild) {
  EXPECT_EQ(all_reduce().fingerprint(), 0x1868ca48e7cae3ecu);
  EXPECT_EQ((CallDescriptor{.operation = OperationId::kBarrier}.fingerprint()), 0xd3a00045be0c3d55u);
}

TEST(Call, FingerprintChangesWithEveryMember) {
  std::set<std::uint64_t> seen = {all_reduce().fingerprint()};
  const auto differs = [&](auto change) {
    CallDescriptor call = all_reduce();
    change(call);
    EXPECT_TRUE(seen.insert(call.fingerprint()).second) << call.to_text();
  };
  differs([](CallDescriptor& call) { call.operation = OperationId::kReduceScatter; });
  differs([](CallDescriptor& call) { call.count = 1025; });
  differs([](CallDescriptor& call) { call.dtype = DataType::kF64; });
  differs([](CallDescriptor& call) { call.op = ReduceOp::kMax; });
  differs([](CallDescriptor& call) { call.user_op = true; });
  differs([](CallDescriptor& call) { call.root = 0; });
  differs([](CallDescriptor& call) { call.digest = 1; });
}

TEST(Call, FingerprintLeavesOutCountsThatDifferByRank) {
  for (const OperationId operation :
       {OperationId::kAllGatherV, OperationId::kReduceScatterV, OperationId::kAllToAllV, OperationId::kGatherV, OperationId::kScatterV,
        OperationId::kBroadcastBytes, OperationId::kAllGatherBytes, OperationId::kGatherBytes}) {
    CallDescriptor call = valid(operation);
    const std::uint64_t before = call.fingerprint();
    call.count = 77;
    EXPECT_EQ(call.fingerprint(), before) << to_string(operation);
  }
}

TEST(Call, WithMembersThatDoNotBelongIsAtFault) {
  EXPECT_EQ(all_reduce().fault(), nullptr);
  const auto faulty = [](CallDescriptor call, auto change) {
    change(call);
    EXPECT_NE(call.fault(), nullptr) << call.to_text();
  };
  faulty(all_reduce(), [](CallDescriptor& call) { call.operation = static_cast<OperationId>(0); });
  faulty(all_reduce(), [](CallDescriptor& call) { call.operation = static_cast<OperationId>(kOperationIdMax + 1); });
  faulty(all_reduce(), [](CallDescriptor& call) { call.dtype.reset(); });
  faulty(all_reduce(), [](CallDescriptor& call) { call.dtype = static_cast<DataType>(15); });
  faulty(all_reduce(), [](CallDescriptor& call) { call.op.reset(); });
  faulty(all_reduce(), [](CallDescriptor& call) { call.op = static_cast<ReduceOp>(8); });
  faulty(all_reduce(), [](CallDescriptor& call) { call.user_op = true; });
  faulty(all_reduce(), [](CallDescriptor& call) { call.root = 0; });
  faulty(all_reduce(), [](CallDescriptor& call) { call.root = -2; });
  faulty({.operation = OperationId::kBarrier}, [](CallDescriptor& call) { call.count = 1; });
  faulty(valid(OperationId::kBroadcast), [](CallDescriptor& call) { call.root = -1; });
  faulty(valid(OperationId::kBroadcast), [](CallDescriptor& call) { call.op = ReduceOp::kSum; });
}

TEST(Call, WithUnknownFlagsIsRefused) {
  std::array<std::byte, CallDescriptor::kBytes> bytes{};
  Writer writer(bytes);
  all_reduce().put(writer);
  EXPECT_EQ(writer.size(), bytes.size());
  Reader good(bytes);
  EXPECT_EQ(CallDescriptor::get(good), all_reduce());
  EXPECT_EQ(good.finish(), nullptr);
  bytes[3] = std::byte{2};
  Reader bad(bytes);
  (void)CallDescriptor::get(bad);
  EXPECT_STREQ(bad.finish(), "describes a call with unknown flags");
}

}  // namespace
}  // namespace nexar::wire
