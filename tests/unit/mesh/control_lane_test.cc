// Control frames that wait for another, by a clock that the test turns.
#include "mesh/control_lane.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "held_link.h"
#include "io/epoll_loop.h"
#include "io/turned_clock.h"
#include "mesh/incoming_transfers.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {
namespace {

class Discarding final : public TransferSink {
  void take(std::uint64_t, base::ByteView) override {}
};

class ControlLaneTest : public testing::Test {
 protected:
  ControlLaneTest() {
    lane_.begin(link_);
    loop_->turn(base::Duration::zero());
  }

  void pass(base::Duration time) {
    clock_.pass(time);
    loop_->turn(base::Duration::zero());
  }

  static wire::Watermark mark(std::uint64_t transfer) { return {.transfer = transfer, .bytes = 1, .final = true}; }

  // The transfers that the frames sent so far are about.
  std::vector<std::uint64_t> sent() const {
    std::vector<std::uint64_t> numbers;
    for (const wire::Header& header : link_.sent) numbers.push_back(header.id);
    return numbers;
  }

  using Numbers = std::vector<std::uint64_t>;
  test::TurnedClock clock_;
  std::unique_ptr<io::EpollLoop> loop_ = io::EpollLoop::open(clock_).value();
  HeldLink link_;
  ControlLane lane_{1, loop_.get()};
};

TEST_F(ControlLaneTest, AFrameThatWaitsLeavesBeforeTheNext) {
  lane_.send_with_next(mark(1), 0);
  lane_.send_with_next(mark(2), 0);
  EXPECT_EQ(sent(), Numbers{});
  lane_.send(mark(3), 0);
  EXPECT_EQ(sent(), (Numbers{1, 2, 3}));
  pass(2 * kControlHeldFor);
  EXPECT_EQ(sent(), (Numbers{1, 2, 3})) << "each once";
}

TEST_F(ControlLaneTest, AloneItLeavesInTime) {
  lane_.send_with_next(mark(1), 0);
  pass(kControlHeldFor - std::chrono::microseconds(1));
  EXPECT_EQ(sent(), Numbers{});
  pass(std::chrono::microseconds(1));
  EXPECT_EQ(sent(), Numbers{1});
}

TEST_F(ControlLaneTest, EachWaitsItsOwnTime) {
  lane_.send_with_next(mark(1), 0);
  pass(kControlHeldFor / 2);
  lane_.send(mark(2), 0);
  lane_.send_with_next(mark(3), 0);
  pass(kControlHeldFor - std::chrono::microseconds(1));
  EXPECT_EQ(sent(), (Numbers{1, 2}));
  pass(std::chrono::microseconds(1));
  EXPECT_EQ(sent(), (Numbers{1, 2, 3}));
}

TEST_F(ControlLaneTest, OnlySoManyWait) {
  Numbers all;
  for (std::uint64_t number = 1; number < kControlHeldMax; ++number) {
    lane_.send_with_next(mark(number), 0);
    all.push_back(number);
  }
  EXPECT_EQ(sent(), Numbers{});
  lane_.send_with_next(mark(kControlHeldMax), 0);
  all.push_back(kControlHeldMax);
  EXPECT_EQ(sent(), all);
}

TEST_F(ControlLaneTest, NothingIsKeptBackWhenTheLinkIsLeft) {
  lane_.send_with_next(mark(1), 0);
  EXPECT_TRUE(lane_.flush());
  EXPECT_EQ(sent(), Numbers{1});
  link_.full = true;
  lane_.send_with_next(mark(2), 0);
  EXPECT_FALSE(lane_.flush()) << "there is no room for it";
  link_.full = false;
  EXPECT_TRUE(lane_.drain());
  EXPECT_EQ(sent(), (Numbers{1, 2}));
}

TEST_F(ControlLaneTest, WhatWaitsForALinkThatEndsGoesNowhere) {
  lane_.send_with_next(mark(1), 0);
  lane_.end();
  pass(2 * kControlHeldFor);
  EXPECT_EQ(sent(), Numbers{});
}

TEST_F(ControlLaneTest, WithoutALoopNothingWaits) {
  ControlLane lane(1);
  lane.begin(link_);
  lane.send_with_next(mark(1), 0);
  EXPECT_EQ(sent(), Numbers{1});
}

// Of a collective's two messages from one peer the first one's last watermark goes with the second's; of other messages each at once.
TEST_F(ControlLaneTest, WatermarksOfACollectiveLeaveTogether) {
  constexpr WayNumber kLane = 7;
  for (const auto& [way, kind, bytes, wait] : {std::tuple{kLane, wire::Kind::kCollective, std::uint64_t{256}, true},
                                               {kLinkWay, wire::Kind::kCollective, std::uint64_t{256}, false},
                                               {kLane, wire::Kind::kCollective, kHeldWatermarkBytesMax + 1, false},
                                               {kLane, wire::Kind::kPointToPoint, std::uint64_t{256}, false}}) {
    Discarding sink;
    int done = 0;
    IncomingTransfers transfers(1, lane_);
    IncomingTransfers::Arrivals arrivals(transfers, way);
    const IncomingTransfer incoming{.owner = {5, kind, 9}, .bytes = bytes, .sink = &sink, .done = [&](const Result<void>&) { ++done; }};
    const std::uint64_t first = transfers.grant_ahead({9, 0, 1}, incoming);
    const std::uint64_t second = transfers.grant_ahead({9, 1, 1}, incoming);
    link_.sent.clear();
    const std::vector<std::byte> payload(static_cast<std::size_t>(bytes));
    const auto arrive = [&](std::uint64_t transfer) {
      const wire::Header header = wire::header_of(wire::Bulk{.transfer = transfer}, {5, 1}, static_cast<std::uint32_t>(bytes));
      transport::Sink* to = arrivals.on_frame(header).value();
      to->take(payload);
      ASSERT_TRUE(arrivals.on_frame_end(header));
    };
    arrive(first);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(sent(), wait ? Numbers{} : Numbers{first});
    arrive(second);
    EXPECT_EQ(sent(), (Numbers{first, second}));
  }
}

}  // namespace
}  // namespace nexar::mesh
