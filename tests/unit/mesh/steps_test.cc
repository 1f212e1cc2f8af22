// Messages of collectives over a link that a test holds in its hand: matching, credit, and what is drained.
#include "mesh/steps.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "mesh/held_link.h"
#include "mesh/mesh.h"

namespace nexar::mesh {
namespace {

constexpr GroupId kGroup = 1;
constexpr std::uint64_t kFingerprint = 77;

class StepsTest : public testing::Test, protected StepOwner {
 protected:
  static constexpr EagerLimits kLimits = {.bytes = 1000, .messages = 3, .announcements = 2};

  StepsTest() : mesh(0, 2, 1, {[](Rank) {}, [](Rank, const transport::LinkEnd&) {}, {}}, kLimits), steps(mesh.steps()) {
    mesh.attach(1, link, kLimits);
    mesh.handler(1).on_ready();
  }

  StepOperation& enter(StepOperation& operation, Sequence sequence) {
    operation.group = kGroup;
    operation.sequence = sequence;
    operation.fingerprint = kFingerprint;
    operation.owner = this;
    steps.enter(operation);
    return operation;
  }

  StepSend make_send(std::uint32_t part) {
    StepSend send;
    send.peer = 1;
    send.part = part;
    send.data = {&content, 1};
    return send;
  }
  StepReceive make_receive(std::uint32_t part) {
    StepReceive receive;
    receive.peer = 1;
    receive.part = part;
    receive.bytes = 1;
    return receive;
  }

  // What the peer sends.
  template <typename M>
  Result<void> receive(const M& message) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {.group = kGroup, .epoch = 1}, frame));
    return receive(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
  }
  Result<void> receive_step(Sequence sequence, std::uint32_t part, std::uint64_t fingerprint = kFingerprint, GroupId group = kGroup) {
    const wire::EagerMessage message{.kind = wire::Kind::kCollective, .key = sequence, .step = part, .fingerprint = fingerprint};
    return receive(wire::header_of(message, {.group = group, .epoch = 1}, 1), {&content, 1});
  }

  std::size_t frames(wire::FrameType type) const {
    return static_cast<std::size_t>(
        std::count_if(link.sent.begin(), link.sent.end(), [&](const wire::Header& one) { return one.type == type; }));
  }

  std::byte content{};
  HeldLink link;
  Mesh mesh;
  Steps& steps;
  std::vector<std::uint32_t> sent;      // parts
  std::vector<std::uint32_t> received;  // parts
  std::size_t disagreements = 0;

 private:
  Result<void> receive(const wire::Header& header, base::ByteView payload) {
    Result<transport::Sink*> sink = mesh.handler(1).on_frame(header);
    if (!sink) return std::move(sink).error();
    if (*sink != nullptr && !payload.empty()) (*sink)->take(payload);
    return mesh.handler(1).on_frame_end(header);
  }

  void take(StepReceive&, std::uint64_t, base::ByteView) override {}
  void on_sent(StepSend& send) override { sent.push_back(send.part); }
  void on_received(StepReceive& one) override { received.push_back(one.part); }
  void on_progress() override {}
  void on_disagreement(Rank) override { ++disagreements; }
  void on_other_size(Rank, std::uint64_t, std::uint64_t) override {}
  void on_failed(const Error&) override {}
};

TEST_F(StepsTest, ThatComeEarlyAreKeptUnderTheCreditAndNoMore) {
  for (std::uint32_t part = 0; part < 3; ++part) ASSERT_TRUE(receive_step(1, part));
  EXPECT_EQ(steps.kept(), 3u);
  const Result<void> beyond = receive_step(2, 0);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), ErrorCode::kRefused);
}

TEST_F(StepsTest, ThatAreOverLeaveABoundedNumberForTheNext) {
  constexpr GroupId kGroups = kSpareStepsMax + 10;
  for (GroupId group = 1; group <= kGroups; ++group) ASSERT_TRUE(receive_step(1, 0, kFingerprint, group));
  EXPECT_EQ(steps.kept(), kGroups);
  for (GroupId group = 1; group <= kGroups; ++group) steps.skip(group, 1);
  EXPECT_EQ(steps.kept(), 0u);
  EXPECT_EQ(steps.spare(), kSpareStepsMax);
  ASSERT_TRUE(receive_step(2, 0));
  EXPECT_EQ(steps.spare(), kSpareStepsMax - 1) << "it is used again";
}

