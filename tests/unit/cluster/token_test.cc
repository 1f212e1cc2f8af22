#include "cluster/token.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "cluster/encoding.h"

namespace nexar::cluster {
namespace {

Token token() {
  Token token;
  token.cluster.bytes.fill(std::byte{0x11});
  token.authority.fill(std::byte{0xa5});
  token.secret = crypto::Secret(kSecretBytes);
  std::ranges::fill(token.secret.span(), std::byte{0xfe});
  return token;
}

std::string refusal(const std::string& text) {
  const Result<Token> parsed = Token::parse(text);
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidArgument);
  return parsed.error().sentence();
}

TEST(Token, IsReadAsItWasWritten) {
  const std::string text = token().to_string();
  EXPECT_EQ(text.size(), kTokenPrefix.size() + 128);
  const Result<Token> parsed = Token::parse(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->cluster, token().cluster);
  EXPECT_EQ(parsed->authority, token().authority);
  EXPECT_TRUE(std::ranges::equal(parsed->secret.view(), token().secret.view()));
  EXPECT_EQ(parsed->copy().to_string(), text);
}

TEST(Token, ErrorsSayWhatIsWrongAndShowNothing) {
  const std::string good = token().to_string();
  EXPECT_NE(refusal("").find("it is empty"), std::string::npos);
  EXPECT_NE(refusal("nxr2-" + good.substr(5)).find("does not begin with `nxr1-`"), std::string::npos);
  EXPECT_NE(refusal(good.substr(0, 100)).find("it has 95 characters"), std::string::npos);
  EXPECT_NE(refusal(good + "a").find("it has 129 characters"), std::string::npos);
  std::string upper = good;
  upper.back() = 'A';
  for (const std::string& bad : {upper, good.substr(0, 132) + "1", good.substr(0, 132) + " "}) {
    EXPECT_NE(refusal(bad).find("a character other than"), std::string::npos);
    EXPECT_EQ(refusal(bad).find(bad.substr(60, 12)), std::string::npos) << "a part of the token is shown";
  }
}

TEST(Encoding, WritesBase32AsTheStandardHasIt) {
  const std::string text = "foobarbaz!";  // whole groups of five
  EXPECT_EQ(to_base32(std::as_bytes(std::span(text))), "mzxw6ytbojrgc6rb");
  std::string back(10, '\0');
  EXPECT_TRUE(from_base32("mzxw6ytbojrgc6rb", std::as_writable_bytes(std::span(back))));
  EXPECT_EQ(back, text);
}

TEST(Encoding, ReadsPairsOfLowerCaseHexadecimalDigits) {
  EXPECT_EQ(to_hex(from_hex("00ff7a")->view()), "00ff7a");
  EXPECT_EQ(from_hex("")->size(), 0u);
  EXPECT_FALSE(from_hex("0"));
  EXPECT_FALSE(from_hex("0G"));
  EXPECT_FALSE(from_hex("AB"));
}

}  // namespace
}  // namespace nexar::cluster
