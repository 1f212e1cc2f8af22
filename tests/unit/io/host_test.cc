#include "io/host.h"

#include <string>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

#include "io/thread.h"

namespace nexar::io {
namespace {

TEST(Host, KnowsItsCpuAndCores) {
  const Host here = host();
  EXPECT_FALSE(here.cpu.empty());
  EXPECT_GE(here.cores, 1);
}

TEST(Host, CountsTheCoresThatAThreadMayRunOn) {
  const CoreSet cores = own_cores();
  if (!cores.is_known()) GTEST_SKIP() << "more cores than a set holds";
  EXPECT_EQ(cores.size(), host().cores);
  EXPECT_GE(online_cores(), cores.size());
}

TEST(Host, FollowsAThreadThatIsBound) {
  std::thread([] {
    pin_thread(0);
    EXPECT_EQ(own_cores().size(), 1);
    EXPECT_EQ(host().cores, 1);
  }).join();
}

TEST(Host, HasMarksThatStay) {
  const HostMarks marks = host_marks();
  EXPECT_EQ(marks.boot_id.size(), 36u) << marks.boot_id;
  EXPECT_NE(marks.network_namespace, 0u);
  EXPECT_EQ(host_marks(), marks);
}

TEST(Host, NamesTheProcess) { EXPECT_TRUE(process_name().ends_with(" pid " + std::to_string(getpid()))) << process_name(); }

}  // namespace
}  // namespace nexar::io
