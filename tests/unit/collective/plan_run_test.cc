// What a run posts, seen by a port that does nothing by itself.
#include "collective/plan_run.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithms.h"
#include "reduce/reducer.h"

namespace nexar::collective {
namespace {

class IdlePort final : public mesh::StepPort {
 public:
  void add_group(mesh::GroupId) override {}
  void enter(mesh::StepOperation&) override {}
  void send(mesh::StepOperation&, mesh::StepSend& send) override { sends.push_back(&send); }
  void receive(mesh::StepOperation&, mesh::StepReceive& receive) override {
    receive.state = mesh::StepReceive::State::kPosted;
    receives.push_back(&receive);
  }
  void leave(mesh::StepOperation&) override {}
  void skip(mesh::GroupId, Sequence) override {}
  void announce(mesh::StepOperation&) override {}
  void tell(Rank, mesh::GroupId, const wire::Verdict&) override {}
  void tell(Rank, mesh::GroupId, const wire::Probe&) override {}
  void tell(Rank, mesh::GroupId, const wire::ProbeReply&) override {}
  void early_sources(const mesh::StepOperation&, std::vector<Rank>&) const override {}
  const Error* departure(Rank) const override { return nullptr; }
  bool is_gone(Rank) const override { return false; }
  const Error* verdict() const override { return nullptr; }

  std::vector<mesh::StepSend*> sends;
  std::vector<mesh::StepReceive*> receives;
};

// The second lap of a ring of two is 300 segments long, and each may be granted before the first lap has made room for it.
TEST(PlanRun, GrantsABoundedNumberOfReceivesAhead) {
  constexpr std::uint64_t kSegments = 300;
  plan::Shape shape{.operation = OperationId::kAllReduce, .size = 2, .count = 2 * kSegments};
  shape.segment = 1;
  shape.in_place = true;
  const auto plan = std::make_shared<const plan::Plan>(plan::pipelined_ring_all_reduce(shape));
  const auto is_ahead = [&](const mesh::StepReceive* receive) { return plan->steps[receive->step].ahead(); };
  const reduce::Reducer reducer = reduce::Reducer::make(DataType::kF32, ReduceOp::kSum).value();
  std::vector<std::byte> buffer(2 * kSegments * shape.element_bytes);
  std::vector<std::byte> scratch(plan->scratch_count * shape.element_bytes);
  const std::array<Rank, 2> members = {0, 1};
  IdlePort port;
  mesh::StepOperation operation;
  PlanRun run;
  run.start({.plan = plan,
             .output = buffer.data(),
             .scratch = scratch.data(),
             .reducer = &reducer,
             .members = members,
             .port = &port,
             .operation = &operation});
  EXPECT_EQ(std::count_if(port.receives.begin(), port.receives.end(), is_ahead), kAheadMax);

  // As they are done, others are granted, to the end.
  std::size_t sent = 0;
  std::size_t received = 0;
  while (sent < port.sends.size() || received < port.receives.size()) {
    if (sent < port.sends.size()) run.on_sent(*port.sends[sent++]);
    if (received == port.receives.size()) continue;
    mesh::StepReceive& receive = *port.receives[received++];
    const std::vector<std::byte> bytes(receive.bytes);
    if (receive.into == nullptr) run.take(receive, 0, bytes);
    receive.state = mesh::StepReceive::State::kDone;
    run.on_received(receive);
  }
  EXPECT_TRUE(run.is_done());
  EXPECT_FALSE(run.error());
  EXPECT_GE(std::count_if(port.receives.begin(), port.receives.end(), is_ahead), static_cast<std::ptrdiff_t>(kSegments));
}

// One rank of a ring of two over pieces of so many floats each, all of them 1; the other one's messages are made by the test.
struct InPieces {
  explicit InPieces(const std::vector<std::size_t>& counts) {
    plan::Shape shape{.operation = OperationId::kAllReduce, .size = 2};
    for (const std::size_t count : counts) {
      tensors.emplace_back(count, 1.0f);
      pieces.push_back({reinterpret_cast<std::byte*>(tensors.back().data()), shape.count});
      shape.count += count;
    }
    shape.in_place = true;
    plan = std::make_shared<const plan::Plan>(plan::ring_all_reduce(shape));
    staging.resize(PlanRun::staging_bytes(*plan, pieces));
    run.start({.plan = plan,
               .pieces = pieces,
               .staging = staging.data(),
               .reducer = &reducer,
               .op = ReduceOp::kSum,
               .members = members,
               .port = &port,
               .operation = &operation});
  }

  // The peer's values are all 2, and come in bits of so many bytes.
  void receive(mesh::StepReceive& receive, std::size_t at_a_time) {
    const std::vector<float> values(receive.bytes / sizeof(float), 2.0f);
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    for (std::size_t at = 0; at < receive.bytes; at += at_a_time)
      run.take(receive, at, {bytes + at, std::min<std::size_t>(at_a_time, receive.bytes - at)});
    receive.state = mesh::StepReceive::State::kDone;
    run.on_received(receive);
  }

