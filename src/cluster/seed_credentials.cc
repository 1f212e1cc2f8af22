#include "cluster/seed_credentials.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/encoding.h"
#include "io/random.h"
#include "io/secret_file.h"

namespace nexar {
namespace cluster {
namespace {

constexpr std::string_view kFirstLine = "nexar seed file 1";

// Takes the file line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string_view next() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return line;
  }

  // What follows `name: ` on the next line; nothing when that is another.
  std::optional<std::string_view> value_of(std::string_view name) {
    std::string_view line = next();
    if (!line.starts_with(name) || !line.substr(name.size()).starts_with(": ")) return std::nullopt;
    line.remove_prefix(name.size() + 2);
    return line;
  }

  bool at_end() const { return rest_.empty(); }
  int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

Error no_seed_file(const Lines& lines, std::string_view what) {
  return {ErrorCode::kInvalidArgument, fmt::format("this is no seed file: line {} {}", lines.number(), what)};
}

Error in_file(const std::string& file, const Error& error) { return {error.code(), fmt::format("'{}': {}", file, error.sentence())}; }

// The text of a file, wiped when it goes.
struct SecretText {
  std::vector<std::byte> bytes;
  explicit SecretText(std::vector<std::byte> content) : bytes(std::move(content)) {}
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
  ~SecretText() { crypto::wipe(bytes); }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

}  // namespace

std::string format_seed_file(const SeedCredentials::Content& content) {
  return fmt::format("{}\ncluster: {}\nkey: {}\nsecret: {}\n", kFirstLine, to_string(content.cluster), to_hex(content.key.der().view()),
                     to_hex(content.secret.view()));
}

Result<SeedCredentials::Content> parse_seed_file(std::string_view text) {
  Lines lines(text);
  if (lines.next() != kFirstLine) return no_seed_file(lines, fmt::format("is not `{}`", kFirstLine));

  const auto cluster_text = lines.value_of("cluster");
  const auto cluster = cluster_text ? id_from_hex(*cluster_text) : std::nullopt;
  if (!cluster) return no_seed_file(lines, "is not `cluster: ` and 32 hexadecimal digits");

  const auto key_text = lines.value_of("key");
  const auto key_bytes = key_text ? from_hex(*key_text) : std::nullopt;
  if (!key_bytes) return no_seed_file(lines, "is not `key: ` and hexadecimal digits");
  Result<crypto::PrivateKey> key = crypto::PrivateKey::parse(key_bytes->view());
  if (!key) return no_seed_file(lines, "holds no Ed25519 key");

  const auto secret_text = lines.value_of("secret");
  auto secret = secret_text ? from_hex(*secret_text) : std::nullopt;
  if (!secret || secret->size() != kSecretBytes) return no_seed_file(lines, "is not `secret: ` and 64 hexadecimal digits");
  if (!lines.at_end()) {
    lines.next();
    return no_seed_file(lines, "should not be there");
  }
  return SeedCredentials::Content{ClusterId{*cluster}, *std::move(key), *std::move(secret)};
}

}  // namespace cluster

SeedCredentials::SeedCredentials(std::unique_ptr<Content> content) : content_(std::move(content)) {}
SeedCredentials::SeedCredentials(SeedCredentials&&) noexcept = default;
SeedCredentials& SeedCredentials::operator=(SeedCredentials&&) noexcept = default;
SeedCredentials::~SeedCredentials() = default;

Result<SeedCredentials> SeedCredentials::make() {
  Result<crypto::PrivateKey> key = crypto::PrivateKey::generate();
  if (!key) return std::move(key).error();
  ClusterId cluster;
  io::system_random().fill(cluster.bytes);
  crypto::Secret secret(cluster::kSecretBytes);
  io::system_random().fill(secret.span());
  return SeedCredentials(std::make_unique<Content>(Content{cluster, *std::move(key), std::move(secret)}));
}

Result<SeedCredentials> SeedCredentials::read(const std::string& file) {
  Result<std::vector<std::byte>> bytes = io::read_secret_file(file, cluster::kSecretFileBytesMax);
  if (!bytes) return std::move(bytes).error();
  const cluster::SecretText text(*std::move(bytes));
  Result<Content> content = cluster::parse_seed_file(text.view());
  if (!content) return cluster::in_file(file, content.error());
  return SeedCredentials(std::make_unique<Content>(*std::move(content)));
}

Result<void> SeedCredentials::write(const std::string& file) const {
  std::string text = cluster::format_seed_file(*content_);
  Result<void> written = io::write_new_secret_file(file, std::as_bytes(std::span(text)));
  cluster::wipe(text);
  return written;
}

std::string SeedCredentials::token() const { return content_->token().to_string(); }

Result<void> write_token_file(const std::string& file, const std::string& token) {
  if (const Result<cluster::Token> checked = cluster::Token::parse(token); !checked) return checked.error();
  std::string text = token + "\n";
  Result<void> written = io::write_new_secret_file(file, std::as_bytes(std::span(text)));
  cluster::wipe(text);
  return written;
}

Result<std::string> read_token_file(const std::string& file) {
  Result<std::vector<std::byte>> bytes = io::read_secret_file(file, cluster::kSecretFileBytesMax);
  if (!bytes) return std::move(bytes).error();
  const cluster::SecretText text(*std::move(bytes));
  std::string_view token = text.view();
  if (token.ends_with('\n')) token.remove_suffix(1);  // as editors and echo leave it
  if (const Result<cluster::Token> checked = cluster::Token::parse(token); !checked) return cluster::in_file(file, checked.error());
  return std::string(token);
}

}  // namespace nexar
