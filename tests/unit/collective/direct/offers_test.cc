// How often a thread that waits gives its core away.
#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "collective/direct/run.h"

namespace nexar::collective::direct {
namespace {

using namespace std::chrono_literals;

// Each reading is later than the one before by the price of an offer. Offers are what it is read for.
class PricedClock final : public io::Clock {
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

class OffersTest : public testing::Test {
 protected:
  std::uint64_t made_of(int occasions, base::Duration price, Spin spin = {}) {
    clock.price = price;
    const std::uint64_t before = clock.readings;
    for (int i = 0; i < occasions; ++i) offers.make(spin, clock);
    return (clock.readings - before) / 2;
  }

  PricedClock clock;
  Offers offers;
};

TEST_F(OffersTest, AreMadeWheneverTheyAreCheap) { EXPECT_EQ(made_of(1000, 20us), 1000u); }

TEST_F(OffersTest, AreMadeSeldomWhereTheyAreDear) {
  EXPECT_EQ(made_of(64, 3ms), 1u);
  EXPECT_LE(made_of(10'000, 3ms), 8u) << "each pause is twice as long as the one before";
  EXPECT_GE(made_of(1'000'000, 3ms), 10u) << "but they are still made";
}

TEST_F(OffersTest, AreMadeAgainWhenTheyHaveBecomeCheap) {
  made_of(10'000, 3ms);
  made_of(100'000, 20us);
  EXPECT_EQ(made_of(1000, 20us), 1000u);
}

TEST_F(OffersTest, AreMadeAtAnyPriceWhereRanksOutnumberCores) {
  made_of(10'000, 3ms, Spin::for_cores(4, 2));
  EXPECT_EQ(clock.readings, 0u) << "nobody asks what they cost";
}

}  // namespace
}  // namespace nexar::collective::direct
