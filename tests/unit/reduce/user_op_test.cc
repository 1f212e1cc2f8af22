#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/reducer.h"

namespace nexar::reduce {
namespace {

// left - right: does not commute.
UserOp minus() {
  return user_op<double>("minus", false, [](std::span<const double> left, std::span<const double> right, std::span<double> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = left[i] - right[i];
  });
}

TEST(UserOp, KeepsTheOrderOfItsOperands) {
  const Reducer reducer = Reducer::make(DataType::kF64, minus()).value();
  EXPECT_FALSE(reducer.commutes());
  std::vector<double> a = {10, 20};
  std::vector<double> b = {1, 2};
  ASSERT_TRUE(reducer.combine(a.data(), b.data(), b.data(), 2));
  EXPECT_EQ(b, (std::vector<double>{9, 18}));
  ASSERT_TRUE(reducer.combine(a.data(), b.data(), a.data(), 2));
  EXPECT_EQ(a, (std::vector<double>{1, 2}));
}

TEST(UserOp, ReducesManySourcesFromTheLeft) {
  const Reducer reducer = Reducer::make(DataType::kF64, minus()).value();
  const std::vector<double> a = {100};
  const std::vector<double> b = {10};
  const std::vector<double> c = {1};
  std::vector<double> out(1);
  const std::vector<const void*> three = {a.data(), b.data(), c.data()};
  ASSERT_TRUE(reducer.combine_many(three, out.data(), 1));
  EXPECT_EQ(out[0], 89);
  const std::vector<const void*> one = {a.data()};
  ASSERT_TRUE(reducer.combine_many(one, out.data(), 1));
  EXPECT_EQ(out[0], 100);
}

TEST(UserOp, OnAnotherTypeIsAnErrorThatNamesBoth) {
  const Reducer reducer = Reducer::make(DataType::kF32, minus()).value();
  float values[2] = {1, 2};
  const Result<void> done = reducer.combine(values, values, values, 2);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(done.error().sentence(), "user op minus reduces f64, but the buffer holds f32");
}

TEST(UserOp, WhatItThrowsBecomesAnError) {
  const UserOp thrower{"thrower", [](const void*, const void*, void*, std::size_t, DataType) { throw std::runtime_error("no luck"); },
                       true};
  int value = 0;
  const Result<void> done = Reducer::make(DataType::kI32, thrower).value().combine(&value, &value, &value, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().sentence(), "user op thrower threw: no luck");

  const UserOp odd{"odd", [](const void*, const void*, void*, std::size_t, DataType) { throw 5; }, true};
  EXPECT_FALSE(Reducer::make(DataType::kI32, odd).value().combine(&value, &value, &value, 1));
}

TEST(UserOp, WithoutNameOrFunctionIsRefused) {
  EXPECT_FALSE(Reducer::make(DataType::kI32, UserOp{"", minus().function, true}));
  EXPECT_FALSE(Reducer::make(DataType::kI32, UserOp{"empty", nullptr, true}));
  EXPECT_FALSE(Reducer::make(static_cast<DataType>(99), minus()));
}

}  // namespace
}  // namespace nexar::reduce
