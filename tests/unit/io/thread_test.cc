#include "io/thread.h"

#include <csignal>
#include <string>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nexar::io {
namespace {

TEST(Thread, RunsItsBodyUnderItsNameWithEverySignalBlocked) {
  std::string name(16, '\0');
  bool blocked = false;
  std::thread thread = start_thread("nexar-test", [&] {
                         pthread_getname_np(pthread_self(), name.data(), name.size());
                         sigset_t mask;
                         pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                         blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGUSR1) == 1;
                       }).value();
  thread.join();
  EXPECT_TRUE(blocked);

  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0) << "the mask of the starter is as it was";
}

TEST(Thread, AChildOfForkHasAnotherNumber) {
  const std::uint32_t before = forks();
  const pid_t child = fork();
  if (child == 0) _exit(forks() == before + 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(forks(), before);
}

}  // namespace
}  // namespace nexar::io
