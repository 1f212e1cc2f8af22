// Both halves of transfers, joined by ways that a test holds in its hand: it decides which frame arrives when, and which way dies where.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "mesh/incoming_transfers.h"
#include "mesh/outgoing_transfers.h"

namespace nexar::mesh {
namespace {

// Keeps the control frames that one end sends.
class ControlLink final : public transport::Link {
 public:
  struct Sent {
    wire::Header header;
    std::vector<std::byte> payload;
  };
  bool send(const wire::Header& header, base::ByteView payload) override {
    frames.push_back({header, {payload.begin(), payload.end()}});
    return true;
  }
  void set_bulk_source(transport::BulkSource*) override {}
  void bulk_ready() override {}
  void set_handler(transport::LinkHandler&) override {}
  using Link::close;
  void close(wire::GoodbyeReason, std::string_view) override {}
  void expel(std::string_view) override {}
  void abort(std::string_view) override {}
  const io::Address& peer_address() const override { return address_; }
  const crypto::Certificate* peer_certificate() const override { return nullptr; }
  Result<void> export_key(std::string_view, base::ByteView, base::ByteSpan) const override { return {}; }
  const transport::LaneCounters& counters(wire::Lane) const override { return counters_; }

  std::deque<Sent> frames;

 private:
  io::Address address_;
  transport::LaneCounters counters_;
};

// Adds every byte it takes to a count of that byte's arrivals, so that one that comes twice is seen; also checks how it is cut.
class AddingSink final : public TransferSink {
 public:
  explicit AddingSink(std::size_t bytes) : sums(bytes), times(bytes) {}
  void take(std::uint64_t offset, base::ByteView bytes) override {
    EXPECT_EQ(offset % kTransferAlignment, 0u);
    if (offset + bytes.size() != sums.size()) {
      EXPECT_EQ((offset + bytes.size()) % kTransferAlignment, 0u);
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      sums[offset + i] += static_cast<std::uint8_t>(bytes[i]);
      ++times[offset + i];
    }
  }
  std::vector<unsigned> sums;
  std::vector<unsigned> times;
};

// Stores, and names the memory half of the time.
class StoringSink final : public TransferSink {
 public:
  StoringSink(std::size_t bytes, std::mt19937_64& random) : memory(bytes), random_(random) {}
  void take(std::uint64_t offset, base::ByteView bytes) override { std::copy(bytes.begin(), bytes.end(), memory.begin() + long(offset)); }
  std::size_t place(std::uint64_t offset, std::size_t bytes, std::span<base::ByteSpan> regions) override {
    if (random_() % 2 == 0) return 0;
    regions[0] = base::ByteSpan(memory).subspan(static_cast<std::size_t>(offset), bytes);
    return 1;
  }
  std::vector<std::byte> memory;

 private:
  std::mt19937_64& random_;
};

// A way from the sender to the receiver; frames on it are copies, as in a socket, and come in pieces of any size.
struct TestWay {
  TestWay(std::vector<std::byte>& scratch, IncomingTransfers& to, WayNumber its_number)
      : way(1, scratch, [] {}), arrivals(to, its_number), number(its_number) {}

  bool pull() {
    const auto frame = way.next(wire::kBulkBytes);
    if (frame) flying.push_back({frame->header, {frame->payload.begin(), frame->payload.end()}});
    return frame.has_value();
  }

  BulkWay way;
  IncomingTransfers::Arrivals arrivals;
  WayNumber number;
  std::deque<ControlLink::Sent> flying;
  std::optional<Result<transport::Sink*>> sink;  // of the frame that is arriving
  std::size_t arrived = 0;                       // of its payload
};

class TransfersTest : public testing::Test {
 protected:
  TransfersTest() {
    sender_control.begin(sender_link);
    receiver_control.begin(receiver_link);
  }

