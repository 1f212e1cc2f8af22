// What a run posts, seen by a port that does nothing by itself.
#include "collective/plan_run.h"

#include <algorithm>
#include <array>
#include <cstddef>
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

}  // namespace
}  // namespace nexar::collective
