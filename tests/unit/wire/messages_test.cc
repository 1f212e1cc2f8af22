// What holds for every message, checked on samples of all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "wire/any_message.h"

namespace nexar::wire {
namespace {

// The frame read back and written again; empty when it is refused, or when its length does not fit what is there.
std::vector<std::byte> read_and_write(base::ByteView frame) {
  const Result<Header> header = decode_header(frame);
  if (!header) {
    EXPECT_EQ(header.error().code(), ErrorCode::kRefused);
    return {};
  }
  const base::ByteView payload = frame.subspan(kHeaderBytes);
  if (header->length != payload.size()) return {};
  const Result<AnyMessage> message = decode_any(*header, payload);
  if (!message) {
    EXPECT_EQ(message.error().code(), ErrorCode::kRefused);
    return {};
  }
  return encode_any(*message, {header->group, header->epoch}, payload);
}

TEST(Messages, EveryTypeHasOneAndASample) {
  std::set<FrameType> messages(all_types().begin(), all_types().end());
  std::set<FrameType> sampled;
  for (const Sample& sample : samples()) sampled.insert(sample.type);
  for (unsigned number = 0; number < 256; ++number) {
    const FrameRules* rules = find_rules(static_cast<std::uint8_t>(number));
    if (rules == nullptr) continue;
    EXPECT_TRUE(messages.contains(rules->type)) << rules->name;
    EXPECT_TRUE(sampled.contains(rules->type)) << rules->name;
  }
  EXPECT_EQ(messages.size(), all_types().size());
}

TEST(Messages, ComeBackAsTheyWere) {
  for (const Sample& sample : samples()) {
    const Result<Header> header = decode_header(sample.frame);
    ASSERT_TRUE(header) << sample.name << ": " << header.error().to_string();
    EXPECT_EQ(header->type, sample.type) << sample.name;
    EXPECT_EQ(header->group, sample.scope.group) << sample.name;
    EXPECT_EQ(header->epoch, sample.scope.epoch) << sample.name;
    const base::ByteView payload = base::ByteView(sample.frame).subspan(kHeaderBytes);
    ASSERT_EQ(header->length, payload.size()) << sample.name;
    const Result<AnyMessage> message = decode_any(*header, payload);
    ASSERT_TRUE(message) << sample.name << ": " << message.error().to_string();
    EXPECT_TRUE(*message == sample.message) << sample.name;
  }
}

// The table's limits are the messages' own: the samples reach both ends.
TEST(Messages, ReachTheLimitsOfTheirTypes) {
  for (const FrameType type : all_types()) {
    const FrameRules& rules = rules_of(type);
    if (rules.length_max >= kEagerBytesMax) continue;  // carriers
    std::size_t shortest = SIZE_MAX;
    std::size_t longest = 0;
    for (const Sample& sample : samples()) {
      if (sample.type != type) continue;
      shortest = std::min(shortest, sample.frame.size() - kHeaderBytes);
      longest = std::max(longest, sample.frame.size() - kHeaderBytes);
    }
    EXPECT_EQ(shortest, rules.length_min) << rules.name;
    EXPECT_EQ(longest, rules.length_max) << rules.name;
  }
}

// Of long messages, whose inside repeats itself, the first kilobytes in full and then a place here and there: an odd step, so that all
// positions within a field come up.
std::size_t next_place(std::size_t place) { return place + (place < 32768 ? 1 : 61); }

TEST(Messages, CutShortAreRefused) {
  for (const Sample& sample : samples()) {
    const Header header = *decode_header(sample.frame);
    if (rules_of(sample.type).length_max >= kEagerBytesMax) continue;  // a carrier's payload has no inside
    const base::ByteView payload = base::ByteView(sample.frame).subspan(kHeaderBytes);
    for (std::size_t size = 0; size < payload.size(); size = next_place(size)) {
      Header shorter = header;
      shorter.length = static_cast<std::uint32_t>(size);
      EXPECT_FALSE(decode_any(shorter, payload.first(size))) << sample.name << " cut to " << size;
    }
  }
}

TEST(Messages, WithBytesAfterTheirEndAreRefused) {
  for (const Sample& sample : samples()) {
    if (rules_of(sample.type).length_max >= kEagerBytesMax) continue;
    std::vector<std::byte> payload(sample.frame.begin() + kHeaderBytes, sample.frame.end());
    payload.push_back(std::byte{0});
    Header longer = *decode_header(sample.frame);
    longer.length = static_cast<std::uint32_t>(payload.size());
    const Result<AnyMessage> message = decode_any(longer, payload);
    ASSERT_FALSE(message) << sample.name;
    EXPECT_NE(message.error().sentence().find("has bytes after its end"), std::string::npos) << message.error().sentence();
  }
}

// Long frames repeat the same elements: past the first KiB one bit of each byte, another from byte to byte, is enough.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kEveryBit = 1024;  // each is several times as dear, and no different
#else
constexpr std::size_t kEveryBit = 8192;
#endif
bool skipped(std::size_t bit) { return bit >= kEveryBit && bit % 8 != bit / 8 % 8; }

// No two byte strings mean the same message, so a bit that flips is seen or is part of a value.
TEST(Messages, WithAnyBitFlippedAreRefusedOrWrittenTheSameAgain) {
  for (const Sample& sample : samples()) {
    std::vector<std::byte> frame = sample.frame;
    for (std::size_t bit = 0; bit < frame.size() * 8; bit = next_place(bit)) {
      if (skipped(bit)) continue;
      frame[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const std::vector<std::byte> again = read_and_write(frame);
      ASSERT_TRUE(again.empty() || again == frame) << sample.name << ", bit " << bit;
      frame[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
    EXPECT_EQ(read_and_write(frame), frame) << sample.name;
  }
}

}  // namespace
}  // namespace nexar::wire