TEST_F(StepsTest, ThatAPeerAsksForAreRememberedInABoundedNumber) {
  const auto want = [&](Sequence sequence, std::uint32_t part) {
    return receive(wire::Want{.kind = wire::Kind::kCollective, .key = sequence, .step = part});
  };
  // Those of an operation that is over make way, however many there were.
  for (std::uint32_t part = 0; part < kWantsMax; ++part) ASSERT_TRUE(want(1, part));
  StepOperation over;
  steps.leave(enter(over, 1));
  for (std::uint32_t part = 0; part < kWantsMax; ++part) ASSERT_TRUE(want(2, part));
  const Result<void> beyond = want(3, 0);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), ErrorCode::kRefused);
  EXPECT_NE(beyond.error().sentence().find("asks for more than"), std::string::npos) << beyond.error().sentence();
}

TEST_F(StepsTest, OfAnOperationThatIsOverAreDrained) {
  ASSERT_TRUE(receive_step(1, 0));
  StepOperation operation;
  steps.leave(enter(operation, 1));
  EXPECT_EQ(steps.kept(), 0u);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(receive_step(1, 5)) << "their credit is given back";
  EXPECT_EQ(steps.kept(), 0u);
  EXPECT_GE(frames(wire::FrameType::kCredit), 5u);
}

TEST_F(StepsTest, OfAnotherCallAreNeverDelivered) {
  StepOperation operation;
  enter(operation, 1);
  StepReceive posted = make_receive(0);
  steps.receive(operation, posted);
  ASSERT_TRUE(receive_step(1, 0, kFingerprint + 1));
  EXPECT_EQ(disagreements, 1u);
  EXPECT_TRUE(received.empty());
  ASSERT_TRUE(receive_step(1, 0));
  EXPECT_EQ(received, std::vector<std::uint32_t>{0});
  steps.leave(operation);
}

// Early messages of a later operation have used the whole credit; of the one that runs, message after message is asked for.
TEST_F(StepsTest, ThatAreAskedForComeBeyondTheCreditOneAfterTheOther) {
  for (std::uint32_t part = 0; part < 3; ++part) ASSERT_TRUE(receive_step(2, part));
  ASSERT_TRUE(receive(wire::Queued{.kind = wire::Kind::kCollective, .messages = 1}));
  StepOperation operation;
  enter(operation, 1);
  for (std::uint32_t part = 0; part < 20; ++part) {
    StepReceive posted = make_receive(part);
    steps.receive(operation, posted);
    ASSERT_EQ(frames(wire::FrameType::kWant), part + 1);
    const Result<void> came = receive_step(1, part);
    ASSERT_TRUE(came) << came.error().to_string();
    ASSERT_EQ(received.size(), part + 1);
  }
  EXPECT_FALSE(receive_step(3, 0)) << "nobody asked for that one";
  steps.leave(operation);
}

TEST_F(StepsTest, WaitWithoutCreditAndGoWhenTheyAreAskedFor) {
  StepOperation operation;
  enter(operation, 1);
  std::vector<StepSend> sends;
  for (std::uint32_t part = 0; part < 6; ++part) sends.push_back(make_send(part));
  for (StepSend& send : sends) steps.send(operation, send);
  EXPECT_EQ(sent, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(frames(wire::FrameType::kQueued), 1u);
  ASSERT_TRUE(receive(wire::Want{.kind = wire::Kind::kCollective, .key = 1, .step = 5}));
  EXPECT_EQ(sent.back(), 5u);
  ASSERT_TRUE(receive(wire::Credit{.kind = wire::Kind::kCollective, .bytes = 10, .messages = 10}));
  EXPECT_EQ(sent, (std::vector<std::uint32_t>{0, 1, 2, 5, 3, 4}));
  steps.leave(operation);
}

TEST_F(StepsTest, ThatWereAskedForAndFoundNoRoomGoWhenThereIsSome) {
  StepOperation operation;
  enter(operation, 1);
  std::vector<StepSend> sends;
  for (std::uint32_t part = 0; part < 6; ++part) sends.push_back(make_send(part));
  for (StepSend& send : sends) steps.send(operation, send);
  link.full = true;
  ASSERT_TRUE(receive(wire::Want{.kind = wire::Kind::kCollective, .key = 1, .step = 4}));
  EXPECT_EQ(sent.size(), 3u);
  link.full = false;
  mesh.handler(1).on_room(wire::Lane::kData);
  EXPECT_EQ(sent, (std::vector<std::uint32_t>{0, 1, 2, 4}));
  steps.leave(operation);
}

}  // namespace
}  // namespace nexar::mesh
