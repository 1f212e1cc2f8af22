#include "wire/frame_parser.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire/any_message.h"

namespace nexar::wire {
namespace {

// Puts frames together again and checks the order of calls.
class Collector : public FrameSink {
 public:
  Result<void> on_frame(const Header& header) override {
    EXPECT_FALSE(open_) << "a frame began inside another";
    if (refuse_frames) return Error(ErrorCode::kCancelled, "the sink wants no frames");
    open_ = true;
    headers.push_back(header);
    payloads.emplace_back();
    return {};
  }

  Result<void> on_payload(base::ByteView piece, bool last) override {
    EXPECT_TRUE(open_);
    EXPECT_TRUE(!piece.empty() || (last && headers.back().length == 0));
    payloads.back().insert(payloads.back().end(), piece.begin(), piece.end());
    pieces.push_back(piece.data());
    EXPECT_EQ(last, payloads.back().size() == headers.back().length);
    open_ = !last;
    if (refuse_payload) return Error(ErrorCode::kCancelled, "the sink wants no payload");
    return {};
  }

  std::vector<std::byte> stream() const {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < headers.size(); ++i) {
      std::array<std::byte, kHeaderBytes> header{};
      encode(headers[i], header);
      bytes.insert(bytes.end(), header.begin(), header.end());
      bytes.insert(bytes.end(), payloads[i].begin(), payloads[i].end());
    }
    return bytes;
  }

  std::vector<Header> headers;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<const std::byte*> pieces;
  bool refuse_frames = false;
  bool refuse_payload = false;

 private:
  bool open_ = false;
};

std::vector<std::byte> frames_on(Lane lane, std::size_t bytes_max) {
  std::vector<std::byte> stream;
  for (const Sample& sample : samples())
    if (rules_of(sample.type).lane == lane && sample.frame.size() <= bytes_max)
      stream.insert(stream.end(), sample.frame.begin(), sample.frame.end());
  return stream;
}

TEST(FrameParser, GivesTheSameFramesHoweverTheStreamIsCutInTwo) {
  for (const Lane lane : {Lane::kControl, Lane::kRpc, Lane::kData, Lane::kBulk}) {
    const std::vector<std::byte> stream = frames_on(lane, 200);
    ASSERT_FALSE(stream.empty());
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      FrameParser parser(lane);
      Collector collector;
      ASSERT_TRUE(parser.feed(base::ByteView(stream).first(cut), collector));
      ASSERT_TRUE(parser.feed(base::ByteView(stream).subspan(cut), collector));
      ASSERT_TRUE(parser.finish());
      ASSERT_EQ(collector.stream(), stream) << to_string(lane) << " cut at " << cut;
    }
  }
}

TEST(FrameParser, GivesTheSameFramesInPiecesOfEverySize) {
  for (const Lane lane : {Lane::kControl, Lane::kRpc, Lane::kData, Lane::kBulk}) {
    const std::vector<std::byte> stream = frames_on(lane, SIZE_MAX);
    for (std::size_t size = 1; size <= 2 * kHeaderBytes + 1; ++size) {
      FrameParser parser(lane);
      Collector collector;
      for (base::ByteView rest = stream; !rest.empty(); rest = rest.subspan(std::min(size, rest.size())))
        ASSERT_TRUE(parser.feed(rest.first(std::min(size, rest.size())), collector));
      ASSERT_EQ(collector.stream(), stream) << to_string(lane) << " in pieces of " << size;
    }
  }
}

TEST(FrameParser, HandsPayloadOnWhereItLies) {
  const std::vector<std::byte> payload(kEagerBytesMax, std::byte{7});
  const std::vector<std::byte> frame = encode_any(EagerMessage{.key = 5}, {}, payload);
  FrameParser parser(Lane::kData);
  Collector collector;
  ASSERT_TRUE(parser.feed(frame, collector));
  ASSERT_EQ(collector.pieces.size(), 1u);
  EXPECT_EQ(collector.pieces[0], frame.data() + kHeaderBytes);
}

TEST(FrameParser, DoesNotWaitForTheRestOfAPayload) {
  const std::vector<std::byte> frame = encode_any(EagerMessage{}, {}, std::vector<std::byte>(10));
  FrameParser parser(Lane::kData);
  Collector collector;
  ASSERT_TRUE(parser.feed(base::ByteView(frame).first(kHeaderBytes), collector));
  EXPECT_EQ(collector.headers.size(), 1u);
  EXPECT_TRUE(collector.pieces.empty());
  ASSERT_TRUE(parser.feed(base::ByteView(frame).subspan(kHeaderBytes, 1), collector));
  EXPECT_EQ(collector.payloads[0].size(), 1u);
}

TEST(FrameParser, RefusesAFrameOfAnotherLane) {
  const std::vector<std::byte> frame = encode_any(Ping{}, {}, {});
  FrameParser parser(Lane::kData);
  Collector collector;
  const Result<void> fed = parser.feed(frame, collector);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().to_string(), "refused: a ping frame came on the data lane");
  EXPECT_TRUE(collector.headers.empty());
}

TEST(FrameParser, RepeatsItsErrorAndCallsNobodyAfterwards) {
  FrameParser parser(Lane::kControl);
  Collector collector;
  ASSERT_FALSE(parser.feed(std::vector<std::byte>(kHeaderBytes), collector));
  const Result<void> again = parser.feed(encode_any(Ping{}, {}, {}), collector);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().sentence().find("0x00 instead of 0x4e"), std::string::npos);
  EXPECT_FALSE(parser.feed({}, collector));
  EXPECT_FALSE(parser.finish());
  EXPECT_TRUE(collector.headers.empty());
}

TEST(FrameParser, StopsWhenTheSinkRefuses) {
  const std::vector<std::byte> frame = encode_any(Ping{}, {}, {});
  Collector no_frames;
  no_frames.refuse_frames = true;
  FrameParser first(Lane::kControl);
  EXPECT_EQ(first.feed(frame, no_frames).error().sentence(), "the sink wants no frames");
  EXPECT_TRUE(no_frames.pieces.empty());

  Collector no_payload;
  no_payload.refuse_payload = true;
  FrameParser second(Lane::kControl);
  EXPECT_EQ(second.feed(frame, no_payload).error().sentence(), "the sink wants no payload");
  EXPECT_FALSE(second.feed(frame, no_payload));
  EXPECT_EQ(no_payload.pieces.size(), 1u);
}

TEST(FrameParser, SaysWhereAStreamEndedThatIsNotWhole) {
  const std::vector<std::byte> frame = encode_any(Ping{}, {}, {});
  Collector collector;
  FrameParser in_header(Lane::kControl);
  EXPECT_TRUE(in_header.finish());
  ASSERT_TRUE(in_header.feed(base::ByteView(frame).first(11), collector));
  EXPECT_EQ(in_header.finish().error().sentence(), "the control lane ended after 11 bytes of a header");
  FrameParser in_payload(Lane::kControl);
  ASSERT_TRUE(in_payload.feed(base::ByteView(frame).first(kHeaderBytes + 9), collector));
  EXPECT_EQ(in_payload.finish().error().sentence(), "the control lane ended 7 bytes before the end of a frame");
}

}  // namespace
}  // namespace nexar::wire
