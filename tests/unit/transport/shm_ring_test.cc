#include "transport/shm/ring.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::transport::shm {
namespace {

// A ring as it lies in a segment.
struct Memory {
  explicit Memory(std::size_t capacity) : bytes(capacity) {}
  RingWriter writer() { return {tail, head, bytes}; }
  RingReader reader() { return {tail, head, bytes}; }

  Position tail = 0;
  Position head = 0;
  std::vector<std::byte> bytes;
};

std::vector<std::byte> numbered(std::size_t from, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((from + i) * 37 >> 3);
  return bytes;
}

TEST(ShmRing, HoldsExactlyItsCapacity) {
  Memory memory(16);
  RingWriter writer = memory.writer();
  RingReader reader = memory.reader();
  EXPECT_EQ(writer.room(), 16u);
  writer.write(numbered(0, 16));
  EXPECT_EQ(reader.available(), 0u) << "nobody sees what is not published";
  writer.publish();
  EXPECT_EQ(writer.room(), 0u);
  EXPECT_EQ(reader.available(), 16u);
  EXPECT_FALSE(writer.is_read());
  std::vector<std::byte> got(16);
  reader.copy(got);
  EXPECT_EQ(got, numbered(0, 16));
  EXPECT_EQ(writer.room(), 0u) << "what is read is not given back yet";
  reader.give_back();
  EXPECT_EQ(writer.room(), 16u);
  EXPECT_TRUE(writer.is_read());
}

// Random pieces, both ends in threads of their own, capacities from tiny to larger than every piece.
TEST(ShmRing, CarriesEveryByteOnceInOrderWhateverThePieces) {
  for (const std::size_t capacity : {8u, 64u, 1024u, 65536u}) {
    Memory memory(capacity);
    const std::size_t total = std::min<std::size_t>(capacity * 50, 1u << 18);
    std::thread other([&] {
      RingWriter writer = memory.writer();
      std::mt19937 random(1);
      for (std::size_t sent = 0; sent < total;) {
        const std::size_t piece = std::min({writer.room(), std::size_t{random() % (2 * capacity)}, total - sent});
        writer.write(numbered(sent, piece));
        writer.publish();
        sent += piece;
        if (piece == 0) std::this_thread::yield();
      }
    });
    RingReader reader = memory.reader();
    std::mt19937 random(2);
    std::size_t got = 0;
    bool equal = true;
    while (got < total) {
      const std::size_t piece = std::min(reader.available(), std::size_t{random() % (2 * capacity)});
      std::vector<std::byte> bytes(piece);
      reader.copy(bytes);
      equal = equal && bytes == numbered(got, piece);
      got += piece;
      if (random() % 2 == 0 || got == total) reader.give_back();
      if (piece == 0) {
        reader.give_back();
        std::this_thread::yield();
      }
    }
    other.join();
    EXPECT_TRUE(equal) << capacity;
  }
}

TEST(ShmRing, DoesNotBelieveAPositionThatCannotBe) {
  for (const std::uint64_t nonsense : {std::uint64_t{17}, std::uint64_t{1} << 40, UINT64_MAX}) {
    Memory memory(16);
    RingReader reader = memory.reader();
    memory.tail = nonsense;
    EXPECT_EQ(reader.available(), 0u);
    EXPECT_TRUE(reader.is_broken());
    memory.tail = 1;
    EXPECT_EQ(reader.available(), 0u) << "once broken is for ever";

    RingWriter writer = memory.writer();
    memory.head = nonsense;
    EXPECT_EQ(writer.room(), 0u);
    EXPECT_TRUE(writer.is_broken());
  }
  Memory memory(16);
  RingWriter writer = memory.writer();
  RingReader reader = memory.reader();
  writer.write(numbered(0, 8));
  writer.publish();
  reader.skip(8);
  reader.give_back();
  EXPECT_EQ(writer.room(), 16u);
  memory.head = 4;
  EXPECT_EQ(writer.room(), 0u) << "nothing is unread";
  EXPECT_TRUE(writer.is_broken());
}

}  // namespace
}  // namespace nexar::transport::shm
