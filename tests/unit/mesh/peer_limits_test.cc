// What a peer may make us keep, and what happens when it goes beyond: every limit is reached here, over a link that a test holds in its
// hand.
#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include "mesh/held_link.h"
#include "mesh/mesh.h"

namespace nexar::mesh {
namespace {

class PeerLimitsTest : public testing::Test {
 protected:
  explicit PeerLimitsTest(const EagerLimits& limits = {.bytes = 1000, .messages = 3, .announcements = 2})
      : mesh(0, 2, 1, {[](Rank) {}, [](Rank, const transport::LinkEnd&) {}, {}}, limits) {
    mesh.attach(1, link, limits);
    mesh.handler(1).on_ready();
  }

  // A frame that the peer sends, with its payload in one piece.
  template <typename M>
  Result<void> receive(const M& message, GroupId group = 1) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {.group = group, .epoch = 1}, frame));
    return receive(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
  }
  Result<void> receive(const wire::Header& header, base::ByteView payload) {
    Result<transport::Sink*> sink = mesh.handler(1).on_frame(header);
    if (!sink) return std::move(sink).error();
    if (*sink != nullptr && !payload.empty()) (*sink)->take(payload);
    return mesh.handler(1).on_frame_end(header);
  }
  Result<void> receive_eager(Tag tag, std::size_t bytes, GroupId group = 1) {
    const std::vector<std::byte> payload(bytes);
    return receive(wire::header_of(wire::EagerMessage{.key = tag}, {.group = group, .epoch = 1}, static_cast<std::uint32_t>(bytes)),
                   payload);
  }
  Result<void> receive_step(Sequence sequence, GroupId group) {
    const wire::EagerMessage message{.kind = wire::Kind::kCollective, .key = sequence, .fingerprint = 1};
    return receive(wire::header_of(message, {.group = group, .epoch = 1}, 0), base::ByteView());
  }

  Send& post_send(Tag tag) {
    Send& send = sends.emplace_back();
    send.group = 1;
    send.peer = 1;
    send.tag = tag;
    send.done = [](const Result<void>&) {};
    mesh.send(send);
    return send;
  }

  void expect_refused(const Result<void>& result, const std::string& says) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kRefused);
    EXPECT_NE(result.error().sentence().find("rank 1"), std::string::npos) << result.error().sentence();
    EXPECT_NE(result.error().sentence().find(says), std::string::npos) << result.error().sentence();
  }

  HeldLink link;
  Mesh mesh;
  std::deque<Send> sends;
};

TEST_F(PeerLimitsTest, MoreMessagesThanItsCreditEndAPeer) {
  for (Tag tag = 0; tag < 3; ++tag) ASSERT_TRUE(receive_eager(tag, 1));
  expect_refused(receive_eager(9, 1), "more than its credit");
}

TEST_F(PeerLimitsTest, MoreBytesThanItsCreditEndAPeer) {
  ASSERT_TRUE(receive_eager(1, 600));
  expect_refused(receive_eager(2, 600), "more than its credit");
}

TEST_F(PeerLimitsTest, MoreAnnouncementsThanItMayEndAPeer) {
  for (std::uint64_t transfer = 1; transfer <= 2; ++transfer)
    ASSERT_TRUE(receive(wire::Announce{.key = 1, .transfer = transfer, .bytes = 1u << 30}));
  expect_refused(receive(wire::Announce{.key = 1, .transfer = 3, .bytes = 1}), "announced more than 2");
}

