// Keys and records of TCP lanes, without sockets.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <string>

#include "transport/lane_pair.h"
#include "types/node_id.h"

namespace nexar::transport::test {
namespace {

using tcp::LaneKeys;
using tcp::LaneTerms;
using tcp::RecordKeys;
using tcp::Side;

Bytes counting_material() {
  Bytes material(tcp::kMaterialBytes);
  for (std::size_t i = 0; i < material.size(); ++i) material[i] = static_cast<std::byte>(i);
  return material;
}

std::string sealed_hex(RecordKeys& keys, std::string_view text) {
  Bytes out(text.size() + tcp::kRecordTagBytes);
  EXPECT_TRUE(keys.seal(out, std::as_bytes(std::span(text))));
  return to_hex(out);
}

// Computed from docs/wire.md by another implementation of HKDF and AES-GCM.
TEST(RecordKeys, AreThoseOfTheDocument) {
  const LaneTerms terms{.name = {.lane = 3, .generation = 9}};
  RecordKeys forth(counting_material(), terms, Side::kConnects, {.records_per_key = 2});
  EXPECT_EQ(sealed_hex(forth, "nexar"), "6d713cadb164ecffea3aed6cee7ba9aabe57aefed9");
  EXPECT_EQ(sealed_hex(forth, "nexar"), "7877ad319471d5cb9dcd9f8d838e2aa75bfa05f6e1");
  EXPECT_EQ(sealed_hex(forth, "nexar"), "99e5a17e3dfa4621d77eb18c52fd82d2114266a501");  // by the second key
  RecordKeys back(counting_material(), terms, Side::kListens, {.records_per_key = 2});
  EXPECT_EQ(sealed_hex(back, "nexar"), "7b4c14d08c9ccebe69edf31e20f372b5b523426432");
  EXPECT_EQ(sealed_hex(back, "nexar"), "43d50db3d4f1a9b685af33bee57c8bbce20b4d9df1");
  EXPECT_EQ(sealed_hex(back, "nexar"), "1f56b966c3d02f2432feb1d9097d4bc526ce58aeea");
}

TEST(RecordKeys, OpenWhatTheOtherEndSealedAndNothingElse) {
  const LaneTerms terms{.name = {.lane = 1, .generation = 1}};
  const Bytes material = counting_material();
  LaneKeys here = LaneKeys::derive(material, terms, Side::kConnects, {.records_per_key = 4});
  LaneKeys there = LaneKeys::derive(material, terms, Side::kListens, {.records_per_key = 4});
  for (unsigned i = 0; i < 50; ++i) {
    const Bytes plain = random_bytes(i * 13, i);
    Bytes sealed(plain.size() + tcp::kRecordTagBytes);
    Bytes opened(plain.size());
    ASSERT_TRUE(here.seal.seal(sealed, plain));
    sealed[i % sealed.size()] ^= std::byte{1};
    EXPECT_FALSE(there.open.open(opened, sealed));
    sealed[i % sealed.size()] ^= std::byte{1};
    EXPECT_EQ(there.open.number(), i);
    ASSERT_TRUE(there.open.open(opened, sealed));
    EXPECT_EQ(opened, plain);
    EXPECT_FALSE(there.open.open(opened, sealed)) << "not a second time";
  }
}

TEST(RecordKeys, DifferInLaneGenerationDirectionAndPlainness) {
  const auto first = [](const LaneTerms& terms, Side side, const Bytes& material) {
    RecordKeys keys(material, terms, side);
    return sealed_hex(keys, "the same");
  };
  const Bytes material = counting_material();
  std::set<std::string> seen;
  for (const std::uint32_t lane : {0u, 1u, 256u})
    for (const std::uint32_t generation : {1u, 2u, 256u, 1u << 31})
      for (const bool plain : {false, true})
        for (const Side side : {Side::kConnects, Side::kListens})
          EXPECT_TRUE(seen.insert(first({.name = {.lane = lane, .generation = generation}, .plain = plain}, side, material)).second);
  EXPECT_TRUE(seen.insert(first({}, Side::kConnects, random_bytes(tcp::kMaterialBytes, 3))).second);
}

TEST(RecordKeys, StopWhenTheirNumbersAreUsedUp) {
  RecordKeys keys(counting_material(), {}, Side::kConnects, {.records_per_key = 2, .records_max = 3});
  Bytes out(1 + tcp::kRecordTagBytes);
  const Bytes plain(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(keys.seal(out, plain));
  const Bytes last = out;
  EXPECT_FALSE(keys.seal(out, plain));
  EXPECT_EQ(out, last);
  EXPECT_EQ(keys.number(), 3u);
}

TEST(RecordWriter, HoldsNoMoreFramesOfSealedPayloadThanOneWriteTakes) {
  const LaneTerms terms{.name = {.lane = 1, .generation = 1}};
  tcp::RecordWriter writer(RecordKeys(counting_material(), terms, Side::kConnects), false);
  const Bytes payload = random_bytes(writer.payload_max(), 1);
  for (std::size_t i = 0; i < tcp::RecordWriter::kFramesPerWrite; ++i) {
    ASSERT_TRUE(writer.has_room());
    ASSERT_TRUE(writer.add(bulk_header(i, payload.size()), payload));
  }
  EXPECT_FALSE(writer.has_room());
  writer.sent(writer.unsent()[0].size() - 1);
  EXPECT_FALSE(writer.has_room());
  writer.sent(1);
  EXPECT_TRUE(writer.has_room());
  EXPECT_TRUE(writer.empty());
}

TEST(RecordWriter, CopiesThePlainPayloadOnlyWhenItMust) {
  const LaneTerms terms{.name = {.lane = 1, .generation = 1}, .plain = true};
  const Bytes payload = random_bytes(wire::kBulkBytesMax, 1);
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, tcp::kSealedHeaderBytes - 1, tcp::kSealedHeaderBytes, std::size_t{5000},
                                 tcp::kSealedHeaderBytes + payload.size() - 1}) {
    tcp::RecordWriter writer(RecordKeys(counting_material(), terms, Side::kConnects), true);
    Bytes callers = payload;
    ASSERT_TRUE(writer.add(bulk_header(0, callers.size()), callers, true));
    EXPECT_EQ(writer.unsent()[1].data(), callers.data());
    writer.sent(sent);
    writer.settle();
    std::fill(callers.begin(), callers.end(), std::byte{});
    ASSERT_EQ(writer.unsent().size(), 1u);
    const base::ByteView rest = writer.unsent()[0];
    ASSERT_EQ(rest.size(), tcp::kSealedHeaderBytes + payload.size() - sent);
    const std::size_t of_payload = std::min(rest.size(), payload.size());
    EXPECT_TRUE(std::ranges::equal(rest.last(of_payload), std::span(payload).last(of_payload)));
    writer.sent(rest.size());
    EXPECT_TRUE(writer.empty());
    EXPECT_TRUE(writer.has_room());
  }
}

// Whatever stays, whatever the socket takes: the bytes are those of the frames, in order.
TEST(RecordWriter, WritesSeveralPlainFramesAtOnce) {
  const LaneTerms terms{.name = {.lane = 1, .generation = 1}, .plain = true};
  std::mt19937_64 random(7);
  tcp::RecordWriter writer(RecordKeys(counting_material(), terms, Side::kConnects), true);
  std::deque<Bytes> callers;
  Bytes expected;  // payloads; headers are sealed, and skipped
  Bytes written;
  std::size_t most = 0;
  std::vector<std::size_t> lengths;
  for (std::size_t number = 0; number < 200 || !writer.empty();) {
    std::size_t frames = 0;
    while (number < 200 && writer.has_room()) {
      callers.push_back(random_bytes(1 + random() % wire::kBulkBytesMax, static_cast<unsigned>(random())));
      const bool stays = random() % 3 != 0;
      ASSERT_TRUE(writer.add(bulk_header(number++, callers.back().size()), callers.back(), stays));
      lengths.push_back(callers.back().size());
      expected.insert(expected.end(), callers.back().begin(), callers.back().end());
      if (!stays) std::fill(callers.back().begin(), callers.back().end(), std::byte{});
      ++frames;
    }
    most = std::max(most, frames);
    ASSERT_LE(writer.unsent().size(), tcp::RecordWriter::kPiecesMax);
    Bytes all;
    for (const base::ByteView piece : writer.unsent()) all.insert(all.end(), piece.begin(), piece.end());
    const std::size_t sent = random() % 2 == 0 ? all.size() : random() % (all.size() + 1);
    written.insert(written.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sent));
    writer.sent(sent);
    writer.settle();
    for (Bytes& memory : callers) std::fill(memory.begin(), memory.end(), std::byte{});
    callers.clear();
  }
  EXPECT_GE(most, tcp::RecordWriter::kPlainFramesPerWrite);
  Bytes payloads;
  std::size_t at = 0;
  for (const std::size_t length : lengths) {
    at += tcp::kSealedHeaderBytes;
    payloads.insert(payloads.end(), written.begin() + static_cast<std::ptrdiff_t>(at),
                    written.begin() + static_cast<std::ptrdiff_t>(at + length));
    at += length;
  }
  EXPECT_EQ(at, written.size());
  EXPECT_TRUE(payloads == expected);
}

