#include "base/log.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/assert.h"

namespace nexar::base {
namespace {

// A logger whose lines are kept.
struct Recorder {
  explicit Recorder(LogLevel level)
      : log(level, [this](const LogRecord& record) { lines.push_back(std::string(to_string(record.level)) + " " + to_string(record)); }) {}
  std::vector<std::string> lines;
  Logger log;
};

TEST(Logger, PassesItsLevelAndWhatIsMoreUrgent) {
  Recorder recorder(LogLevel::kWarning);
  recorder.log.error("mesh", "one");
  recorder.log.warning("mesh", "two");
  recorder.log.info("mesh", "three");
  recorder.log.debug("mesh", "four");
  recorder.log.trace("mesh", "five");
  EXPECT_EQ(recorder.lines, (std::vector<std::string>{"error mesh: one", "warning mesh: two"}));
}

TEST(Logger, SaysNothingWhenOff) {
  Recorder recorder(LogLevel::kOff);
  recorder.log.error("mesh", "one");
  recorder.log.write(LogLevel::kOff, "mesh", "two");
  EXPECT_TRUE(recorder.lines.empty());
}

TEST(Logger, WithoutASinkIsSilent) {
  const Logger log(LogLevel::kTrace, nullptr);
  EXPECT_FALSE(log.enabled(LogLevel::kError));
  log.error("mesh", "nobody hears this");
}

TEST(Logger, EveryLineSaysWhoSpeaks) {
  Recorder recorder(LogLevel::kInfo);
  recorder.log.set_context("rank", "0");
  recorder.log.set_context("epoch", "1");
  recorder.log.info("mesh", "peer stopped answering", {{"peer", 3}, {"silent_for", "5s"}});
  recorder.log.set_context("epoch", "2");
  recorder.log.info("cluster", "new view");
  EXPECT_EQ(recorder.lines, (std::vector<std::string>{"info mesh: peer stopped answering rank=0 epoch=1 peer=3 silent_for=5s",
                                                      "info cluster: new view rank=0 epoch=2"}));
}

TEST(LogRecord, StaysOnOneLineWhateverAValueHolds) {
  Recorder recorder(LogLevel::kInfo);
  recorder.log.info("seed", "refused", {{"why", "two words"}, {"text", "a\"b\\c\nd"}, {"empty", ""}});
  EXPECT_EQ(recorder.lines.at(0), R"(info seed: refused why="two words" text="a\"b\\c\nd" empty="")");
}

TEST(LogLevel, NamesAndLevelsAreInverse) {
  for (const LogLevel level : {LogLevel::kOff, LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo, LogLevel::kDebug, LogLevel::kTrace})
    EXPECT_EQ(log_level_from(to_string(level)), level);
  EXPECT_EQ(log_level_from("loud"), std::nullopt);
  EXPECT_EQ(to_string(static_cast<LogLevel>(99)), "unknown");
}

TEST(AssertDeathTest, EndsTheProcessWithExpressionAndSentence) {
  const int ranks = 0;
  EXPECT_DEATH(NEXAR_ASSERT(ranks > 0, "a group has members"), "log_test.cc:.*assertion failed: ranks > 0: a group has members");
}

}  // namespace
}  // namespace nexar::base