  // Everything that the receiver said reaches the sender.
  void hear() {
    while (!receiver_link.frames.empty()) {
      const ControlLink::Sent frame = std::move(receiver_link.frames.front());
      receiver_link.frames.pop_front();
      switch (frame.header.type) {
        case wire::FrameType::kGrant: grants.push_back(*wire::decode_frame<wire::Grant>(frame.header, frame.payload)); break;
        case wire::FrameType::kWatermark:
          EXPECT_TRUE(outgoing.on_watermark(*wire::decode_frame<wire::Watermark>(frame.header, frame.payload)));
          break;
        case wire::FrameType::kResume:
          ++resumes;
          EXPECT_TRUE(outgoing.on_resume(*wire::decode_frame<wire::Resume>(frame.header, frame.payload)));
          break;
        case wire::FrameType::kRefuse: outgoing.on_refuse(*wire::decode_frame<wire::Refuse>(frame.header, frame.payload)); break;
        default: FAIL() << "an unexpected frame";
      }
    }
  }

  // The next piece of the front frame of a way.
  void arrive(TestWay& way, std::size_t most) {
    if (way.flying.empty()) return;
    ControlLink::Sent& frame = way.flying.front();
    if (!way.sink) way.sink = way.arrivals.on_frame(frame.header);
    ASSERT_TRUE(*way.sink) << way.sink->error().sentence();
    const std::size_t size = std::min(most, frame.payload.size() - way.arrived);
    const base::ByteView piece = base::ByteView(frame.payload).subspan(way.arrived, size);
    if (transport::Sink* to = **way.sink; to != nullptr) {
      std::array<base::ByteSpan, 1> place;
      if (to->place(size, place) == 1) {
        std::copy(piece.begin(), piece.end(), place[0].begin());
        to->placed(size);
      } else {
        to->take(piece);
      }
    }
    way.arrived += size;
    if (way.arrived < frame.payload.size()) return;
    ASSERT_TRUE(way.arrivals.on_frame_end(frame.header));
    way.sink.reset();
    way.arrived = 0;
    way.flying.pop_front();
  }

  TestWay& open_lane() {
    TestWay& lane = *lanes.emplace_back(std::make_unique<TestWay>(scratch, incoming, next_way++));
    outgoing.add_lane(lane.way);
    incoming.set_lanes(static_cast<std::uint16_t>(lanes.size()));
    return lane;
  }

  // Either end may be the first to notice.
  void kill_lane(std::size_t index, bool sender_first) {
    const std::unique_ptr<TestWay> lane = std::move(lanes[index]);
    lanes.erase(lanes.begin() + static_cast<std::ptrdiff_t>(index));
    incoming.set_lanes(static_cast<std::uint16_t>(lanes.size()));
    if (sender_first) outgoing.remove_lane(lane->way);
    incoming.way_ended(lane->number);
    if (!sender_first) outgoing.remove_lane(lane->way);
  }

  TestWay& any_way(std::mt19937_64& random) {
    const std::size_t which = random() % (lanes.size() + 1);
    return which == lanes.size() ? link_way : *lanes[which];
  }

  OutgoingTransfer sending(const std::vector<ConstRegion>& regions, std::optional<Result<void>>& result) {
    return {.owner = {.group = 1, .key = 7}, .regions = regions, .done = [&](Result<void> end) { result.emplace(std::move(end)); }};
  }
  IncomingTransfer receiving(std::size_t bytes, TransferSink& sink, std::optional<Result<void>>& result) {
    return {
        .owner = {.group = 1, .key = 7}, .bytes = bytes, .sink = &sink, .done = [&](Result<void> end) { result.emplace(std::move(end)); }};
  }

