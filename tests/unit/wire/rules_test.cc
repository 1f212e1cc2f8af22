// What single messages refuse, and what they compute.
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "wire/any_message.h"

namespace nexar::wire {
namespace {

constexpr std::uint64_t kU64 = std::numeric_limits<std::uint64_t>::max();

Hello hello() {
  Hello hello{.plan_version = 4, .config_digest = 0xabc};
  hello.node.bytes.fill(std::byte{0x0f});
  return hello;
}

TEST(Hello, OfOneKindAreCompatible) {
  Hello theirs = hello();
  theirs.node.bytes.fill(std::byte{1});
  theirs.features = 99;
  theirs.eager_bytes = 5;
  EXPECT_TRUE(check_compatible(hello(), theirs));
}

TEST(Hello, ThatDifferAreRefusedNamingBoth) {
  const auto refusal = [](auto change) {
    Hello theirs = hello();
    change(theirs);
    const Result<void> checked = check_compatible(hello(), theirs);
    return checked ? std::string("compatible") : checked.error().to_string();
  };
  const std::string who = "refused: node 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f has ";
  EXPECT_EQ(refusal([](Hello& h) { h.wire_version = 2; }), who + "wire version 2, this node has 1");
  EXPECT_EQ(refusal([](Hello& h) { h.plan_version = 5; }), who + "plan version 5, this node has 4");
  EXPECT_EQ(refusal([](Hello& h) { h.cluster.bytes[15] = std::byte{1}; }),
            who + "cluster 00000000000000000000000000000001, this node has 00000000000000000000000000000000");
  EXPECT_EQ(refusal([](Hello& h) { h.config_digest = 1; }), who + "configuration digest 0000000000000001, this node has 0000000000000abc");
}

TEST(Grant, CutsItsBytesIntoStripesOfWholeFrames) {
  Grant grant{.transfer = 1, .offset = 1000, .bytes = 5 * kBulkBytes + 7, .stripes = 4};  // six frames: 2, 2, 1, 1
  EXPECT_EQ(grant.stripe(0), (ByteRange{1000, 1000 + 2 * kBulkBytes}));
  EXPECT_EQ(grant.stripe(1), (ByteRange{1000 + 2 * kBulkBytes, 1000 + 4 * kBulkBytes}));
  EXPECT_EQ(grant.stripe(2), (ByteRange{1000 + 4 * kBulkBytes, 1000 + 5 * kBulkBytes}));
  EXPECT_EQ(grant.stripe(3), (ByteRange{1000 + 5 * kBulkBytes, 1000 + 5 * kBulkBytes + 7}));
}

TEST(Grant, StripesCoverEveryByteOnce) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{kBulkBytes}, std::uint64_t{kBulkBytes} + 1,
                                    std::uint64_t{64} * kBulkBytes, std::uint64_t{1} << 40, kU64 - 3})
    for (std::uint16_t stripes = 1; stripes <= kStripesMax; ++stripes) {
      const Grant grant{.transfer = 1, .offset = 3, .bytes = bytes, .stripes = stripes};
      ASSERT_EQ(grant.fault(), nullptr);
      std::uint64_t at = 3;
      for (std::uint16_t i = 0; i < stripes; ++i) {
        ASSERT_EQ(grant.stripe(i).begin, at);
        ASSERT_GE(grant.stripe(i).end, at);
        at = grant.stripe(i).end;
      }
      ASSERT_EQ(at, 3 + bytes);
    }
}

TEST(Grant, OutsideItsBoundsIsAtFault) {
  const Grant good{.transfer = 1, .offset = 1, .bytes = kU64 - 1};
  EXPECT_EQ(good.fault(), nullptr);
  const auto faulty = [&](auto change) {
    Grant grant = good;
    change(grant);
    EXPECT_NE(grant.fault(), nullptr);
  };
  faulty([](Grant& grant) { grant.offset = 2; });
  faulty([](Grant& grant) { grant.stripes = 0; });
  faulty([](Grant& grant) { grant.stripes = kStripesMax + 1; });
  faulty([](Grant& grant) { grant.transfer = 0; });
  faulty([](Grant& grant) { grant.transfer = kChosenByReceiver | 1; });
  faulty([](Grant& grant) { grant.fingerprint = 1; });
  faulty([](Grant& grant) { grant.ahead = true; });
  faulty([](Grant& grant) { grant = {.transfer = 1, .ahead = true, .fingerprint = 1}; });
  EXPECT_EQ((Grant{.transfer = kChosenByReceiver | 1, .ahead = true, .fingerprint = 1}.fault()), nullptr);
}

