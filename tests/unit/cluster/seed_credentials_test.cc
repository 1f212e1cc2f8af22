#include "cluster/seed_credentials.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace nexar {
namespace {

namespace fs = std::filesystem;

// A folder of the test's own, removed with it.
class SeedCredentialsTest : public testing::Test {
 protected:
  SeedCredentialsTest() {
    std::string name = (fs::temp_directory_path() / "nexar_XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~SeedCredentialsTest() override { fs::remove_all(folder); }

  std::string path(const std::string& name) const { return (folder / name).string(); }
  static std::string content(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string write(const std::string& name, const std::string& text,
                    fs::perms mode = fs::perms::owner_read | fs::perms::owner_write) const {
    std::ofstream(path(name)) << text;
    fs::permissions(path(name), mode);
    return path(name);
  }

  fs::path folder;
};

TEST_F(SeedCredentialsTest, AreReadAsTheyWereWritten) {
  const SeedCredentials made = SeedCredentials::make().value();
  ASSERT_TRUE(made.write(path("seed")));
  EXPECT_EQ(fs::status(path("seed")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const SeedCredentials read = SeedCredentials::read(path("seed")).value();
  EXPECT_EQ(read.token(), made.token());
  EXPECT_TRUE(std::ranges::equal(read.content().key.der().view(), made.content().key.der().view()));
}

TEST_F(SeedCredentialsTest, AreOfAnotherClusterEachTime) {
  EXPECT_NE(SeedCredentials::make().value().token(), SeedCredentials::make().value().token());
}

TEST_F(SeedCredentialsTest, AnExistingFileIsNotOverwritten) {
  write("seed", "precious");
  const Result<void> written = SeedCredentials::make().value().write(path("seed"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(written.error().sentence().find(path("seed")), std::string::npos);
  EXPECT_EQ(content(path("seed")), "precious");
}

TEST_F(SeedCredentialsTest, AFileThatOthersMayReadIsRefused) {
  const SeedCredentials made = SeedCredentials::make().value();
  ASSERT_TRUE(made.write(path("seed")));
  for (const fs::perms extra : {fs::perms::group_read, fs::perms::others_read, fs::perms::group_write}) {
    fs::permissions(path("seed"), fs::perms::owner_read | extra);
    const Result<SeedCredentials> read = SeedCredentials::read(path("seed"));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::kRefused);
    EXPECT_NE(read.error().sentence().find(path("seed")), std::string::npos);
  }
}

TEST_F(SeedCredentialsTest, AFileThatIsNotThereOrIsAFolderIsNamed) {
  for (const std::string& file : {path("missing"), folder.string()}) {
    if (file == folder.string()) fs::permissions(folder, fs::perms::owner_all);
    const Result<SeedCredentials> read = SeedCredentials::read(file);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::kIo);
    EXPECT_NE(read.error().sentence().find(file), std::string::npos);
  }
}

TEST_F(SeedCredentialsTest, AFileOfAnotherShapeIsRefusedByLineWithoutShowingIt) {
  const std::string good = cluster::format_seed_file(SeedCredentials::make().value().content());
  ASSERT_TRUE(cluster::parse_seed_file(good));
  const auto line_of = [&](const std::string& text) {
    const Result<SeedCredentials> read = SeedCredentials::read(write("bad", text));
    if (read) return std::string("accepted");
    EXPECT_EQ(read.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(read.error().sentence().find(path("bad")), std::string::npos);
    EXPECT_EQ(read.error().sentence().find(text.empty() ? "?" : good.substr(good.rfind(' ') + 1, 20)), std::string::npos) << "it is shown";
    const std::size_t at = read.error().sentence().find("line ");
    return at == std::string::npos ? read.error().sentence() : read.error().sentence().substr(at, 6);
  };
  EXPECT_EQ(line_of(""), "line 1");
  EXPECT_EQ(line_of("nexar seed file 2" + good.substr(17)), "line 1");
  EXPECT_EQ(line_of(good.substr(0, good.find("key"))), "line 3");
  EXPECT_EQ(line_of(good.substr(0, good.find("secret"))), "line 4");
  EXPECT_EQ(line_of(good.substr(0, good.size() - 3) + "\n"), "line 4");
  EXPECT_EQ(line_of(good + "\n"), "line 5");
  std::string other_key = good;
  other_key[good.find("key: ") + 5] = '4';  // DER begins with 0x30
  EXPECT_EQ(line_of(other_key), "line 3");
  EXPECT_NE(line_of(std::string(5000, 'x')).find("more than the 4096 bytes"), std::string::npos);
}

TEST_F(SeedCredentialsTest, ATokenFileHoldsOneToken) {
  const std::string token = SeedCredentials::make().value().token();
  ASSERT_TRUE(write_token_file(path("token"), token));
  EXPECT_EQ(content(path("token")), token + "\n");
  EXPECT_EQ(fs::status(path("token")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(read_token_file(path("token")).value(), token);
  EXPECT_EQ(read_token_file(write("plain", token)).value(), token);
  EXPECT_EQ(write_token_file(path("token"), token).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_token_file(path("other"), "abc").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(path("other")));
}

TEST_F(SeedCredentialsTest, ATokenFileThatIsNoneIsNamedAndNotShown) {
  const std::string token = SeedCredentials::make().value().token();
  const Result<std::string> broken = read_token_file(write("token", token + "x"));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(broken.error().sentence().find(path("token")), std::string::npos);
  EXPECT_EQ(broken.error().sentence().find(token.substr(40, 10)), std::string::npos);
  EXPECT_EQ(read_token_file(path("missing")).error().code(), ErrorCode::kIo);
  EXPECT_EQ(read_token_file(write("open", token, fs::perms::owner_read | fs::perms::others_read)).error().code(), ErrorCode::kRefused);
}

}  // namespace
}  // namespace nexar
