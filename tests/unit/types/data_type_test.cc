#include "nexar/data_type.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nexar {
namespace {

TEST(DataType, NumbersOfTheContractAreFixed) {
  const std::vector<std::string> first_ten = {"f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "u32", "u64"};
  for (std::size_t id = 0; id < first_ten.size(); ++id)
    EXPECT_EQ(to_string(data_type_from(static_cast<std::uint8_t>(id)).value()), first_ten[id]);
}

TEST(DataType, EveryTypeHasItsSize) {
  const std::vector<std::pair<std::string, std::size_t>> sizes = {{"f32", 4},    {"f64", 8}, {"f16", 2}, {"bf16", 2}, {"f8e4m3", 1},
                                                                  {"f8e5m2", 1}, {"i8", 1},  {"i16", 2}, {"i32", 4},  {"i64", 8},
                                                                  {"u8", 1},     {"u16", 2}, {"u32", 4}, {"u64", 8},  {"bool", 1}};
  EXPECT_EQ(sizes.size(), kDataTypes.size());
  for (const auto& [name, size] : sizes) EXPECT_EQ(size_of(data_type_from(name).value()), size) << name;
}

TEST(DataType, NamesAndTypesAreInverse) {
  for (const DataType type : kDataTypes) {
    EXPECT_EQ(data_type_from(to_string(type)).value(), type);
    EXPECT_EQ(data_type_from(static_cast<std::uint8_t>(type)).value(), type);
  }
}

TEST(DataType, AnUnknownNameOrNumberIsNamed) {
  const Result<DataType> by_name = data_type_from("f33");
  ASSERT_FALSE(by_name);
  EXPECT_EQ(by_name.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(by_name.error().sentence().find("\"f33\""), std::string::npos);
  EXPECT_NE(by_name.error().sentence().find("bf16"), std::string::npos) << "the known ones are listed";

  const Result<DataType> by_number = data_type_from(std::uint8_t{15});
  ASSERT_FALSE(by_number);
  EXPECT_NE(by_number.error().sentence().find("15"), std::string::npos);
  EXPECT_EQ(size_of(static_cast<DataType>(77)), 0u);
  EXPECT_EQ(to_string(static_cast<DataType>(77)), "unknown");
}

TEST(DataType, IsOfOneFamily) {
  int floats = 0;
  int integers = 0;
  for (const DataType type : kDataTypes) {
    floats += is_float(type);
    integers += is_integer(type);
    EXPECT_FALSE(is_float(type) && is_integer(type));
  }
  EXPECT_EQ(floats, 6);
  EXPECT_EQ(integers, 8);
}

static_assert(data_type_of<float> == DataType::kF32);
static_assert(data_type_of<const double> == DataType::kF64);
static_assert(data_type_of<f16> == DataType::kF16);
static_assert(data_type_of<bf16> == DataType::kBf16);
static_assert(data_type_of<f8e4m3> == DataType::kF8e4m3);
static_assert(data_type_of<f8e5m2> == DataType::kF8e5m2);
static_assert(data_type_of<bool> == DataType::kBool);
static_assert(data_type_of<std::int8_t> == DataType::kI8);
static_assert(data_type_of<std::uint16_t> == DataType::kU16);
static_assert(data_type_of<long> == DataType::kI64);
static_assert(data_type_of<unsigned long long> == DataType::kU64);
static_assert(!Element<std::string> && !Element<float*> && !Element<long double>);

}  // namespace
}  // namespace nexar
