#include "nexar/reduce_op.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nexar {
namespace {

TEST(ReduceOp, NamesAndOpsAreInverse) {
  for (const ReduceOp op : kReduceOps) {
    EXPECT_EQ(reduce_op_from(to_string(op)).value(), op);
    EXPECT_EQ(reduce_op_from(static_cast<std::uint8_t>(op)).value(), op);
  }
}

TEST(ReduceOp, AnUnknownNameOrNumberIsNamed) {
  const Result<ReduceOp> by_name = reduce_op_from("product");
  ASSERT_FALSE(by_name);
  EXPECT_EQ(by_name.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(by_name.error().sentence().find("\"product\""), std::string::npos);
  EXPECT_NE(by_name.error().sentence().find("prod"), std::string::npos);
  EXPECT_FALSE(reduce_op_from(std::uint8_t{8}));
}

TEST(ReduceOp, BitwiseOnFloatsAndAvgOnBoolAreRefusedByName) {
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : kReduceOps) {
      const bool bitwise = op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor;
      const bool meaningless = (bitwise && is_float(type)) || (op == ReduceOp::kAvg && type == DataType::kBool);
      const Result<void> checked = check_reducible(type, op);
      EXPECT_EQ(checked.has_value(), !meaningless) << to_string(op) << " on " << to_string(type);
      if (checked) continue;
      EXPECT_EQ(checked.error().code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(checked.error().sentence().find(to_string(op)), std::string::npos);
      EXPECT_NE(checked.error().sentence().find(to_string(type)), std::string::npos);
    }
  }
}

TEST(ReduceOp, WhatIsNoTypeOrOpIsAnError) {
  EXPECT_FALSE(check_reducible(static_cast<DataType>(99), ReduceOp::kSum));
  EXPECT_FALSE(check_reducible(DataType::kF32, static_cast<ReduceOp>(99)));
}

}  // namespace
}  // namespace nexar
