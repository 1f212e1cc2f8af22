#include "nexar/codec.h"

#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace nexar {
namespace {

struct Point {
  double x = 0;
  std::string name;
  static constexpr auto kFields = std::tuple(&Point::x, &Point::name);
  bool operator==(const Point&) const = default;
};

struct Path {
  std::vector<Point> points;
  std::optional<std::map<std::string, int>> weights;
  static constexpr auto kFields = std::tuple(&Path::points, &Path::weights);
  bool operator==(const Path&) const = default;
};

enum class Color : std::uint16_t { kRed = 1, kBlue = 500 };

template <typename T>
void expect_same(const T& value) {
  const std::vector<std::byte> bytes = encode_all(value);
  const auto back = decode_all<T>(bytes);
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::get<0>(*back) == value);
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_all<T>(longer)) << "a byte is left over";
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decode_all<T>(std::span(bytes).first(cut))) << "only " << cut << " bytes of " << bytes.size();
}

TEST(Codec, EveryKindOfValueComesBackAndNoPartOfOneDoes) {
  expect_same(std::uint8_t{200});
  expect_same(std::numeric_limits<std::int64_t>::min());
  expect_same(3.25f);
  expect_same(true);
  expect_same(Color::kBlue);
  expect_same(std::byte{7});
  expect_same(std::string("a\0b", 3));
  expect_same(std::vector<float>{1, 2, 3});
  expect_same(std::vector<bool>{true, false, true});
  expect_same(std::vector<std::string>{"", "two"});
  expect_same(std::array<std::int16_t, 3>{1, -2, 3});
  expect_same(std::pair<int, std::string>(4, "four"));
  expect_same(std::tuple<int, bool, std::string>(4, true, "x"));
  expect_same(std::optional<int>(5));
  expect_same(std::optional<int>());
  expect_same(std::map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  expect_same(Path{{{1.5, "one"}, {2, ""}}, std::map<std::string, int>{{"one", 1}}});
}

TEST(Codec, NumbersAreLittleEndianAndLengthsHave64Bits) {
  EXPECT_EQ(encode_all(std::uint32_t{0x01020304}), (std::vector{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}}));
  const std::vector<std::byte> text = encode_all(std::string("ab"));
  ASSERT_EQ(text.size(), 10u);
  EXPECT_EQ(text[0], std::byte{2});
  EXPECT_EQ(text[9], std::byte{'b'});
}

TEST(Codec, ALengthThatTheBytesCannotHoldAllocatesNothing) {
  const std::vector<std::byte> huge = encode_all(std::numeric_limits<std::uint64_t>::max(), std::uint64_t{0});
  EXPECT_FALSE((decode_all<std::vector<double>>(huge)));
  EXPECT_FALSE((decode_all<std::string>(huge)));
  EXPECT_FALSE((decode_all<std::vector<std::string>>(huge)));
  EXPECT_FALSE((decode_all<std::map<int, int>>(huge)));
}

TEST(Codec, NoBytesAreTooStrange) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes(random() % 64);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 3);
    if (const auto path = decode_all<Path, std::vector<bool>>(bytes)) {
      EXPECT_TRUE(encode_all(std::get<0>(*path), std::get<1>(*path)).size() <= bytes.size());
    }
  }
}

}  // namespace
}  // namespace nexar
