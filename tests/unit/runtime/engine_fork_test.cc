// A child of fork has its parent's memory and none of its threads.
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "runtime/running_engine.h"

namespace nexar::runtime {
namespace {

// What the child has to say, as its exit status.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Why a child of fork cannot do what these tests let it do; null where it can.
const char* cannot_fork() {
#if defined(__SANITIZE_THREAD__)
  return "ThreadSanitizer allows no threads in a child of fork";
#elif defined(__SANITIZE_ADDRESS__)
  return "AddressSanitizer's allocator may be locked for ever in a child of fork, by a thread that the child does not have";
#else
  return nullptr;
#endif
}

TEST(EngineFork, CallsInAChildAreRefusedByNameAndTheEngineCanBeDestroyedThere) {
  if (const char* why = cannot_fork()) GTEST_SKIP() << why;
  RunningEngine engine;
  engine->run([] {});
  const int status = in_child([&] {
    const Result<void> answer = engine->check_outside("all_reduce");
    if (answer) return 1;
    if (answer.error().code() != ErrorCode::kUnsupported) return 2;
    if (answer.error().sentence().find("all_reduce was called in a child of fork") == std::string::npos) return 3;
    engine.engine.reset();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(engine->check_outside("all_reduce"));
  engine->run([] {});  // the parent goes on
}

TEST(EngineFork, AChildMayStartAnEngineOfItsOwn) {
  if (const char* why = cannot_fork()) GTEST_SKIP() << why;
  const RunningEngine parents;
  const int status = in_child([] {
    const RunningEngine own(without_timeouts());
    own->run([] {});
    return own->check_outside("send") ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace nexar::runtime
