#include "launch/descendants.h"

#include <algorithm>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nexar::launch {
namespace {

// Processes that vanish between being listed and being read.
TEST(Descendants, AreFoundWhileOthersComeAndGo) {
  const pid_t busy = fork();
  if (busy == 0) {
    for (int i = 0; i < 1500; ++i) {
      const pid_t brief = fork();
      if (brief == 0) _exit(0);
      waitpid(brief, nullptr, 0);
    }
    _exit(0);
  }
  ASSERT_GT(busy, 0);
  int scans = 0;
  while (waitpid(busy, nullptr, WNOHANG) == 0) {
    const std::vector<pid_t> found = descendants({});
    EXPECT_NE(std::find(found.begin(), found.end(), busy), found.end());
    ++scans;
  }
  EXPECT_GT(scans, 0);
}

}  // namespace
}  // namespace nexar::launch