// Whatever keeps something for a group that this node does not have, counts, and a group counts once.
TEST_F(PeerLimitsTest, MoreGroupsThanAnybodyMakesAtOnceEndAPeer) {
  std::uint64_t transfer = 0;
  const auto name_in_every_way = [&](GroupId group) {
    ++transfer;
    return std::vector{
        receive_eager(1, 0, group),
        receive(wire::Announce{.key = 1, .transfer = transfer, .bytes = 1}, group),
        receive(wire::Queued{.messages = 1}, group),
        receive_step(1, group),
        receive(wire::Queued{.kind = wire::Kind::kCollective, .messages = 1}, group),
        receive(wire::Want{.kind = wire::Kind::kCollective, .key = 1}, group),
        receive(wire::Grant{.transfer = wire::kChosenByReceiver | transfer, .bytes = 1, .ahead = true, .sequence = 1, .fingerprint = 1},
                group)};
  };
  for (GroupId group = 1000; group < 1000 + wire::kEarlyGroupsMax; ++group)
    for (const Result<void>& one : name_in_every_way(group)) ASSERT_TRUE(one) << one.error().to_string();
  for (const Result<void>& one : name_in_every_way(5)) expect_refused(one, "groups that are not known here");
  EXPECT_TRUE(receive(wire::Credit{.bytes = 1, .messages = 1}, 5)) << "nothing is kept for it";
  EXPECT_TRUE(receive(wire::Credit{.kind = wire::Kind::kCollective, .bytes = 1, .messages = 1}, 5));
  EXPECT_TRUE(receive(wire::Want{.key = 1}, 5));

  mesh.steps().add_group(1000);
  EXPECT_TRUE(receive_eager(1, 0, 5)) << "one of them is this node's own now";
  expect_refused(receive_eager(1, 0, 6), "groups that are not known here");
}

TEST_F(PeerLimitsTest, AnyNumberOfGroupsMayBeMadeOneAfterTheOther) {
  for (GroupId group = 1000; group < 1000 + 3 * wire::kEarlyGroupsMax; ++group) {
    ASSERT_TRUE(receive_eager(1, 0, group)) << "the peer was faster";
    ASSERT_TRUE(receive_step(1, group));
    mesh.steps().add_group(group);
    ASSERT_TRUE(receive_eager(2, 0, group));
    ASSERT_TRUE(receive_step(2, group));
  }
}

TEST_F(PeerLimitsTest, BulkThatWasNotGrantedIsDrainedAndBulkBeyondItsMessageEndsAPeer) {
  const std::vector<std::byte> bytes(100);
  const auto bulk = [&](std::uint64_t transfer, std::uint64_t offset) {
    return receive(wire::header_of(wire::Bulk{.transfer = transfer, .offset = offset}, {.group = 1, .epoch = 1}, 100), bytes);
  };
  EXPECT_TRUE(bulk(77, 0)) << "nobody asked for it, or no longer";

  std::vector<std::byte> buffer(150);
  Receive posted;
  posted.group = 1;
  posted.source = 1;
  posted.tag = 5;
  posted.regions = {{buffer.data(), buffer.size()}};
  posted.capacity = buffer.size();
  posted.done = [](const Result<Status>&) {};
  mesh.receive(posted);
  ASSERT_TRUE(receive(wire::Announce{.key = 5, .transfer = 1, .bytes = 150}));
  ASSERT_TRUE(bulk(1, 0));
  expect_refused(bulk(1, 100), "of a transfer that has 100 of 150");
  mesh.cancel(posted);
}

TEST_F(PeerLimitsTest, MoreWantsThanThereCanBeReceivesEndAPeer) {
  for (Tag tag = 0; tag < 20; ++tag) post_send(tag);  // three go, two are announced, the rest waits and the peer is told
  for (std::size_t i = 0; i < kWantsMax; ++i) ASSERT_TRUE(receive(wire::Want{.key = 1000 + i}));
  expect_refused(receive(wire::Want{.key = 1}), "asks for more than");
  for (Send& send : sends)
    if (send.state != Send::State::kIdle) mesh.cancel(send);
}

