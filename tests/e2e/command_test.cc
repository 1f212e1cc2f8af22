#include "command.h"

#include <gtest/gtest.h>

namespace nexar::test {
namespace {

TEST(Command, ReturnsWhatTheToolWrote) {
  const Result<std::string> output = run_command({"printf", "%s", "two words; no $SHELL"});
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_EQ(*output, "two words; no $SHELL");
}

TEST(Command, NamesTheCommandAndWhatItComplainedOf) {
  const Result<std::string> output = run_command({"ls", "/nonesuch"});
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code(), ErrorCode::kIo);
  EXPECT_NE(output.error().sentence().find("`ls /nonesuch` exited with 2"), std::string::npos) << output.error().to_string();
  EXPECT_NE(output.error().sentence().find("No such file"), std::string::npos) << output.error().to_string();
}

TEST(Command, SaysWhichToolThereIsNot) {
  const Result<std::string> output = run_command({"nexar-nonesuch", "x"});
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(output.error().sentence().find("no nexar-nonesuch here"), std::string::npos) << output.error().to_string();
}

TEST(Command, KeepsABoundedPartOfALongOutput) {
  const Result<std::string> output = run_command({"head", "-c", "1000000", "/dev/zero"});
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_EQ(output->size(), kCommandOutputMax);
}

TEST(Command, KillsAToolThatHangs) {
  const Result<std::string> output = run_command({"sleep", "1000"}, std::chrono::milliseconds(50));
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().sentence().find("not done in time"), std::string::npos) << output.error().to_string();
}

}  // namespace
}  // namespace nexar::test
