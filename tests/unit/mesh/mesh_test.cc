// Meshes of two and three nodes over real QUIC on loopback.
#include "mesh/mesh.h"

#include <algorithm>
#include <deque>
#include <random>

#include "transport/quic_pair.h"

namespace nexar::mesh {
namespace {

using transport::test::QuicTest;

std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// A node: endpoint, mesh, and operations that remember how they ended.
struct TestNode : transport::quic::LinkAcceptor {
  TestNode(io::Loop& loop, const crypto::LocalAuthority& authority, Rank rank, int size, const EagerLimits& limits)
      : verifier(authority),
        mesh(rank, size, 1,
             {.ready = [this](Rank) { ++ready; },
              .lost = [this](Rank lost_rank, const transport::LinkEnd&) { lost.push_back(lost_rank); },
              .pong = [this](Rank, const wire::Pong&) { tell(pong); },
              .left = [this](Rank gone) { left.push_back(gone); },
              .verdict_due = [this] { return verdict_due; }},
             limits) {
    NodeId id;
    id.bytes[0] = static_cast<std::byte>(rank);
    const crypto::Identity identity = authority.make_node(id, io::real_clock().wall()).value();
    endpoint = transport::quic::Endpoint::open({loop, io::system_random()}, io::Address::loopback_v4(0), identity, verifier, *this).value();
  }

  transport::LinkHandler* on_link(transport::Link& link) override {
    const Rank rank = static_cast<Rank>(link.peer_certificate()->node().bytes[0]);
    mesh.attach(rank, link, mesh.limits());
    return &mesh.handler(rank);
  }

  struct SendOp {
    Send send;
    std::vector<std::byte> bytes;
    std::optional<Result<void>> result;
  };
  struct ReceiveOp {
    Receive receive;
    std::vector<std::byte> bytes;
    std::optional<Result<Status>> result;
  };

  SendOp& post_send(Rank to, Tag tag, std::vector<std::byte> bytes, GroupId group = 1) {
    SendOp& op = sends.emplace_back();
    op.bytes = std::move(bytes);
    op.send.group = group;
    op.send.peer = to;
    op.send.tag = tag;
    op.send.regions = {{op.bytes.data(), op.bytes.size()}};
    op.send.bytes = op.bytes.size();
    op.send.done = [&op](Result<void> result) { op.result.emplace(std::move(result)); };
    mesh.send(op.send);
    return op;
  }

  ReceiveOp& post_receive(Rank from, std::optional<Tag> tag, std::size_t capacity, GroupId group = 1) {
    ReceiveOp& op = receives.emplace_back();
    op.bytes.resize(capacity);
    op.receive.group = group;
    op.receive.source = from;
    op.receive.tag = tag;
    op.receive.regions = {{op.bytes.data(), op.bytes.size()}};
    op.receive.capacity = capacity;
    op.receive.done = [&op](Result<Status> result) { op.result.emplace(std::move(result)); };
    mesh.receive(op.receive);
    return op;
  }

  transport::test::Verifier verifier;
  int ready = 0;
  std::vector<Rank> lost;
  std::vector<Rank> left;
  bool verdict_due = false;
  std::function<void()> pong;
  Mesh mesh;
  std::unique_ptr<transport::quic::Endpoint> endpoint;
  std::deque<SendOp> sends;
  std::deque<ReceiveOp> receives;
};

class MeshTest : public QuicTest {
 protected:
  // A world of that many nodes, all linked.
  void make(int size, const EagerLimits& limits = {}) {
    for (Rank rank = 0; rank < size; ++rank) nodes.push_back(std::make_unique<TestNode>(*loop, authority, rank, size, limits));
    for (Rank from = 0; from < size; ++from)
      for (Rank to = from + 1; to < size; ++to) connect(from, to);
    run_until([&] { return std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) { return node->ready == size - 1; }); });
    for (const auto& node : nodes) ASSERT_EQ(node->ready, size - 1);
  }

