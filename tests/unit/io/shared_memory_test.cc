#include "io/shared_memory.h"

#include <limits>

#include <unistd.h>

#include <gtest/gtest.h>

#include "io/event_descriptor.h"
#include "io/host.h"
#include "io/process_memory.h"

namespace nexar::io {
namespace {

TEST(SharedMemory, IsZeroSealedAndMappedOnce) {
  const std::shared_ptr<SharedMemory> made = SharedMemory::create(1u << 20).value();
  for (const std::byte byte : made->bytes()) ASSERT_EQ(byte, std::byte{0});
  const std::shared_ptr<SharedMemory> again = SharedMemory::map(FileDescriptor(::dup(made->fd())), 1u << 20).value();
  EXPECT_EQ(made, again);
  EXPECT_NE(::ftruncate(made->fd(), 0), 0);
}

// A size that the kernel would refuse at once, should it be asked: this test can never take what the machine has.
TEST(SharedMemory, ThatIsNotThereIsRefusedBeforeTheKernelIsAsked) {
  const Result<std::shared_ptr<SharedMemory>> too_much = SharedMemory::create(std::numeric_limits<std::size_t>::max());
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), ErrorCode::kOverloaded);
  EXPECT_NE(too_much.error().sentence().find("left"), std::string::npos) << too_much.error().sentence();
}

TEST(SharedMemory, DoesNotTakeWhatCanShrink) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Result<std::shared_ptr<SharedMemory>> none = SharedMemory::map(FileDescriptor(ends[0]), 4096);
  ::close(ends[1]);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kRefused);
}

TEST(ProcessMemory, ReadsOnlyWhatProvesItself) {
  const std::uint64_t word = 0x1122334455667788;
  const ProcessMemory::Proof proof{reinterpret_cast<std::uintptr_t>(&word), word};
  const int content[3] = {1, 2, 3};
  int got[3] = {};
  const base::ByteSpan pieces[] = {std::as_writable_bytes(std::span(got)).first(5), std::as_writable_bytes(std::span(got)).subspan(5)};
  const ProcessMemory own(this_process(), proof);
  EXPECT_TRUE(own.works());
  EXPECT_TRUE(own.read(reinterpret_cast<std::uintptr_t>(content), pieces));
  EXPECT_EQ(got[0] + got[1] * 10 + got[2] * 100, 321);
  EXPECT_FALSE(own.read(4096, pieces)) << "nothing is there";
  EXPECT_FALSE(ProcessMemory(this_process(), {proof.address, word + 1}).works()) << "another process";
  EXPECT_FALSE(ProcessMemory(0, proof).works()) << "one that we do not see";
}

TEST(EventDescriptor, CanBeClearedAndRungAgain) {
  EventDescriptor event = EventDescriptor::open().value();
  event.clear();
  event.signal();
  event.ring();
  std::uint64_t count = 0;
  EXPECT_EQ(::read(event.fd(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, 2u);
  event.signal();
  event.clear();
  EXPECT_EQ(::read(event.fd(), &count, sizeof count), -1);
}

}  // namespace
}  // namespace nexar::io
