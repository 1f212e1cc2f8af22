#include "io/host.h"

#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

namespace nexar::io {
namespace {

TEST(Host, KnowsItsCpuAndCores) {
  const Host here = host();
  EXPECT_FALSE(here.cpu.empty());
  EXPECT_GE(here.cores, 1);
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
