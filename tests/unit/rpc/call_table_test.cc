#include "rpc/call_table.h"

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::rpc {
namespace {

using namespace std::chrono_literals;

constexpr base::Time kStart{1h};

struct CallTableTest : testing::Test {
  Call& call(Rank peer, std::size_t bytes, std::optional<base::Duration> limit = 10s) {
    Call& made = calls.emplace_back();
    made.peer = peer;
    made.arguments = base::ByteView(memory).first(bytes);
    made.limit = limit;
    return made;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(1000);
  std::deque<Call> calls;
  CallTable table{3, {.calls = 2, .bytes = 100}};
};

TEST_F(CallTableTest, ACallIsFoundByItsPeerAndNumberUntilItIsRemoved) {
  Call& one = call(1, 10);
  ASSERT_TRUE(table.admit(kStart, one));
  EXPECT_EQ(table.find(1, one.id), &one);
  EXPECT_EQ(table.find(2, one.id), nullptr) << "an answer of another rank is none";
  const std::uint64_t id = one.id;
  table.remove(one);
  EXPECT_EQ(table.find(1, id), nullptr);
  EXPECT_EQ(table.size(), 0u);
  ASSERT_TRUE(table.admit(kStart, one));
  EXPECT_NE(one.id, id) << "numbers are never used again";
  table.remove(one);
}

TEST_F(CallTableTest, CallsOfAPeerAreLimitedAndRoomComesBack) {
  Call& first = call(1, 0);
  ASSERT_TRUE(table.admit(kStart, first));
  ASSERT_TRUE(table.admit(kStart, call(1, 0)));
  const Result<void> third = table.admit(kStart, call(1, 0));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ErrorCode::kOverloaded);
  EXPECT_TRUE(table.admit(kStart, call(2, 0))) << "another peer has limits of its own";
  table.remove(first);
  EXPECT_TRUE(table.admit(kStart, call(1, 0)));
}

TEST_F(CallTableTest, BytesOfAPeerAreLimitedResultsIncluded) {
  Call& large = call(1, 60);
  ASSERT_TRUE(table.admit(kStart, large));
  EXPECT_FALSE(table.admit(kStart, call(1, 41)));
  EXPECT_TRUE(table.admit_result(large, 40));
  EXPECT_FALSE(table.admit_result(large, 1));
  EXPECT_FALSE(table.admit_result(large, UINT64_MAX)) << "nothing wraps";
  table.remove(large);
  EXPECT_TRUE(table.admit(kStart, call(1, 100)));
}

TEST_F(CallTableTest, DeadlinesComeInTheirOrder) {
  Call& late = call(1, 0, 5s);
  Call& soon = call(2, 0, 1s);
  Call& never = call(0, 0, std::nullopt);
  Call& far = call(0, 0, base::Duration::max());
  for (Call* each : {&late, &soon, &never, &far}) ASSERT_TRUE(table.admit(kStart, *each));
  EXPECT_EQ(table.next_deadline(), kStart + 1s);
  EXPECT_EQ(table.due(kStart + 999ms), nullptr);
  EXPECT_EQ(table.due(kStart + 10s), &soon);
  table.remove(soon);
  EXPECT_EQ(table.due(kStart + 10s), &late);
  table.remove(late);
  EXPECT_EQ(table.due(base::Time::max()), nullptr) << "some wait for ever";
  EXPECT_EQ(table.next_deadline(), base::Time::max());
}

TEST_F(CallTableTest, ADeadlineThatIsEarlierThanThoseBeforeIsNotForgotten) {
  CallTable wide(1, {.calls = 100, .bytes = 100});
  std::vector<Call*> made;
  for (const base::Duration limit : {5s, 1s, 7s, 3s, 6s, 8s}) made.push_back(&call(0, 0, limit));
  for (Call* each : made) ASSERT_TRUE(wide.admit(kStart, *each));
  wide.remove(*made[2]);  // from the middle of those that came in order
  Call& earliest = call(0, 0, 2s);
  ASSERT_TRUE(wide.admit(kStart, earliest));
  std::vector<base::Duration> order;
  while (Call* due = wide.due(kStart + 1h)) {
    EXPECT_EQ(wide.next_deadline(), due->deadline);
    order.push_back(*due->limit);
    wide.remove(*due);
  }
  EXPECT_EQ(order, (std::vector<base::Duration>{1s, 2s, 3s, 5s, 6s, 8s}));
  EXPECT_EQ(wide.next_deadline(), base::Time::max());
}

// Numbers lead to places, of which there are fewer: a call that lasts keeps its own while the numbers go round.
TEST_F(CallTableTest, CallsThatLastAreFoundAmongMany) {
  constexpr std::uint32_t kMost = 300;
  CallTable wide(1, {.calls = kMost, .bytes = 0});
  std::set<std::uint64_t> numbers;
  std::vector<Call*> lasting;
  for (int round = 0; round < 3000; ++round) {
    Call& one = call(0, 0, round % 3 == 0 ? 1s : 10s);
    ASSERT_TRUE(wide.admit(kStart + std::chrono::milliseconds(round), one));
    EXPECT_TRUE(numbers.insert(one.id).second) << "numbers are never used again";
    if (round % 11 == 0)
      lasting.push_back(&one);
    else
      wide.remove(one);
    for (const Call* each : lasting) ASSERT_EQ(wide.find(0, each->id), each);
  }
  EXPECT_EQ(wide.all().size(), lasting.size());
  EXPECT_EQ(wide.size(), lasting.size());
  for (const std::uint64_t id : numbers) {
    const Call* found = wide.find(0, id);
    ASSERT_TRUE(found == nullptr || found->id == id);
  }
  for (Call* each : lasting) wide.remove(*each);
  EXPECT_EQ(wide.size(), 0u);
  EXPECT_EQ(wide.due(base::Time::max()), nullptr);
}

TEST_F(CallTableTest, ThoseOfOnePeerAreToldApart) {
  for (const Rank peer : {0, 1, 1, 2}) ASSERT_TRUE(table.admit(kStart, call(peer, 0)));
  EXPECT_EQ(table.to(1).size(), 2u);
  EXPECT_EQ(table.all().size(), 4u);
}

}  // namespace
}  // namespace nexar::rpc