// Takes some frames' payloads and names places for those of others.
class Recorder : public tcp::RecordSink, public Sink {
 public:
  explicit Recorder(unsigned takes_of_four) : takes_of_four_(takes_of_four) {}
  Result<Sink*> on_frame(const wire::Header& header) override {
    takes_ = frames.size() % 4 < takes_of_four_;
    frames.emplace_back();
    frames.back().reserve(header.length);
    place_.resize(header.length);
    return static_cast<Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header& header) override {
    EXPECT_EQ(frames.back().size(), header.length);
    ++whole;
    return {};
  }
  void take(base::ByteView bytes) override {
    EXPECT_TRUE(takes_) << "what has a place is read there";
    frames.back().insert(frames.back().end(), bytes.begin(), bytes.end());
  }
  std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) override {
    if (takes_) return 0;
    regions[0] = base::ByteSpan(place_).first(bytes / 3);
    regions[1] = base::ByteSpan(place_).subspan(bytes / 3, bytes - bytes / 3);
    return 2;
  }
  void placed(std::size_t bytes) override {
    frames.back().insert(frames.back().end(), place_.begin(), place_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }

  std::vector<Bytes> frames;
  std::size_t whole = 0;

 private:
  const unsigned takes_of_four_;
  bool takes_ = false;
  Bytes place_;
};