  ControlLink sender_link;
  ControlLink receiver_link;
  ControlLane sender_control{1};
  ControlLane receiver_control{1};
  std::vector<std::byte> scratch = std::vector<std::byte>(wire::kBulkBytesMax);
  IncomingTransfers incoming{0, receiver_control};
  TestWay link_way{scratch, incoming, 0};
  OutgoingTransfers outgoing{1, sender_control, link_way.way};
  std::vector<std::unique_ptr<TestWay>> lanes;
  WayNumber next_way = 1;
  std::vector<wire::Grant> grants;
  int resumes = 0;
  std::optional<Result<void>> sent;
  std::optional<Result<void>> received;
};

std::vector<std::byte> pattern(std::size_t size, std::mt19937_64& random) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Regions of uneven sizes, some empty, that together are `bytes`.
std::vector<ConstRegion> cut(const std::vector<std::byte>& bytes, std::mt19937_64& random) {
  std::vector<ConstRegion> regions;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(random() % 100000, bytes.size() - at);
    regions.push_back({bytes.data() + at, size});
    at += size;
  }
  return regions;
}

class LanesDie : public TransfersTest, public testing::WithParamInterface<int> {};

TEST_P(LanesDie, NoByteIsMissingAndNoneComesTwice) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  SCOPED_TRACE("repeat with --gtest_filter='*NoByteIsMissing*/" + std::to_string(GetParam()) + "'");
  const std::size_t size = 1 + random() % 1'500'000;
  const std::vector<std::byte> bytes = pattern(size, random);
  const std::vector<ConstRegion> regions = cut(bytes, random);
  const bool ahead = random() % 2 == 0;
  AddingSink adding(size);
  StoringSink storing(size, random);
  const bool adds = random() % 2 == 0;
  TransferSink& sink = adds ? static_cast<TransferSink&>(adding) : storing;
  const std::size_t first_lanes = random() % 4;
  for (std::size_t lane = 0; lane < first_lanes; ++lane) open_lane();

