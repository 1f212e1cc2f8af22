// Any text is read as token and as seed file: it is refused without being shown, or written again as the same text.
#include <string>
#include <string_view>

#include "base/assert.h"
#include "cluster/host_port.h"
#include "cluster/seed_credentials.h"
#include "cluster/token.h"
#include "fuzz.h"

namespace nexar::cluster {
namespace {

constexpr std::size_t kShown = 12;  // as much of a secret, without a space, is in no sentence by chance

void expect_hidden(const Error& error, std::string_view text) {
  NEXAR_ASSERT(error.code() == ErrorCode::kInvalidArgument, "a text that is no artefact is an invalid argument");
  if (text.size() < kShown) return;
  const std::string_view end = text.substr(text.size() - kShown);
  if (end.find(' ') == end.npos) NEXAR_ASSERT(error.sentence().find(end) == std::string::npos, "no part of it is shown");
}

void try_text(std::string_view text) {
  if (const Result<Token> token = Token::parse(text))
    NEXAR_ASSERT(token->to_string() == text, "a token has one spelling");
  else
    expect_hidden(token.error(), text);
  if (const Result<SeedCredentials::Content> content = parse_seed_file(text)) {
    // A key has other encodings than ours; what we write of it is read as the same.
    const std::string again = format_seed_file(*content);
    const Result<SeedCredentials::Content> read = parse_seed_file(again);
    NEXAR_ASSERT(read && format_seed_file(*read) == again, "a seed file is read as it was written");
    NEXAR_ASSERT(read->token().to_string() == content->token().to_string(), "and makes the same token");
  } else {
    expect_hidden(content.error(), text);
  }
  if (const Result<HostPort> seed = parse_host_port(text)) NEXAR_ASSERT(!seed->host.empty(), "an address has a host");
}

}  // namespace
}  // namespace nexar::cluster

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const nexar::base::ByteView bytes = nexar::fuzz::view(data, size);
  nexar::cluster::try_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return 0;
}