struct PlainStream {
  std::vector<Bytes> payloads;
  Bytes bytes;
};

PlainStream plain_stream(const LaneTerms& terms, std::size_t frames, std::mt19937_64& random) {
  PlainStream stream;
  tcp::RecordWriter writer(RecordKeys(counting_material(), terms, Side::kConnects), true);
  for (std::size_t i = 0; i < frames; ++i) {
    const std::size_t size = random() % 4 == 0 ? random() % 200 : wire::kBulkBytesMax - random() % 2 * (random() % 5000);
    stream.payloads.push_back(random_bytes(size, static_cast<unsigned>(i)));
    EXPECT_TRUE(writer.add(bulk_header(i, size), stream.payloads.back()));
    for (const base::ByteView piece : writer.unsent()) stream.bytes.insert(stream.bytes.end(), piece.begin(), piece.end());
    while (!writer.empty()) writer.sent(writer.unsent()[0].size());
  }
  return stream;
}

// Feeds `parser` what it wants of the stream, at most `most()` at once; returns how often.
std::size_t feed(tcp::RecordParser& parser, base::ByteView stream, const std::function<std::size_t()>& most) {
  std::size_t reads = 0;
  for (; !stream.empty(); ++reads) {
    std::size_t left = std::min(most(), stream.size());
    std::size_t read = 0;
    for (const base::ByteSpan region : parser.wanted()) {
      const std::size_t part = std::min(region.size(), left);
      std::copy_n(stream.begin(), part, region.begin());
      stream = stream.subspan(part);
      left -= part;
      read += part;
    }
    EXPECT_GT(read, 0u);
    EXPECT_LE(read, tcp::RecordParser::kReadBytes + wire::kBulkBytesMax);
    const Result<void> parsed = parser.received(read);
    EXPECT_TRUE(parsed);
    if (!parsed || read == 0) break;
  }
  return reads;
}

TEST(RecordParser, DeliversPlainFramesToSinksOfEitherKindHoweverTheyCome) {
  const LaneTerms terms{.name = {.lane = 1, .generation = 1}, .plain = true};
  std::mt19937_64 random(3);
  const PlainStream stream = plain_stream(terms, 60, random);
  for (const unsigned takes_of_four : {0u, 1u, 2u, 3u, 4u})
    for (const std::size_t most : {std::size_t{1} << 30, std::size_t{65600}, std::size_t{3000}, std::size_t{63}}) {
      Recorder recorder(takes_of_four);
      tcp::RecordParser parser(RecordKeys(counting_material(), terms, Side::kConnects), true, recorder);
      feed(parser, stream.bytes, [&] { return 1 + random() % most; });
      EXPECT_FALSE(parser.in_frame());
      EXPECT_EQ(recorder.whole, stream.payloads.size());
      EXPECT_TRUE(recorder.frames == stream.payloads) << takes_of_four << " of four are taken, at most " << most << " at once";
    }
}

// Whether sinks take them, name places, or now this and now that.
TEST(RecordParser, ReadsAPlainFrameAndTheNextHeaderAtOnce) {
  const LaneTerms terms{.name = {.lane = 1, .generation = 1}, .plain = true};
  std::mt19937_64 random(5);
  const PlainStream stream = plain_stream(terms, 64, random);
  for (const unsigned takes_of_four : {0u, 2u, 4u}) {
    Recorder recorder(takes_of_four);
    tcp::RecordParser parser(RecordKeys(counting_material(), terms, Side::kConnects), true, recorder);
    EXPECT_LE(feed(parser, stream.bytes, [] { return SIZE_MAX; }), 1 + stream.payloads.size()) << takes_of_four;
  }
}

}  // namespace
}  // namespace nexar::transport::test