TEST(Announce, NeverUsesANumberOfTheReceivers) {
  EXPECT_EQ((Announce{.transfer = 1}.fault()), nullptr);
  EXPECT_NE((Announce{.transfer = kChosenByReceiver | 1}.fault()), nullptr);
  EXPECT_NE((Announce{.transfer = 0}.fault()), nullptr);
}

TEST(EagerMessage, OfACollectiveHasAFingerprintAndNoOtherHas) {
  EXPECT_NE((EagerMessage{.kind = Kind::kCollective}.fault()), nullptr);
  EXPECT_EQ((EagerMessage{.kind = Kind::kCollective, .fingerprint = 1}.fault()), nullptr);
  EXPECT_NE((EagerMessage{.fingerprint = 1}.fault()), nullptr);
  EXPECT_NE((EagerMessage{.step = 1}.fault()), nullptr);
}

TEST(FrameRules, UrgentIsWhatSomebodyMayWaitFor) {
  for (int number = 0; number < 256; ++number) {
    const FrameRules* rules = find_rules(static_cast<std::uint8_t>(number));
    if (rules == nullptr) continue;
    const bool expected = rules->lane == Lane::kRpc || rules->type == FrameType::kPing || rules->type == FrameType::kPong ||
                          rules->type == FrameType::kMessage;
    EXPECT_EQ(rules->urgent, expected) << rules->name;
  }
}

TEST(Want, OfAnyTagNamesNone) {
  EXPECT_EQ((Want{.any_tag = true}.fault()), nullptr);
  EXPECT_NE((Want{.any_tag = true, .key = 1}.fault()), nullptr);
  EXPECT_NE((Want{.kind = Kind::kCollective, .any_tag = true}.fault()), nullptr);
  EXPECT_NE((Want{.step = 1}.fault()), nullptr);
}

TEST(Bulk, StaysWithinStripesAndBytesThatCanBe) {
  EXPECT_EQ((Bulk{.transfer = 1, .stripe = kStripesMax - 1, .offset = kU64 - kBulkBytesMax}.fault()), nullptr);
  EXPECT_NE((Bulk{.transfer = 1, .stripe = kStripesMax}.fault()), nullptr);
  EXPECT_NE((Bulk{.transfer = 1, .offset = kU64 - kBulkBytesMax + 1}.fault()), nullptr);
  EXPECT_NE((Bulk{}.fault()), nullptr);
  EXPECT_NE((Watermark{.transfer = 1, .stripe = kStripesMax}.fault()), nullptr);
  EXPECT_NE((Resume{.transfer = 1, .stripe = kStripesMax}.fault()), nullptr);
  EXPECT_NE((Withdraw{}.fault()), nullptr);
}

TEST(Bulk, WithAStripeThatDoesNotFitIsRefusedAndNotWrapped) {
  const Result<Bulk> bulk = read_header<Bulk>({.type = FrameType::kBulk, .length = 1, .part = 0x10000, .id = 1});
  ASSERT_FALSE(bulk);
  EXPECT_EQ(bulk.error().to_string(), "refused: a bulk frame names a stripe past the last possible one");
}

TEST(Reasons, ThatDoNotExistAreFaults) {
  EXPECT_NE((Goodbye{.reason = static_cast<GoodbyeReason>(5), .text = {}}.fault()), nullptr);
  EXPECT_NE((Refuse{.transfer = 1, .reason = static_cast<RefuseReason>(3)}.fault()), nullptr);
  RpcFailure failure;
  EXPECT_EQ(failure.fault(), nullptr);
  failure.status = static_cast<RpcStatus>(0);
  EXPECT_NE(failure.fault(), nullptr);
  failure.status = static_cast<RpcStatus>(7);
  EXPECT_NE(failure.fault(), nullptr);
}

TEST(ProbeReply, DescribesACallThatRunsAndNoneThatWasNotEntered) {
  EXPECT_EQ((ProbeReply{}.fault()), nullptr);
  EXPECT_NE((ProbeReply{.call = CallDescriptor{}}.fault()), nullptr);
  EXPECT_NE((ProbeReply{.state = OperationState::kRunning}.fault()), nullptr);
  EXPECT_EQ((ProbeReply{.state = OperationState::kRunning, .call = CallDescriptor{}}.fault()), nullptr);
  EXPECT_NE((ProbeReply{.state = OperationState::kRunning, .call = CallDescriptor{.count = 1}}.fault()), nullptr);
  EXPECT_EQ((ProbeReply{.state = OperationState::kDone}.fault()), nullptr);
  EXPECT_NE((ProbeReply{.state = static_cast<OperationState>(4)}.fault()), nullptr);
  EXPECT_NE((ProbeReply{.progress = {.steps_done = 2, .steps_total = 1}}.fault()), nullptr);
  EXPECT_NE((ProbeReply{.progress = {.waits_for = -2}}.fault()), nullptr);
}