  void connect(Rank from, Rank to) {
    TestNode& node = *nodes[static_cast<std::size_t>(from)];
    const io::Address address = nodes[static_cast<std::size_t>(to)]->endpoint->local_address();
    node.mesh.attach(to, **node.endpoint->connect(address, node.mesh.handler(to)), node.mesh.limits());
  }

  TestNode& node(std::size_t rank) { return *nodes[rank]; }

  std::vector<std::unique_ptr<TestNode>> nodes;
};

TEST_F(MeshTest, MessagesOfAnySizeArriveWhole) {
  make(2);
  for (const std::size_t size : {0, 1, 100, 65536, 65537, 1 << 20, (8 << 20) + 3}) {
    auto& receive = node(1).post_receive(0, 7, size + 10);
    auto& send = node(0).post_send(1, 7, pattern(size, size));
    run_until([&] { return send.result && receive.result; });
    ASSERT_TRUE(send.result && receive.result) << size;
    ASSERT_TRUE(*send.result) << send.result->error().to_string();
    ASSERT_TRUE(*receive.result) << receive.result->error().to_string();
    EXPECT_EQ(**receive.result, (Status{size, 0, 7}));
    receive.bytes.resize(size);
    EXPECT_TRUE(receive.bytes == send.bytes) << size;
  }
  EXPECT_EQ(node(1).mesh.matcher().arrivals() + node(1).mesh.matcher().posted(), 0u);
}

TEST_F(MeshTest, EqualTagsKeepTheirOrderWhateverTheirSize) {
  make(2);
  std::mt19937 random(1);
  std::vector<TestNode::SendOp*> sent;
  for (unsigned i = 0; i < 200; ++i) sent.push_back(&node(0).post_send(1, 5, pattern(random() % 4 == 0 ? 70000 + i : i, i)));
  for (unsigned i = 0; i < 200; ++i) {
    auto& receive = node(1).post_receive(i % 2 == 0 ? 0 : kAnySource, i % 3 == 0 ? std::nullopt : std::optional<Tag>(5), 100000);
    run_until([&] { return receive.result.has_value(); });
    ASSERT_TRUE(receive.result && *receive.result);
    ASSERT_EQ((*receive.result)->bytes, sent[i]->bytes.size()) << i;
    receive.bytes.resize(sent[i]->bytes.size());
    ASSERT_TRUE(receive.bytes == sent[i]->bytes) << i;
  }
}

TEST_F(MeshTest, AReceiveThatIsTooShortIsAMismatchAndLosesNothingElse) {
  make(2);
  for (const std::size_t size : {1000, 1000000}) {
    auto& wrong = node(0).post_send(1, 1, pattern(size, 1));
    auto& right = node(0).post_send(1, 1, pattern(size, 2));
    auto& receive = node(1).post_receive(0, 1, 10);
    auto& next = node(1).post_receive(0, 1, size);
    run_until([&] { return wrong.result && right.result && receive.result && next.result; });
    ASSERT_TRUE(wrong.result && right.result && receive.result && next.result);
    EXPECT_TRUE(*wrong.result) << "the sender succeeds";
    ASSERT_FALSE(*receive.result);
    EXPECT_EQ(receive.result->error().code(), ErrorCode::kMismatch);
    ASSERT_TRUE(*next.result);
    EXPECT_TRUE(next.bytes == right.bytes);
  }
}

