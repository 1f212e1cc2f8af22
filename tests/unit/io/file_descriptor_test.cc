#include "io/file_descriptor.h"

#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nexar::io {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) != -1; }
int open_something() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(FileDescriptor, ClosesWhatItOwns) {
  const int fd = open_something();
  { const FileDescriptor owner(fd); }
  EXPECT_FALSE(is_open(fd));
}

TEST(FileDescriptor, MovesOwnership) {
  const int fd = open_something();
  FileDescriptor first(fd);
  FileDescriptor second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT: what is left of it is the point
  EXPECT_EQ(second.get(), fd);
  second = FileDescriptor(open_something());
  EXPECT_TRUE(!is_open(fd) || second.get() == fd);
}

TEST(FileDescriptor, KeepsWhatItHasWhenAssignedToItself) {
  FileDescriptor owner(open_something());
  FileDescriptor& alias = owner;
  owner = std::move(alias);
  EXPECT_TRUE(is_open(owner.get()));
}

TEST(FileDescriptor, ReleasesWithoutClosing) {
  FileDescriptor owner(open_something());
  const int fd = owner.release();
  EXPECT_FALSE(owner);
  EXPECT_TRUE(is_open(fd));
  close(fd);
}

TEST(FileDescriptorDeath, NoticesThatSomebodyElseClosedIt) {
  EXPECT_DEATH(
      {
        const FileDescriptor owner(open_something());
        close(owner.get());
      },
      "closed by its owner");
}

}  // namespace
}  // namespace nexar::io
