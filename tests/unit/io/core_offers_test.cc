// How often a thread that waits gives its core away.
#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/time.h"
#include "io/core_offers.h"

namespace nexar::io {
namespace {

using namespace std::chrono_literals;

// Each reading is later than the one before by the price of an offer. Offers are what it is read for.
class PricedClock final : public Clock {
 public:
  base::Time now() const override {
    ++readings;
    return time += price;
  }
  std::chrono::sys_seconds wall() const override { return {}; }

  base::Duration price{};
  mutable std::uint64_t readings = 0;
  mutable base::Time time{};
};

class CoreOffersTest : public testing::Test {
 protected:
  std::uint64_t made_of(int occasions, base::Duration price, bool crowded = false) {
    clock.price = price;
    const std::uint64_t before = clock.readings;
    for (int i = 0; i < occasions; ++i) offers.make(crowded, clock);
    return (clock.readings - before) / 2;
  }

  PricedClock clock;
  CoreOffers offers;
};

TEST_F(CoreOffersTest, AreMadeWheneverTheyAreCheap) { EXPECT_EQ(made_of(1000, 20us), 1000u); }

TEST_F(CoreOffersTest, AreMadeSeldomWhereTheyAreDear) {
  EXPECT_EQ(made_of(64, 3ms), 1u);
  EXPECT_LE(made_of(10'000, 3ms), 8u) << "each pause is twice as long as the one before";
  EXPECT_GE(made_of(1'000'000, 3ms), 10u) << "but they are still made";
}

TEST_F(CoreOffersTest, AreMadeAgainWhenTheyHaveBecomeCheap) {
  made_of(10'000, 3ms);
  made_of(100'000, 20us);
  EXPECT_EQ(made_of(1000, 20us), 1000u);
}

TEST_F(CoreOffersTest, AreMadeAtAnyPriceWhereRanksOutnumberCores) {
  made_of(10'000, 3ms, true);
  EXPECT_EQ(clock.readings, 0u) << "nobody asks what they cost";
}

}  // namespace
}  // namespace nexar::io