TEST(Revoke, NamesAtLeastOneNodeAndAtMostTheBound) {
  EXPECT_NE(Revoke{}.fault(), nullptr);
  EXPECT_EQ(Revoke{std::vector<NodeId>(kLostNodesMax)}.fault(), nullptr);
  EXPECT_NE(Revoke{std::vector<NodeId>(kLostNodesMax + 1)}.fault(), nullptr);
}

TEST(Rpc, LargeOnesNameATransferOfTheSenders) {
  EXPECT_EQ((RpcLargeRequest{.transfer = 1}.fault()), nullptr);
  EXPECT_NE((RpcLargeRequest{.transfer = kChosenByReceiver | 1}.fault()), nullptr);
  EXPECT_NE((RpcLargeReply{}.fault()), nullptr);
}

TEST(Info, IsOfRanksStatesAndWaysThatExist) {
  EXPECT_EQ((InfoAnswer{.rank = -1}.fault()), nullptr);
  EXPECT_NE((InfoAnswer{.rank = -2}.fault()), nullptr);
  EXPECT_NE((InfoAnswer{.peers = kWorldMax}.fault()), nullptr);
  EXPECT_EQ(InfoPeer{}.fault(), nullptr);
  EXPECT_NE((InfoPeer{.rank = -1}.fault()), nullptr);
  EXPECT_NE((InfoPeer{.state = static_cast<InfoPeer::State>(0)}.fault()), nullptr);
  EXPECT_NE((InfoPeer{.state = static_cast<InfoPeer::State>(4)}.fault()), nullptr);
  EXPECT_NE((InfoPeer{.link = InfoPeer::Way::kTcp}.fault()), nullptr);
  EXPECT_NE((InfoPeer{.bulk = static_cast<InfoPeer::Way>(4)}.fault()), nullptr);
  EXPECT_NE((InfoPeer{.tcp_lanes = kTcpLanesMax + 1}.fault()), nullptr);
}

TEST(FrameDeathTest, AMessageThatBreaksItsRulesIsNotSent) {
  EXPECT_DEATH(encode_any(Withdraw{}, {}, {}), "a message that is sent keeps its own rules");
  EXPECT_DEATH(encode_any(Ping{}, {.group = 1}, {}), "a header keeps to the rules of its type");
  EXPECT_DEATH(encode_any(EagerMessage{}, {}, std::vector<std::byte>(kEagerBytesMax + 1)), "a header keeps to the rules of its type");
}

TEST(JoinRequest, WithASetOfCoresOfAnotherFormIsRefused) {
  constexpr std::size_t kCoresAt = kHeaderBytes + 2 + 2 + 4 + 8 + 16;  // of join_request: after versions, rank, digest and host
  JoinRequest request;
  request.cores = {0, 8};
  const std::vector<std::byte> frame = encode_any(request, {}, {});
  ASSERT_EQ(frame[kCoresAt], std::byte{2});
  const auto with = [&](std::vector<std::byte> cores) {
    std::vector<std::byte> changed(frame.begin(), frame.begin() + kCoresAt);
    changed.push_back(static_cast<std::byte>(cores.size()));
    changed.insert(changed.end(), cores.begin(), cores.end());
    changed.insert(changed.end(), frame.begin() + kCoresAt + 3, frame.end());
    Header header = *decode_header(frame);
    const base::ByteView payload = base::ByteView(changed).subspan(kHeaderBytes);
    header.length = static_cast<std::uint32_t>(payload.size());
    return decode_frame<JoinRequest>(header, payload);
  };
  EXPECT_EQ(with({std::byte{1}, std::byte{1}}).value().cores, CoreSet({0, 8}));
  EXPECT_FALSE(with({std::byte{1}, std::byte{0}}));
  EXPECT_FALSE(with({std::byte{0}}));
  EXPECT_FALSE(with(std::vector(CoreSet::kBytesMax + 1, std::byte{1})));
  EXPECT_TRUE(with({}));
}

}  // namespace
}  // namespace nexar::wire
