#include "cluster/token.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "cluster/encoding.h"

namespace nexar::cluster {
namespace {

Error no_token(std::string_view why) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("this is no join token: {}; it is `{}` and {} lower-case letters and digits", why, kTokenPrefix, kTokenLetters)};
}

}  // namespace

Result<Token> Token::parse(std::string_view text) {
  if (text.empty()) return no_token("it is empty");
  if (!text.starts_with(kTokenPrefix)) return no_token(fmt::format("it does not begin with `{}`", kTokenPrefix));
  text.remove_prefix(kTokenPrefix.size());
  if (text.size() != kTokenLetters) return no_token(fmt::format("after that it has {} characters", text.size()));
  crypto::Secret bytes(kTokenBytes);
  if (!from_base32(text, bytes.span())) return no_token("it has a character other than a to z and 2 to 7");

  Token token;
  const base::ByteView all = bytes.view();
  std::ranges::copy(all.first(kIdBytes), token.cluster.bytes.begin());
  std::ranges::copy(all.subspan(kIdBytes, token.authority.size()), token.authority.begin());
  token.secret = crypto::Secret(all.last(kSecretBytes));
  return token;
}

std::string Token::to_string() const {
  NEXAR_ASSERT(secret.size() == kSecretBytes, "a token has its secret");
  crypto::Secret bytes(kTokenBytes);
  const base::ByteSpan all = bytes.span();
  std::ranges::copy(cluster.bytes, all.begin());
  std::ranges::copy(authority, all.subspan(kIdBytes).begin());
  std::ranges::copy(secret.view(), all.last(kSecretBytes).begin());
  return std::string(kTokenPrefix) + to_base32(bytes.view());
}

}  // namespace nexar::cluster
