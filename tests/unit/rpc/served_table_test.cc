#include "rpc/served_table.h"

#include <gtest/gtest.h>

namespace nexar::rpc {
namespace {

using namespace std::chrono_literals;

constexpr base::Time kStart{1h};

struct ServedTableTest : testing::Test {
  ServedTable table{2, {.calls = 2, .bytes = 100}};
};

TEST_F(ServedTableTest, AdmitsUpToItsLimitsAndGivesRoomBack) {
  const auto one = table.admit(1, 7, 60, kStart).value();
  const auto two = table.admit(1, 8, 40, kStart).value();
  EXPECT_EQ(table.bytes(), 100u);
  const auto third = table.admit(1, 9, 0, kStart);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ErrorCode::kOverloaded);
  EXPECT_TRUE(table.admit(0, 9, 100, kStart)) << "another peer has limits of its own";
  table.remove(*one);
  EXPECT_FALSE(table.admit(1, 10, 61, kStart));
  EXPECT_TRUE(table.admit(1, 10, 60, kStart));
}

TEST_F(ServedTableTest, ANumberInUseIsNobodysToUse) {
  ASSERT_TRUE(table.admit(1, 7, 0, kStart));
  const auto again = table.admit(1, 7, 0, kStart);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kRefused);
  EXPECT_TRUE(table.admit(0, 7, 0, kStart)) << "numbers are each caller's own";
}

TEST_F(ServedTableTest, AResultTakesThePlaceOfTheArguments) {
  const auto one = table.admit(1, 7, 60, kStart).value();
  table.hold(*one, 500);
  EXPECT_EQ(table.bytes(), 500u) << "it is there: it is counted, and not refused";
  const auto other = table.admit(1, 8, 0, kStart);
  EXPECT_FALSE(other) << "but nothing more is taken on meanwhile";
  table.remove(*one);
  EXPECT_EQ(table.bytes(), 0u);
  EXPECT_TRUE(table.admit(1, 8, 0, kStart));
}

TEST_F(ServedTableTest, DeadlinesAreNamedOnceAndForgottenWithTheirCalls) {
  const auto late = table.admit(1, 1, 0, kStart + 2s).value();
  const auto soon = table.admit(0, 2, 0, kStart + 1s).value();
  const auto never = table.admit(0, 3, 0, base::Time::max()).value();
  EXPECT_EQ(table.next_deadline(), kStart + 1s);
  EXPECT_TRUE(table.take_due(kStart).empty());
  ASSERT_EQ(table.take_due(kStart + 1s).size(), 1u);
  EXPECT_TRUE(table.take_due(kStart + 1s).empty()) << "each is named once";
  table.remove(*late);
  EXPECT_EQ(table.next_deadline(), base::Time::max());
  table.remove(*soon);
  EXPECT_EQ(table.size(), 1u);
}

TEST_F(ServedTableTest, TheTableMayBeAllThatKeepsACall) {
  Served* raw = table.admit(1, 7, 10, kStart).value().get();
  table.remove(*raw);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.find(1, 7), nullptr);
}

}  // namespace
}  // namespace nexar::rpc
