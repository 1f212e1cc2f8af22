#include "io/stderr_log.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"

namespace nexar::io {
namespace {

TEST(StderrLog, WritesOneLineWithTimeLevelAndContext) {
  testing::internal::CaptureStderr();
  {
    base::Logger log(LogLevel::kInfo, stderr_log());
    log.set_context("rank", "2");
    log.set_context("epoch", "7");
    log.warning("mesh", "peer stopped answering", {{"peer", 3}});
    log.debug("mesh", "not shown");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(testing::internal::RE::FullMatch(
      text, testing::internal::RE("[0-9-]+T[0-9:.]+Z nexar warning mesh: peer stopped answering rank=2 epoch=7 peer=3\n")))
      << text;
}

TEST(StderrLog, WritesNothingToStandardOutput) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  base::Logger(LogLevel::kTrace, stderr_log()).error("io", "loud");
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace nexar::io