TEST_F(PeerLimitsTest, AMessageThatIsAskedForBeyondTheAnnouncementsMakesRoomForNoOthers) {
  for (Tag tag = 0; tag < 20; ++tag) post_send(tag);  // three go, two are announced, the rest waits
  const auto sent = [&](wire::FrameType type) {
    return std::count_if(link.sent.begin(), link.sent.end(), [&](const wire::Header& one) { return one.type == type; });
  };
  for (const Tag tag : {9u, 10u, 11u}) ASSERT_TRUE(receive(wire::Want{.key = tag}));
  EXPECT_EQ(sent(wire::FrameType::kAnnounce), 5);
  ASSERT_TRUE(receive(wire::Credit{.bytes = 10, .messages = 1}));
  EXPECT_EQ(sent(wire::FrameType::kMessage), 4) << "one more goes by the credit that came";
  EXPECT_EQ(sent(wire::FrameType::kAnnounce), 5) << "the peer keeps two, and those that it asked for";
  for (std::uint64_t transfer = 1; transfer <= 4; ++transfer) ASSERT_TRUE(receive(wire::Grant{.transfer = transfer}));
  EXPECT_EQ(sent(wire::FrameType::kAnnounce), 6) << "of five one is left";
  for (Send& send : sends)
    if (send.state != Send::State::kIdle) mesh.cancel(send);
}

TEST_F(PeerLimitsTest, AGrantOfOtherThanTheWholeMessageEndsAPeer) {
  for (Tag tag = 0; tag < 4; ++tag) post_send(tag);
  expect_refused(receive(wire::Grant{.transfer = 1, .bytes = 5}), "granted 5 bytes of a message of 0");
  for (Send& send : sends)
    if (send.state != Send::State::kIdle) mesh.cancel(send);
}

TEST_F(PeerLimitsTest, APeerThatReadsNoControlFramesIsGivenUp) {
  link.full = true;
  for (std::uint64_t nonce = 0; link.aborted.empty() && nonce < 1'000'000; ++nonce) mesh.ping(1, nonce, 0);
  EXPECT_EQ(link.aborted, "control frames are not read");
}

TEST_F(PeerLimitsTest, ControlFramesThatFoundNoRoomGoWhenThereIsSome) {
  link.full = true;
  for (std::uint64_t nonce = 0; nonce < 10; ++nonce) mesh.ping(1, nonce, 0);
  EXPECT_TRUE(link.sent.empty());
  link.full = false;
  mesh.handler(1).on_room(wire::Lane::kControl);
  EXPECT_EQ(link.sent.size(), 10u);
}

TEST_F(PeerLimitsTest, AWithdrawalMayOvertakeItsAnnouncementButNotWithoutEnd) {
  for (std::uint64_t transfer = 1; transfer <= kWithdrawnEarlyMax; ++transfer) ASSERT_TRUE(receive(wire::Withdraw{.transfer = transfer}));
  expect_refused(receive(wire::Withdraw{.transfer = kWithdrawnEarlyMax + 1}), "that it had not announced");
  ASSERT_TRUE(receive(wire::Announce{.key = 1, .transfer = 1, .bytes = 1}));
  EXPECT_EQ(mesh.matcher().arrivals(), 0u) << "it was taken back before it came";
}

TEST_F(PeerLimitsTest, AGoodbyeWaitsForControlFramesThatFoundNoRoom) {
  link.full = true;
  ASSERT_TRUE(receive(wire::Ping{.nonce = 1}, 0));
  mesh.leave("off I go");
  EXPECT_EQ(link.closed, "");
  link.full = false;
  mesh.handler(1).on_room(wire::Lane::kControl);
  ASSERT_EQ(link.sent.size(), 1u);
  EXPECT_EQ(link.sent[0].type, wire::FrameType::kPong);
  EXPECT_EQ(link.closed, "off I go");
}

TEST_F(PeerLimitsTest, AGoodbyeForAnyReasonButLeavingIsALoss) {
  const Result<void> result = receive(wire::Goodbye{.reason = wire::GoodbyeReason::kProtocol, .text = "a wrong frame"}, 0);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().sentence().find("a wrong frame"), std::string::npos);
}

TEST_F(PeerLimitsTest, AFrameThatNothingTakesEndsAPeer) { expect_refused(receive(wire::Hello{}, 0), "which nothing here takes"); }

}  // namespace
}  // namespace nexar::mesh