TEST_F(MeshTest, UnreadMessagesAreBoundedAndDelayNeitherOtherTagsNorOtherGroupsNorThePeersControl) {
  make(2, {.bytes = 100000, .messages = 10, .announcements = 5});
  for (int i = 0; i < 100; ++i) node(0).post_send(1, 1, pattern(1000, 1));
  node(0).post_send(1, 1, pattern(8 << 20, 1));  // announced or queued, never sent
  run_until([&] { return node(1).mesh.matcher().arrivals() == 15; });
  EXPECT_EQ(node(1).mesh.matcher().arrivals(), 15u) << "ten eager ones and five announcements";

  auto& other_tag = node(0).post_send(1, 2, pattern(500, 2));
  auto& other_group = node(0).post_send(1, 1, pattern(500, 3), 9);
  auto& by_tag = node(1).post_receive(0, 2, 500);
  auto& by_group = node(1).post_receive(0, 1, 500, 9);
  run_until([&] { return by_tag.result && by_group.result; });
  ASSERT_TRUE(by_tag.result && *by_tag.result);
  ASSERT_TRUE(by_group.result && *by_group.result);
  EXPECT_TRUE(by_tag.bytes == other_tag.bytes);
  EXPECT_TRUE(by_group.bytes == other_group.bytes);
  EXPECT_LE(node(1).mesh.matcher().arrivals(), 16u);

  // And in the end everything can be read, in order.
  for (int i = 0; i < 100; ++i) {
    auto& receive = node(1).post_receive(0, 1, 1000);
    run_until([&] { return receive.result.has_value(); });
    ASSERT_TRUE(receive.result && *receive.result) << i;
  }
  auto& large = node(1).post_receive(0, 1, 8 << 20);
  run_until([&] { return large.result.has_value(); });
  ASSERT_TRUE(large.result && *large.result);
  EXPECT_TRUE(large.bytes == node(0).sends[100].bytes);
  EXPECT_EQ(node(1).mesh.matcher().arrivals(), 0u);
}

TEST_F(MeshTest, AReceivePostedBeforeItsSenderQueuesIsServedPastTheQueue) {
  make(2, {.bytes = 1000, .messages = 2, .announcements = 2});
  auto& wanted = node(1).post_receive(0, 2, 10);
  for (int i = 0; i < 20; ++i) node(0).post_send(1, 1, pattern(10, 1));
  run_until([&] { return node(1).mesh.matcher().arrivals() == 4; });
  node(0).post_send(1, 2, pattern(10, 2));
  run_until([&] { return wanted.result.has_value(); });
  ASSERT_TRUE(wanted.result && *wanted.result);
  EXPECT_EQ((*wanted.result)->tag, 2u);
}

TEST_F(MeshTest, CancelledTransfersLeaveNothingBehind) {
  make(2);
  for (int i = 0; i < 1000; ++i) {
    auto& send = node(0).post_send(1, 3, pattern(70000, 1));
    if (i % 3 == 0) {
      node(1).post_receive(0, 3, 70000);
      loop->turn({});
    }
    if (i % 7 == 0) loop->turn({});
    node(0).mesh.cancel(send.send);
    ASSERT_TRUE(send.result) << "when cancel returns, the send is done";
    send.bytes = {};  // and its memory is the user's
  }
  for (auto& receive : node(1).receives) {
    node(1).mesh.cancel(receive.receive);
    ASSERT_TRUE(receive.result);
    receive.bytes = {};
  }
  auto& last = node(0).post_send(1, 4, pattern(70000, 9));
  auto& receive = node(1).post_receive(0, 4, 70000);
  run_until([&] { return receive.result && last.result; });
  ASSERT_TRUE(receive.result && *receive.result);
  EXPECT_TRUE(receive.bytes == last.bytes);
  EXPECT_EQ(node(1).mesh.matcher().arrivals(), 0u);
}

