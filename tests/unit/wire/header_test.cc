#include "wire/header.h"

#include <array>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace nexar::wire {
namespace {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes bytes_of(const Header& header) {
  HeaderBytes bytes{};
  encode(header, bytes);
  return bytes;
}

Header bulk() {
  return {.type = FrameType::kBulk,
          .flags = 0,
          .generation = 0x0b0a,
          .length = 0x1234,
          .part = 0x0f0e0d0c,
          .group = 0x1716151413121110,
          .epoch = 0x1f1e1d1c1b1a1918,
          .key = 0x2726252423222120,
          .id = 0x2f2e2d2c2b2a2928};
}

std::string refusal(const HeaderBytes& bytes) {
  const Result<Header> header = decode_header(bytes);
  if (header) return "accepted";
  EXPECT_EQ(header.error().code(), ErrorCode::kRefused);
  return header.error().sentence();
}

// The layout is normative: what stands where may change only with the version.
TEST(Header, HasEveryFieldInItsPlace) {
  const HeaderBytes bytes = bytes_of(bulk());
  EXPECT_EQ(bytes[0], std::byte{'N'});
  EXPECT_EQ(bytes[1], std::byte{1});
  EXPECT_EQ(bytes[2], std::byte{3});
  EXPECT_EQ(bytes[3], std::byte{48});
  EXPECT_EQ(base::load_le<std::uint32_t>(bytes.data() + 4), 0x1234u);
  EXPECT_EQ(base::load_le<std::uint16_t>(bytes.data() + 8), 0u);
  for (std::size_t i = 10; i < kHeaderBytes; ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(i)) << "byte " << i;
}

TEST(Header, ComesBackAsItWas) {
  EXPECT_EQ(*decode_header(bytes_of(bulk())), bulk());
  const Header collective{.type = FrameType::kMessage,
                          .flags = kFlagCollective,
                          .length = kEagerBytesMax,
                          .part = 7,
                          .group = 1,
                          .epoch = 2,
                          .key = 3,
                          .id = 4};
  EXPECT_EQ(*decode_header(bytes_of(collective)), collective);
}

TEST(Header, CutShortIsRefused) {
  const HeaderBytes bytes = bytes_of(bulk());
  for (std::size_t size = 0; size < kHeaderBytes; ++size) {
    const Result<Header> header = decode_header(base::ByteView(bytes).first(size));
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().sentence(), "a frame header has 48 bytes, but only " + std::to_string(size) + " came");
  }
}

TEST(Header, OfAnotherVersionIsRefusedNamingBoth) {
  HeaderBytes bytes = bytes_of(bulk());
  bytes[1] = std::byte{9};
  EXPECT_EQ(refusal(bytes), "the peer speaks wire version 9, this node speaks 1");
  bytes[0] = std::byte{'G'};
  EXPECT_EQ(refusal(bytes), "a frame starts with byte 0x47 instead of 0x4e: the peer does not speak nexar, or the stream lost its place");
}

TEST(Header, OfAnUnknownTypeIsRefused) {
  HeaderBytes bytes = bytes_of(bulk());
  for (unsigned type = 0; type < 256; ++type) {
    bytes[3] = static_cast<std::byte>(type);
    if (find_rules(static_cast<std::uint8_t>(type)) != nullptr) continue;
    EXPECT_EQ(refusal(bytes), "a frame came with type " + std::to_string(type) + ", which wire version 1 does not have");
  }
}

TEST(Header, OnALaneThatIsNotItsOwnIsRefused) {
  HeaderBytes bytes = bytes_of(bulk());
  bytes[2] = std::byte{0};
  EXPECT_EQ(refusal(bytes), "a bulk frame names the control lane; it belongs on bulk");
  bytes[2] = std::byte{4};
  EXPECT_EQ(refusal(bytes), "a bulk frame came with lane 4, which does not exist");
}

TEST(Header, WithAFlagThatIsNotItsOwnIsRefused) {
  HeaderBytes bytes = bytes_of(bulk());
  for (int bit = 0; bit < 16; ++bit) {
    base::store_le(bytes.data() + 8, static_cast<std::uint16_t>(1u << bit));
    EXPECT_NE(refusal(bytes).find("a bulk frame came with flags 0x"), std::string::npos) << bit;
  }
}

TEST(Header, WithALengthPastTheLimitOfItsTypeIsRefused) {
  HeaderBytes bytes = bytes_of(bulk());
  base::store_le<std::uint32_t>(bytes.data() + 4, kBulkBytesMax);
  EXPECT_TRUE(decode_header(bytes));
  base::store_le<std::uint32_t>(bytes.data() + 4, kBulkBytesMax + 1);
  EXPECT_EQ(refusal(bytes), "a bulk frame came with 262145 bytes of payload; it has 1 to 262144");
  base::store_le<std::uint32_t>(bytes.data() + 4, 0);
  EXPECT_EQ(refusal(bytes), "a bulk frame came with 0 bytes of payload; it has 1 to 262144");
}

TEST(Header, WithAFieldThatItsTypeDoesNotUseIsRefused) {
  HeaderBytes bytes = bytes_of({.type = FrameType::kPing, .length = 16, .epoch = 5});
  EXPECT_TRUE(decode_header(bytes));
  for (std::size_t i = 16; i < kHeaderBytes; ++i) bytes[i] = std::byte{1};
  bytes[10] = bytes[12] = std::byte{1};
  EXPECT_EQ(refusal(bytes), "a ping frame came with fields that it does not use: group, key, id, part, generation");
}

TEST(Header, HasAStepOnlyWhenItIsCollective) {
  HeaderBytes bytes = bytes_of({.type = FrameType::kMessage, .flags = kFlagCollective, .part = 7, .id = 1});
  base::store_le<std::uint16_t>(bytes.data() + 8, 0);
  EXPECT_EQ(refusal(bytes), "a message frame came with fields that it does not use: id, part");
}

TEST(HeaderDeathTest, ThatBreaksTheRulesIsNotSent) {
  EXPECT_DEATH(bytes_of({.type = FrameType::kPing, .length = 17}), "keeps to the rules of its type");
  EXPECT_DEATH(bytes_of({.type = static_cast<FrameType>(0)}), "has a row in the table");
}

TEST(FrameType, RulesAreConsistent) {
  std::set<std::string_view> names;
  for (unsigned number = 0; number < 256; ++number) {
    const FrameRules* rules = find_rules(static_cast<std::uint8_t>(number));
    if (rules == nullptr) continue;
    EXPECT_EQ(static_cast<unsigned>(rules->type), number);
    EXPECT_TRUE(names.insert(rules->name).second) << rules->name;
    EXPECT_LE(rules->length_min, rules->length_max);
    EXPECT_LE(rules->length_max, rules->lane == Lane::kBulk ? kBulkBytesMax : kEagerBytesMax) << rules->name;
  }
  EXPECT_EQ(names.size(), 46u);
  EXPECT_EQ(to_string(FrameType::kRpcLargeReply), "rpc_large_reply");
  EXPECT_EQ(to_string(static_cast<FrameType>(200)), "unknown");
  EXPECT_EQ(to_string(static_cast<Lane>(9)), "unknown");
}

}  // namespace
}  // namespace nexar::wire
