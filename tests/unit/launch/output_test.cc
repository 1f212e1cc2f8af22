#include "launch/output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/file_descriptor.h"

namespace nexar::launch {
namespace {

TEST(LineCutter, ShowsWholeLinesOnly) {
  LineCutter lines(3, {});
  std::string out;
  lines.add("one\ntw", out);
  EXPECT_EQ(out, "[3] one\n");
  lines.add("o\n\nthree", out);
  EXPECT_EQ(out, "[3] one\n[3] two\n[3] \n");
  lines.finish(out);
  EXPECT_EQ(out, "[3] one\n[3] two\n[3] \n[3] three\n");
}

TEST(LineCutter, CutsALineThatDoesNotEnd) {
  LineCutter lines(0, {});
  std::string out;
  lines.add(std::string(kLineMax - 1, 'x'), out);
  EXPECT_EQ(out, "");
  lines.add("xy", out);
  EXPECT_EQ(out, "[0] " + std::string(kLineMax, 'x') + "\n");
  out.clear();
  lines.finish(out);
  EXPECT_EQ(out, "[0] y\n");
}

TEST(LineCutter, ChangesNothingWithoutAPrefix) {
  LineCutter lines(0, {.prefix = false});
  const std::string text = "a\n" + std::string(3 * kLineMax, 'x') + "\nend";
  std::string out;
  for (const char c : text) lines.add({&c, 1}, out);
  lines.finish(out);
  EXPECT_EQ(out, text);
}

TEST(LineCutter, GivesNeighboursDifferentColours) {
  std::string first;
  std::string second;
  LineCutter(0, {.colour = true}).add("\n", first);
  LineCutter(1, {.colour = true}).add("\n", second);
  EXPECT_EQ(first, "\x1b[31m[0]\x1b[0m \n");
  EXPECT_EQ(second, "\x1b[32m[1]\x1b[0m \n");
}

TEST(OutputFile, HasNoRoomBeyondItsBound) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const io::FileDescriptor reader(ends[0]);
  const io::FileDescriptor writer(ends[1]);
  OutputFile file(writer.get());
  const std::string piece(4096, 'x');
  while (file.has_room()) file.put(piece);
  std::size_t read_bytes = 0;
  while (!file.is_empty()) {
    ASSERT_TRUE(file.write_some());
    char bytes[4096];
    read_bytes += static_cast<std::size_t>(read(reader.get(), bytes, sizeof bytes));
  }
  EXPECT_EQ(read_bytes, OutputFile::kWaitingMax);
  EXPECT_TRUE(file.has_room());
}

TEST(OutputFile, DropsWhatNobodyReads) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const io::FileDescriptor writer(ends[1]);
  close(ends[0]);
  OutputFile file(writer.get());
  file.put("x");
  EXPECT_FALSE(file.write_some());
  file.put("y");
  EXPECT_TRUE(file.is_empty());
}

}  // namespace
}  // namespace nexar::launch