  std::uint64_t number = outgoing.take_number();
  if (ahead)
    number = incoming.grant_ahead({.sequence = 3, .step = 1, .fingerprint = 9}, receiving(size, sink, received));
  else
    incoming.grant(number, receiving(size, sink, received));
  hear();
  ASSERT_EQ(grants.size(), 1u);
  if (ahead) {
    ASSERT_TRUE(outgoing.keep_ahead(1, grants[0]));
  }
  bool begun = false;
  for (int steps = 0; !sent; ++steps) {
    ASSERT_LT(steps, 1'000'000) << "nothing moves any more";
    if (!begun && random() % 8 == 0) {
      begun = true;
      if (ahead)
        outgoing.begin_ahead(number, sending(regions, sent));
      else
        outgoing.begin(grants[0], sending(regions, sent));
    }
    switch (random() % 8) {
      case 0: hear(); break;
      case 1:
        if (begun || ahead)
          if (!lanes.empty() && random() % 4 == 0) kill_lane(random() % lanes.size(), random() % 2 == 0);
        break;
      case 2:
        if (lanes.size() < 4 && random() % 8 == 0) open_lane();
        break;
      case 3:
      case 4: any_way(random).pull(); break;
      default: arrive(any_way(random), random() % 3 == 0 ? random() % 200 + 1 : wire::kRecordBytesMax);
    }
  }
  ASSERT_TRUE(*sent) << sent->error().sentence();
  ASSERT_TRUE(received && *received);
  for (std::size_t i = 0; i < size; ++i) {
    if (adds) {
      ASSERT_EQ(adding.times[i], 1u) << "byte " << i << " of " << size;
      ASSERT_EQ(adding.sums[i], static_cast<unsigned>(bytes[i])) << "byte " << i << " of " << size;
    } else {
      ASSERT_EQ(storing.memory[i], bytes[i]) << "byte " << i << " of " << size;
    }
  }
  EXPECT_EQ(outgoing.open() + incoming.open(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LanesDie, testing::Range(0, 50));

TEST_F(TransfersTest, AResumeThatCannotBeIsRefused) {
  std::mt19937_64 random(1);
  const std::vector<std::byte> bytes = pattern(200'000, random);
  const std::vector<ConstRegion> regions{{bytes.data(), bytes.size()}};
  StoringSink sink(bytes.size(), random);
  incoming.grant(1, receiving(bytes.size(), sink, received));
  hear();
  outgoing.begin(grants[0], sending(regions, sent));
  ASSERT_TRUE(link_way.pull());
  EXPECT_FALSE(outgoing.on_resume({.transfer = 1, .generation = 0, .bytes = 0})) << "the same generation again";
  EXPECT_FALSE(outgoing.on_resume({.transfer = 1, .generation = 1, .bytes = 131072})) << "more than was sent";
  EXPECT_FALSE(outgoing.on_resume({.transfer = 1, .generation = 1, .bytes = 33})) << "in the middle of an element";
  EXPECT_TRUE(outgoing.on_resume({.transfer = 1, .generation = 1, .bytes = 65536}));
  EXPECT_TRUE(outgoing.on_resume({.transfer = 99, .generation = 1, .bytes = 0})) << "cancelled meanwhile";
  EXPECT_FALSE(outgoing.on_watermark({.transfer = 1, .generation = 1, .bytes = 200'000, .final = true})) << "of what was not sent";
}

TEST_F(TransfersTest, CancellingAtEitherEndTellsTheOther) {
  std::mt19937_64 random(1);
  const std::vector<std::byte> bytes = pattern(200'000, random);
  const std::vector<ConstRegion> regions{{bytes.data(), bytes.size()}};
  AddingSink sink(bytes.size());
  incoming.grant(1, receiving(bytes.size(), sink, received));
  hear();
  outgoing.begin(grants[0], sending(regions, sent));
  ASSERT_TRUE(link_way.pull());
  arrive(link_way, 1000);
  EXPECT_TRUE(incoming.cancel(1));
  EXPECT_FALSE(received) << "who cancels knows it";
  hear();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->error().code(), ErrorCode::kCancelled);
  EXPECT_FALSE(link_way.way.next(wire::kBulkBytes)) << "nothing of it is sent any more";
  arrive(link_way, 100'000);
  EXPECT_EQ(sink.times[500], 1u);
  EXPECT_EQ(sink.times[5000], 0u) << "the rest of the frame goes nowhere";

  sent.reset();
  const std::uint64_t number = incoming.grant_ahead({.sequence = 1, .step = 1, .fingerprint = 1}, receiving(bytes.size(), sink, received));
  hear();
  ASSERT_TRUE(outgoing.keep_ahead(1, grants[1]));
  EXPECT_FALSE(outgoing.keep_ahead(1, grants[1])) << "the same number again";
  outgoing.begin_ahead(number, sending(regions, sent));
  EXPECT_TRUE(outgoing.cancel(number));
  EXPECT_FALSE(sent);
  const ControlLink::Sent withdraw = sender_link.frames.back();
  EXPECT_TRUE(incoming.on_withdraw(*wire::decode_frame<wire::Withdraw>(withdraw.header, withdraw.payload)));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->error().code(), ErrorCode::kCancelled);
}

TEST_F(TransfersTest, GrantsAheadAreBounded) {
  wire::Grant grant{.bytes = 1, .ahead = true, .fingerprint = 1};
  for (std::uint64_t number = 1; number <= kGrantsAheadMax; ++number) {
    grant.transfer = number | wire::kChosenByReceiver;
    ASSERT_TRUE(outgoing.keep_ahead(1, grant));
  }
  grant.transfer = (kGrantsAheadMax + 1) | wire::kChosenByReceiver;
  const Result<void> more = outgoing.keep_ahead(1, grant);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::kRefused);
  outgoing.on_refuse({.transfer = 1 | wire::kChosenByReceiver});
  EXPECT_TRUE(outgoing.keep_ahead(1, grant));
}

}  // namespace
}  // namespace nexar::mesh
