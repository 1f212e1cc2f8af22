// Limits of control groups, in trees of files as both versions of the kernel's interface show them.
#include "doctor/memory_limit.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "doctor/checks.h"

namespace nexar::tool::doctor {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() {
    std::string name = (std::filesystem::temp_directory_path() / "nexar-doctor-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  System system() const { return System(root_); }

 private:
  std::filesystem::path root_;
};

TEST_F(MemoryLimitTest, IsNoneWhereNothingLimits) {
  EXPECT_FALSE(memory_limit(system()));
  write("proc/self/cgroup", "0::/user.slice\n");
  write("sys/fs/cgroup/user.slice/memory.max", "max\n");
  EXPECT_FALSE(memory_limit(system()));
}

TEST_F(MemoryLimitTest, IsThatOfTheGroupLessWhatIsUsedAndCannotBeDropped) {
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/memory.max", std::to_string(512 * kMiB) + "\n");
  write("sys/fs/cgroup/app/memory.current", std::to_string(200 * kMiB) + "\n");
  write("sys/fs/cgroup/app/memory.stat", "anon 1\ninactive_file " + std::to_string(50 * kMiB) + "\nslab 3\n");
  const auto limit = memory_limit(system());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->group, "/sys/fs/cgroup/app");
  EXPECT_EQ(limit->limit, 512 * kMiB);
  EXPECT_EQ(limit->left(), 362 * kMiB);
}

TEST_F(MemoryLimitTest, IsTheTightestOfAllGroupsAround) {
  write("proc/self/cgroup", "0::/pod/container\n");
  write("sys/fs/cgroup/pod/container/memory.max", std::to_string(900 * kMiB) + "\n");
  write("sys/fs/cgroup/pod/memory.max", std::to_string(100 * kMiB) + "\n");
  const auto limit = memory_limit(system());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->group, "/sys/fs/cgroup/pod");
}

TEST_F(MemoryLimitTest, IsReadOfTheFirstVersionToo) {
  write("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", std::to_string(64 * kMiB) + "\n");
  write("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", std::to_string(70 * kMiB) + "\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto limit = memory_limit(system());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limit, 64 * kMiB);
  EXPECT_EQ(limit->left(), 0u);
}

// A container sees the path of its host, and its own group as the root of the mount.
TEST_F(MemoryLimitTest, IsThatOfTheMountWhereThePathIsNotThere) {
  write("proc/self/cgroup", "4:memory:/kubepods/pod1/c1\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(300 * kMiB) + "\n");
  const auto limit = memory_limit(system());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->limit, 300 * kMiB);
}

TEST_F(MemoryLimitTest, IsFoundWrongWhenTheSharedMemoryDoesNotFitAndNothingIsAllocated) {
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/memory.max", std::to_string(100 * kMiB) + "\n");
  Surroundings here;
  here.system = system();
  const Findings found = check_memory(here);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].verdict, Verdict::kWrong);
  EXPECT_NE(found[0].remedy.find("NEXAR_SHM_BUDGET=25MiB"), std::string::npos) << found[0].remedy;
  EXPECT_EQ(found[1].verdict, Verdict::kWarning);
  EXPECT_NE(found[1].seen.find("not tried"), std::string::npos);

  write("sys/fs/cgroup/app/memory.max", std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(check_memory(here)[0].verdict, Verdict::kWarning) << "it fits, and little else does";
  write("sys/fs/cgroup/app/memory.max", std::to_string(1000 * kMiB) + "\n");
  EXPECT_EQ(check_memory(here)[0].verdict, Verdict::kOk);
}

TEST_F(MemoryLimitTest, CongestionControlOtherThanOursIsNamedWithWhatLoadsOurs) {
  Surroundings here;
  here.system = system();
  EXPECT_EQ(check_congestion_control(here)[0].verdict, Verdict::kWarning);
  write("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
  write("proc/sys/net/ipv4/tcp_available_congestion_control", "bbr vegas\n");
  const Findings found = check_congestion_control(here);
  EXPECT_EQ(found[0].verdict, Verdict::kWarning);
  EXPECT_NE(found[0].remedy.find("modprobe tcp_cubic"), std::string::npos);
  write("proc/sys/net/ipv4/tcp_available_congestion_control", "bbr cubic\n");
  EXPECT_EQ(check_congestion_control(here)[0].verdict, Verdict::kOk);
}

}  // namespace
}  // namespace nexar::tool::doctor