TEST_F(MeshTest, ANodeSendsItselfMessagesToo) {
  make(2);
  auto& early = node(0).post_send(0, 1, pattern(100000, 1));
  EXPECT_FALSE(early.result) << "it waits in the user's memory";
  auto& receive = node(0).post_receive(kAnySource, 1, 100000);
  ASSERT_TRUE(early.result && receive.result && *receive.result);
  EXPECT_TRUE(receive.bytes == early.bytes);
  auto& posted = node(0).post_receive(0, 2, 10);
  node(0).post_send(0, 2, pattern(10, 2));
  EXPECT_TRUE(posted.result && *posted.result);
  auto& cancelled = node(0).post_send(0, 3, pattern(10, 3));
  node(0).mesh.cancel(cancelled.send);
  EXPECT_EQ(cancelled.result->error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(node(0).mesh.matcher().arrivals(), 0u);
}

TEST_F(MeshTest, ProbeFindsWhatAReceiveWouldGet) {
  make(3);
  EXPECT_EQ(node(2).mesh.probe(1, kAnySource, std::nullopt), std::nullopt);
  node(1).post_send(2, 8, pattern(33, 1));
  run_until([&] { return node(2).mesh.matcher().arrivals() == 1; });
  EXPECT_EQ(node(2).mesh.probe(1, kAnySource, std::nullopt), (Status{33, 1, 8}));
  EXPECT_EQ(node(2).mesh.probe(1, 1, 8), (Status{33, 1, 8}));
  EXPECT_EQ(node(2).mesh.probe(1, 0, 8), std::nullopt);
}

TEST_F(MeshTest, APeerThatLeavesEndsWhatNeedsItAndNamesIt) {
  make(3);
  auto& announced = node(0).post_send(1, 1, pattern(100000, 1));
  auto& from_it = node(0).post_receive(1, 5, 10);
  auto& from_anyone = node(0).post_receive(kAnySource, 5, 10);
  node(1).post_send(0, 9, pattern(10, 4));
  run_until([&] { return node(0).mesh.matcher().arrivals() == 1; });
  node(1).mesh.leave("gone");
  run_until([&] { return announced.result && from_it.result; });
  ASSERT_TRUE(announced.result && from_it.result);
  EXPECT_EQ(announced.result->error().code(), ErrorCode::kPeerLost);
  EXPECT_EQ(from_it.result->error().ranks()[0], 1);
  EXPECT_FALSE(from_anyone.result) << "somebody else may still send it";
  auto& had_come = node(0).post_receive(1, 9, 10);
  EXPECT_TRUE(had_come.result && *had_come.result) << "what had arrived is delivered";
  auto& late = node(0).post_send(1, 1, pattern(10, 1));
  EXPECT_EQ(late.result->error().code(), ErrorCode::kPeerLost);
  node(2).post_send(0, 5, pattern(10, 7));
  run_until([&] { return from_anyone.result.has_value(); });
  EXPECT_TRUE(from_anyone.result && *from_anyone.result);
}

// It left because of a loss, of which it had told us just before.
TEST_F(MeshTest, APeerThatLeavesWhenAVerdictIsDueEndsNothingBeforeIt) {
  make(3);
  auto& announced = node(0).post_send(1, 1, pattern(100000, 1));
  auto& from_it = node(0).post_receive(1, 5, 10);
  node(0).verdict_due = true;
  node(1).mesh.leave("rank 2 is lost");
  run_until([&] { return !node(0).left.empty() && node(0).mesh.link(1) == nullptr; });
  ASSERT_EQ(node(0).left, std::vector<Rank>{1});
  EXPECT_FALSE(announced.result || from_it.result);
  node(0).mesh.revoke(Error(ErrorCode::kPeerLost, "rank 2 is lost").with_rank(2));
  ASSERT_TRUE(announced.result && from_it.result);
  EXPECT_EQ(announced.result->error().sentence(), "rank 2 is lost");
  EXPECT_EQ(from_it.result->error().sentence(), "rank 2 is lost");
}

TEST_F(MeshTest, ALinkThatEndsWithoutGoodbyeIsALossAndNothingEndsBeforeTheVerdict) {
  make(3);
  auto& from_it = node(0).post_receive(1, 5, 10);
  node(1).mesh.link(0)->abort("gone");
  run_until([&] { return !node(0).lost.empty(); });
  ASSERT_EQ(node(0).lost, std::vector<Rank>{1});
  EXPECT_EQ(node(0).mesh.link(1), nullptr);
  auto& after = node(0).post_send(1, 5, pattern(10, 1));
  EXPECT_FALSE(from_it.result || after.result);
  node(0).mesh.revoke(Error(ErrorCode::kPeerLost, "rank 1 is lost").with_rank(1));
  ASSERT_TRUE(from_it.result && after.result);
  EXPECT_EQ(from_it.result->error().sentence(), "rank 1 is lost");
  EXPECT_EQ(after.result->error().sentence(), "rank 1 is lost");
}

TEST_F(MeshTest, ARevocationEndsEverythingButWhatIsHereWhole) {
  make(3);
  const Error verdict = Error(ErrorCode::kPeerLost, "rank 1 is lost").with_rank(1);
  node(2).post_send(0, 9, pattern(10, 4));
  node(2).post_send(0, 10, pattern(100000, 4));  // only its announcement comes
  run_until([&] { return node(0).mesh.matcher().arrivals() == 2; });
  auto& announced = node(0).post_send(2, 1, pattern(100000, 1));
  auto& to_self = node(0).post_send(0, 1, pattern(10, 1));
  auto& from_other = node(0).post_receive(2, 5, 10);
  auto& from_any = node(0).post_receive(kAnySource, 5, 10);
  node(0).mesh.revoke(verdict);
  ASSERT_TRUE(announced.result && to_self.result && from_other.result && from_any.result);
  for (const Result<void>* result : {&*announced.result, &*to_self.result}) EXPECT_EQ(result->error().sentence(), verdict.sentence());
  for (const Result<Status>* result : {&*from_other.result, &*from_any.result}) EXPECT_EQ(result->error().sentence(), verdict.sentence());
  EXPECT_EQ(node(0).mesh.matcher().arrivals(), 1u);
  EXPECT_FALSE(*node(0).post_receive(2, 10, 100000).result);
  EXPECT_TRUE(*node(0).post_receive(kAnySource, std::nullopt, 10).result) << "it is here";
  EXPECT_FALSE(*node(0).post_receive(kAnySource, std::nullopt, 10).result);
  EXPECT_FALSE(*node(0).post_send(0, 1, pattern(1, 1)).result);

  // What others still send is drained; liveness is still answered.
  auto& drained = node(2).post_send(0, 9, pattern(10, 4));
  EXPECT_TRUE(*drained.result);
  int pongs = 0;
  node(2).pong = [&] { ++pongs; };
  EXPECT_TRUE(node(2).mesh.ping(0, 1, 1));
  run_until([&] { return pongs == 1; });
  EXPECT_EQ(pongs, 1);
  EXPECT_EQ(node(0).mesh.matcher().arrivals(), 0u);
}

TEST_F(MeshTest, ManySmallMessagesKeepMemoryFlat) {
  make(2);
  constexpr int kMessages = 20000;
  int received = 0;
  Receive receive;
  std::array<std::byte, 64> buffer;
  std::function<void()> post = [&] {
    receive.group = 1;
    receive.source = 0;
    receive.tag = 1;
    receive.regions = {{buffer.data(), buffer.size()}};
    receive.capacity = buffer.size();
    receive.done = [&](Result<Status> result) {
      ASSERT_TRUE(result);
      if (++received < kMessages) post();
    };
    node(1).mesh.receive(receive);
  };
  post();
  std::array<std::byte, 64> bytes{};
  std::deque<Send> sends;
  int done = 0;
  for (int i = 0; i < kMessages; ++i) {
    Send& send = sends.emplace_back();
    send.group = 1;
    send.peer = 1;
    send.tag = 1;
    send.regions = {{bytes.data(), bytes.size()}};
    send.bytes = bytes.size();
    send.done = [&](const Result<void>& result) { done += result.has_value(); };
    node(0).mesh.send(send);
    if (i % 64 == 0) loop->turn({});
  }
  run_until([&] { return received == kMessages && done == kMessages; });
  EXPECT_TRUE(node(0).lost.empty() && node(1).lost.empty());
  EXPECT_EQ(received, kMessages);
  EXPECT_EQ(done, kMessages);
  EXPECT_EQ(node(1).mesh.matcher().arrivals(), 0u);
}

}  // namespace
}  // namespace nexar::mesh