  // The one that is reduced, or the one that is stored: the latter may be posted first.
  mesh::StepReceive& posted(plan::StepKind kind) const {
    return **std::find_if(port.receives.begin(), port.receives.end(),
                          [&](const mesh::StepReceive* one) { return plan->steps[one->step].kind == kind; });
  }

  const void* place(std::size_t tensor, std::size_t element) const { return tensors[tensor].data() + element; }

  std::vector<std::vector<float>> tensors;
  std::vector<Piece> pieces;
  std::shared_ptr<const plan::Plan> plan;
  std::vector<std::byte> staging;
  const reduce::Reducer reducer = reduce::Reducer::make(DataType::kF32, ReduceOp::kSum).value();
  const std::array<Rank, 2> members = {0, 1};
  IdlePort port;
  mesh::StepOperation operation;
  PlanRun run;
};

TEST(PlanRunInPieces, GathersASmallMessageWhenItIsSentAndNotBefore) {
  InPieces rank({3, 5, 7, 5});  // chunks of ten
  ASSERT_EQ(rank.staging.size(), 20 * sizeof(float));
  ASSERT_EQ(rank.port.sends.size(), 1u);
  const auto sent = [&] { return static_cast<const float*>(rank.port.sends.back()->data.data); };
  EXPECT_EQ(std::vector<float>(sent(), sent() + 10), std::vector<float>(10, 1.0f));
  rank.run.on_sent(*rank.port.sends[0]);
  rank.receive(rank.posted(plan::StepKind::kReceiveReduce), 7);  // and goes on
  ASSERT_EQ(rank.port.sends.size(), 2u);
  EXPECT_EQ(std::vector<float>(sent(), sent() + 10), std::vector<float>(10, 3.0f));
  rank.run.on_sent(*rank.port.sends[1]);
  ASSERT_EQ(rank.port.receives.size(), 2u);
  EXPECT_EQ(rank.posted(plan::StepKind::kReceive).into, nullptr);
  rank.receive(rank.posted(plan::StepKind::kReceive), 3);
  EXPECT_TRUE(rank.run.is_done());
  EXPECT_FALSE(rank.run.error());
  const bool first_is_kept = rank.tensors[0][0] == 2;  // of the two chunks
  std::vector<float> all;
  for (const std::vector<float>& tensor : rank.tensors) all.insert(all.end(), tensor.begin(), tensor.end());
  std::vector<float> expected(20, first_is_kept ? 3.0f : 2.0f);
  std::fill_n(expected.begin(), 10, first_is_kept ? 2.0f : 3.0f);
  EXPECT_EQ(all, expected);
}

TEST(PlanRunInPieces, NamesThePiecesOfALargeMessage) {
  InPieces rank({10000, 10000, 20000, 30000});  // chunks of 35,000
  EXPECT_EQ(rank.staging.size(), 0u);
  ASSERT_EQ(rank.port.sends.size(), 1u);
  const mesh::StepSend& send = *rank.port.sends[0];
  EXPECT_EQ(send.data.data, nullptr);
  EXPECT_EQ(send.data.bytes, 35000 * sizeof(float));
  const bool is_first = send.regions.size() == 3;
  ASSERT_EQ(send.regions.size(), is_first ? 3u : 2u);
  EXPECT_EQ(send.regions.back().data, is_first ? rank.place(2, 0) : rank.place(3, 0));
  EXPECT_EQ(send.regions.back().bytes, (is_first ? 15000 : 30000) * sizeof(float));
  std::uint64_t total = 0;
  for (const ConstRegion& region : send.regions) total += region.bytes;
  EXPECT_EQ(total, send.data.bytes);
}

TEST(PlanRunInPieces, GathersALargeMessageOfCrumbs) {
  InPieces rank(std::vector<std::size_t>(20000, 3));
  EXPECT_EQ(rank.staging.size(), 60000 * sizeof(float));
  EXPECT_TRUE(rank.port.sends.at(0)->regions.empty());
  EXPECT_NE(rank.port.sends[0]->data.data, nullptr);
}

TEST(PlanRunInPieces, SendsAndStoresWhatLiesInOnePieceThere) {
  InPieces rank({10, 10});
  EXPECT_EQ(rank.staging.size(), 0u);
  const void* sent = rank.port.sends.at(0)->data.data;
  EXPECT_TRUE(sent == rank.place(0, 0) || sent == rank.place(1, 0));
  rank.run.on_sent(*rank.port.sends[0]);
  rank.receive(rank.posted(plan::StepKind::kReceiveReduce), 40);
  EXPECT_EQ(rank.posted(plan::StepKind::kReceive).into, sent);
}

}  // namespace
}  // namespace nexar::collective
