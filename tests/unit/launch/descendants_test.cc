#include "launch/descendants.h"

#include <algorithm>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nexar::launch {
namespace {

// Processes that vanish between being listed and being read: each of these starts one after the other, and none lives long.
TEST(Descendants, AreFoundWhileOthersComeAndGo) {
  std::vector<pid_t> busy(4);
  for (pid_t& one : busy) {
    one = fork();
    ASSERT_GE(one, 0);
    if (one != 0) continue;
    for (int i = 0; i < 1000; ++i) {
      const pid_t brief = fork();
      if (brief == 0) _exit(0);
      waitpid(brief, nullptr, 0);
    }
    _exit(0);
  }
  for (const pid_t one : busy)
    while (waitpid(one, nullptr, WNOHANG) == 0) {
      const std::vector<pid_t> found = descendants({});
      EXPECT_NE(std::find(found.begin(), found.end(), one), found.end());
    }
}

}  // namespace
}  // namespace nexar::launch
