#include "base/units.h"

#include <gtest/gtest.h>

namespace nexar::base {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_duration("500ms"), Duration(500ms));
  EXPECT_EQ(parse_duration("30s"), Duration(30s));
  EXPECT_EQ(parse_duration("10min"), Duration(10min));
  EXPECT_EQ(parse_duration("2h"), Duration(2h));
  EXPECT_EQ(parse_duration("7us"), Duration(7us));
  EXPECT_EQ(parse_duration("0ns"), Duration(0));
}

TEST(Units, WhatIsNoDurationIsNothing) {
  for (const char* text :
       {"", "30", "s", "-1s", "+1s", "1.5s", "30 s", " 30s", "30s ", "30S", "1d", "9223372036855s", "99999999999999999999s"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Units, SizesAreReadWithBinaryUnits) {
  EXPECT_EQ(parse_size("65536"), 65536u);
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("64K"), 65536u);
  EXPECT_EQ(parse_size("2MiB"), 2u << 20);
  EXPECT_EQ(parse_size("4GiB"), 4ull << 30);
  EXPECT_EQ(parse_size("1T"), 1ull << 40);
  EXPECT_EQ(parse_size("5B"), 5u);
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
}

TEST(Units, WhatIsNoSizeIsNothing) {
  for (const char* text : {"", "KiB", "-1", "1.5MiB", "64kb", "64 KiB", "0x10", "18446744073709551616", "16777216TiB"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(Units, WhatIsPrintedIsReadAgain) {
  for (const Duration duration : {Duration(0), Duration(1), Duration(1500us), Duration(90s), Duration(10min), Duration::max()})
    EXPECT_EQ(parse_duration(format_duration(duration)), duration) << format_duration(duration);
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1536}, std::uint64_t{8} << 20, UINT64_MAX})
    EXPECT_EQ(parse_size(format_size(size)), size) << format_size(size);
}

TEST(Units, TheLargestUnitThatFitsIsPrinted) {
  EXPECT_EQ(format_duration(600s), "10min");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(-5s), "-5s");
  EXPECT_EQ(format_duration(Duration::min()), "-9223372036854775808ns");
  EXPECT_EQ(format_size(8 << 20), "8MiB");
  EXPECT_EQ(format_size(1000), "1000B");
}

}  // namespace
}  // namespace nexar::base
