// What tensor libraries see.
#include "nexar/communicator.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/fake_adapter.h"
#include "nexar/node.h"
#include "nexar/seed.h"
#include "tensor/ranks.h"

namespace nexar {
namespace {

using test::FakeAdapter;
using test::on_all_ranks;
using Axis = ParallelLayout::Axis;

constexpr Axis kAxes[] = {Axis::kTensor, Axis::kPipeline, Axis::kData, Axis::kExpert};

TEST(ParallelLayout, TensorIsInnermost) {
  const ParallelLayout layout{.tp = 2, .pp = 3, .dp = 4, .ep = 2};
  ASSERT_TRUE(layout.check(24));
  for (Rank rank = 0; rank < 24; ++rank) {
    const ParallelLayout::Place place = layout.place(rank);
    EXPECT_EQ(place.dp_index * (3 * 2) + place.pp_index * 2 + place.tp_index, rank);
    EXPECT_EQ(place.ep_index, place.dp_index % 2);
  }
  EXPECT_EQ(layout.place(17), (ParallelLayout::Place{.tp_index = 1, .pp_index = 2, .dp_index = 2, .ep_index = 0}));
}

TEST(ParallelLayout, EveryAxisDividesTheWorldIntoGroupsOfItsSize) {
  for (const ParallelLayout& layout : {ParallelLayout{}, ParallelLayout{.tp = 8}, ParallelLayout{.tp = 2, .pp = 2, .dp = 2, .ep = 2},
                                       ParallelLayout{.pp = 3, .dp = 6, .ep = 3}, ParallelLayout{.tp = 4, .pp = 1, .dp = 8, .ep = 4}}) {
    const int world = layout.tp * layout.pp * layout.dp;
    ASSERT_TRUE(layout.check(world));
    for (const Axis axis : kAxes) {
      std::map<int, std::vector<int>> groups;
      for (Rank rank = 0; rank < world; ++rank) {
        std::vector<int>& members = groups[layout.color(rank, axis)];
        EXPECT_EQ(layout.index(rank, axis), static_cast<int>(members.size())) << "in the order of ranks";
        members.push_back(rank);
      }
      EXPECT_EQ(static_cast<int>(groups.size()) * layout.size(axis), world);
      for (const auto& [color, members] : groups) EXPECT_EQ(static_cast<int>(members.size()), layout.size(axis));
    }
  }
}

TEST(ParallelLayout, AnExpertGroupIsConsecutiveMembersOfADataGroup) {
  const ParallelLayout layout{.tp = 2, .pp = 1, .dp = 4, .ep = 2};
  EXPECT_EQ(layout.color(0, Axis::kData), layout.color(6, Axis::kData));
  EXPECT_EQ(layout.color(0, Axis::kExpert), layout.color(2, Axis::kExpert));
  EXPECT_NE(layout.color(0, Axis::kExpert), layout.color(4, Axis::kExpert));
  EXPECT_EQ(layout.color(4, Axis::kExpert), layout.color(6, Axis::kExpert));
  EXPECT_NE(layout.color(1, Axis::kExpert), layout.color(0, Axis::kExpert));
}

TEST(ParallelLayout, SizesThatDoNotFitAreRefusedWithTheNumbers) {
  EXPECT_EQ((ParallelLayout{.tp = 2, .pp = 2, .dp = 3}.check(8).error().sentence()), "tp 2 * pp 2 * dp 3 are not the 8 ranks of the world");
  EXPECT_EQ((ParallelLayout{.dp = 8, .ep = 3}.check(8).error().sentence()), "ep 3 does not divide dp 8");
  EXPECT_FALSE((ParallelLayout{.tp = 0, .dp = 8}.check(8)));
  EXPECT_FALSE((ParallelLayout{.tp = 1 << 30, .pp = 1 << 30, .dp = 1 << 30}.check(1 << 30)));
}

TEST(SingleCommunicator, IsAWorldOfItsOwn) {
  const std::unique_ptr<Communicator> world = Communicator::single();
  EXPECT_EQ(world->world_size(), 1);
  EXPECT_EQ(world->rank(), 0);
  EXPECT_FALSE(world->group());
  std::vector<float> a = {1, 2, 3};
  std::vector<float> b(3);
  ASSERT_TRUE(world->all_reduce(a.data(), 3, DataType::kF32, ReduceOp::kAvg));
  ASSERT_TRUE(world->broadcast(a.data(), 3, DataType::kF32, 0));
  ASSERT_TRUE(world->all_gather(a.data(), b.data(), 3, DataType::kF32));
  EXPECT_EQ(b, a);
  b.assign(3, 0);
  ASSERT_TRUE(world->reduce_scatter(a.data(), b.data(), 3, DataType::kF32, ReduceOp::kSum));
  EXPECT_EQ(b, a);
  ASSERT_TRUE(world->barrier());
  ASSERT_TRUE(world->sync());
  EXPECT_EQ(world->split(3, 0).value()->world_size(), 1);
  EXPECT_EQ(world->split(std::nullopt, 0).value(), nullptr);
  EXPECT_EQ(world->all_reduce(a.data(), 3, DataType::kF32, ReduceOp::kXor).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(world->broadcast(a.data(), 3, DataType::kF32, 1).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(world->all_reduce(nullptr, 3, DataType::kF32, ReduceOp::kSum).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(world->all_reduce(a.data(), ~0ull, DataType::kF32, ReduceOp::kSum).error().code(), ErrorCode::kInvalidArgument);
}

TEST(SingleCommunicator, SendsToItselfInOrderAndByTag) {
  auto fake = std::make_shared<FakeAdapter>();
  for (const bool on_device : {false, true}) {
    const std::unique_ptr<Communicator> world =
        Communicator::single({.adapter = on_device ? std::shared_ptr<DeviceAdapter>(fake) : nullptr});
    std::vector<int> host = {1, 2, 3, 0, 0};
    int* numbers = on_device ? reinterpret_cast<int*>(fake->put(host).address()) : host.data();
    ASSERT_TRUE(world->send(numbers, 1, DataType::kI32, 0, 5));
    ASSERT_TRUE(world->send(numbers + 1, 1, DataType::kI32, 0, 5));
    ASSERT_TRUE(world->send(numbers + 2, 1, DataType::kI32, 0, 6));
    ASSERT_TRUE(world->recv(numbers + 3, 1, DataType::kI32, 0, 6));
    ASSERT_TRUE(world->recv(numbers + 4, 1, DataType::kI32, 0, 5));
    if (on_device) host = fake->get<int>(CpuAdapter::pointer(numbers), 5);
    EXPECT_EQ(host, (std::vector<int>{1, 2, 3, 3, 1}));
    EXPECT_EQ(world->recv(numbers, 2, DataType::kI32, 0, 5).error().code(), ErrorCode::kMismatch);
    EXPECT_EQ(world->recv(numbers, 1, DataType::kI32, 0, 5).error().code(), ErrorCode::kInvalidArgument);
  }
  const std::unique_ptr<Communicator> world = Communicator::single();
  std::vector<std::byte> large(40 << 20);
  ASSERT_TRUE(world->send(large.data(), large.size(), DataType::kU8, 0, 1));
  EXPECT_EQ(world->send(large.data(), large.size(), DataType::kU8, 0, 1).error().code(), ErrorCode::kOverloaded);
}

// Every call once, in host memory or in a device's.
void use_everything(Communicator& world, const std::shared_ptr<FakeAdapter>& fake) {
  const auto size = static_cast<std::size_t>(world.world_size());
  const auto put = [&](std::vector<std::int32_t>& host) {
    return fake == nullptr ? host.data() : reinterpret_cast<std::int32_t*>(fake->put(host).address());
  };
  const auto get = [&](std::vector<std::int32_t>& host, std::int32_t* at) {
    if (fake != nullptr) host = fake->get<std::int32_t>(CpuAdapter::pointer(at), host.size());
  };
  std::vector<std::int32_t> ones(100, world.rank() + 1);
  std::int32_t* at = put(ones);
  ASSERT_TRUE(world.all_reduce(at, 100, DataType::kI32, ReduceOp::kMax));
  get(ones, at);
  EXPECT_EQ(ones, std::vector<std::int32_t>(100, world.world_size()));

  std::vector<std::int32_t> mine(7, world.rank());
  ASSERT_TRUE(world.broadcast(at = put(mine), 7, DataType::kI32, world.world_size() - 1));
  get(mine, at);
  EXPECT_EQ(mine, std::vector<std::int32_t>(7, world.world_size() - 1));

  std::vector<std::int32_t> part = {world.rank(), 100};
  std::vector<std::int32_t> all(2 * size);
  ASSERT_TRUE(world.all_gather(put(part), at = put(all), 2, DataType::kI32));
  get(all, at);
  for (std::size_t r = 0; r < size; ++r) EXPECT_EQ(all[2 * r], static_cast<std::int32_t>(r));

  ASSERT_TRUE(world.reduce_scatter(put(all), at = put(part), 2, DataType::kI32, ReduceOp::kSum));
  get(part, at);
  EXPECT_EQ(part, (std::vector<std::int32_t>{world.rank() * world.world_size(), 100 * world.world_size()}));

  if (size > 1) {
    const Rank next = (world.rank() + 1) % world.world_size();
    const Rank previous = (world.rank() + world.world_size() - 1) % world.world_size();
    std::vector<std::int32_t> from(1);
    ASSERT_TRUE(world.send(put(part), 1, DataType::kI32, next, 9));
    ASSERT_TRUE(world.recv(at = put(from), 1, DataType::kI32, previous, 9));
    get(from, at);
    EXPECT_EQ(from[0], previous * world.world_size());
    ASSERT_TRUE(world.send(put(part), 2, DataType::kI32, next, 10));
    const Result<void> shorter = world.recv(put(ones), 3, DataType::kI32, previous, 10);
    ASSERT_FALSE(shorter);
    EXPECT_EQ(shorter.error().code(), ErrorCode::kMismatch);
  }
  ASSERT_TRUE(world.barrier());
}

TEST(NetCommunicator, MakesEveryCallInMemoryOfAnyDevice) {
  for (const int n : {1, 2, 4}) {
    const std::vector<Node> nodes = Node::local(n).value();
    on_all_ranks(nodes, [](const Group& group) {
      use_everything(*Communicator::net(group), nullptr);
      auto fake = std::make_shared<FakeAdapter>(static_cast<std::uint32_t>(group.rank()));
      use_everything(*Communicator::net(group, {.adapter = fake, .pieces = {.piece_bytes = 24}}), fake);
    });
  }
}

TEST(NetCommunicator, SplitsAgainAndAgain) {
  const std::vector<Node> nodes = Node::local(6).value();
  on_all_ranks(nodes, [](const Group& group) {
    const std::unique_ptr<Communicator> world = Communicator::net(group);
    // Even and odd ranks, in reverse order; rank 5 is in none.
    std::unique_ptr<Communicator> half =
        world->split(group.rank() == 5 ? std::nullopt : std::optional(group.rank() % 2), -group.rank()).value();
    if (group.rank() == 5) {
      EXPECT_EQ(half, nullptr);
      return;
    }
    EXPECT_EQ(half->world_size(), group.rank() % 2 == 0 ? 3 : 2);
    EXPECT_EQ(half->rank(), half->world_size() - 1 - group.rank() / 2);
    use_everything(*half, nullptr);
    const std::unique_ptr<Communicator> alone = half->split(half->rank(), 0).value();
    EXPECT_EQ(alone->world_size(), 1);
    use_everything(*alone, nullptr);
    const std::unique_ptr<Communicator> same = half->split(7, half->rank()).value();
    EXPECT_EQ(same->rank(), half->rank());
    half.reset();
    use_everything(*same, nullptr);
  });
}

// A seed, and a thread for each rank that joins it.
void join_world(int ranks, const std::function<void(std::unique_ptr<Communicator>)>& work, const CommunicatorOptions& options = {},
                Transport transport = Transport::kAuto) {
  SeedCredentials credentials = SeedCredentials::make().value();
  const std::string token = credentials.token();
  const Seed seed = Seed::start({.listen = "127.0.0.1:0", .world = ranks, .credentials = std::move(credentials)}).value();
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      JoinOptions join;
      join.config.transport = transport;
      join.seed = seed.address();
      join.token = token;
      join.rank = rank;
      Result<std::unique_ptr<Communicator>> joined = Communicator::join(join, options);
      ASSERT_TRUE(joined) << joined.error().to_string();
      EXPECT_EQ((*joined)->rank(), rank);
      work(*std::move(joined));
    });
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::int32_t> members_of(Communicator& part, Rank me) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(part.world_size()));
  const std::int32_t mine = me;
  part.all_gather(&mine, ranks.data(), 1, DataType::kI32).value();
  return ranks;
}

TEST(JoinedCommunicator, MakesEveryCallAndItsPartsOutliveIt) {
  for (const Transport transport : {Transport::kAuto, Transport::kNet}) {
    join_world(
        4,
        [](std::unique_ptr<Communicator> world) {
          const Rank me = world->rank();
          EXPECT_EQ(world->world_size(), 4);
          use_everything(*world, nullptr);
          // Rank 3 is in none; the others come in reverse order.
          std::unique_ptr<Communicator> three = world->split(me == 3 ? std::nullopt : std::optional(0), -me).value();
          EXPECT_EQ(three == nullptr, me == 3);
          if (three == nullptr) return;  // and leaves
          world.reset();                 // the node stays as long as a part does
          use_everything(*three, nullptr);
          EXPECT_EQ(members_of(*three, me), (std::vector<std::int32_t>{2, 1, 0}));
          std::unique_ptr<Communicator> two = three->split(me == 2 ? std::nullopt : std::optional(5), me).value();
          EXPECT_EQ(two == nullptr, me == 2);
          three.reset();
          if (two == nullptr) return;
          use_everything(*two, nullptr);
          EXPECT_EQ(members_of(*two, me), (std::vector<std::int32_t>{0, 1}));
          // Nobody gives a color: nobody gets anything, and the communicator goes on.
          EXPECT_EQ(two->split(std::nullopt, 0).value(), nullptr);
          use_everything(*two, nullptr);
        },
        {}, transport);
  }
}

TEST(JoinedCommunicator, TakesItsNodesAdapterOrItsOwn) {
  auto of_node = std::make_shared<FakeAdapter>(3);
  auto its_own = std::make_shared<FakeAdapter>(4);
  LocalOptions options;
  options.adapter = of_node;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [&](const Group& group) {
    use_everything(*Communicator::net(group, {.pieces = {.piece_bytes = 24}}), of_node);
    use_everything(*Communicator::net(group, {.adapter = its_own, .pieces = {.piece_bytes = 24}}), its_own);
    const std::unique_ptr<Communicator> part = Communicator::net(group, {.adapter = its_own})->split(0, 0).value();
    use_everything(*part, its_own);
  });
  EXPECT_GT(of_node->posted(), 0u);
  join_world(2, [&](std::unique_ptr<Communicator> world) { use_everything(*world, its_own); }, {.adapter = its_own});
}

TEST(JoinedCommunicator, HasParallelGroupsThatSplitFurther) {
  join_world(8, [](std::unique_ptr<Communicator> world) {
    const int r = world->rank();
    const ParallelLayout layout{.tp = 2, .pp = 2, .dp = 2, .ep = 2};
    CommunicatorGroup parallel = CommunicatorGroup::make(*world, layout).value();
    world.reset();
    EXPECT_EQ(members_of(parallel.tensor(), r), (std::vector<std::int32_t>{r / 2 * 2, r / 2 * 2 + 1}));
    EXPECT_EQ(members_of(parallel.pipeline(), r), (std::vector<std::int32_t>{r / 4 * 4 + r % 2, r / 4 * 4 + r % 2 + 2}));
    EXPECT_EQ(members_of(parallel.data(), r), (std::vector<std::int32_t>{r % 4, r % 4 + 4}));
    EXPECT_EQ(members_of(parallel.expert(), r), (std::vector<std::int32_t>{r % 4, r % 4 + 4}));
    for (Communicator* part : {&parallel.tensor(), &parallel.pipeline(), &parallel.data(), &parallel.expert()})
      use_everything(*part, nullptr);
    const std::unique_ptr<Communicator> alone = parallel.data().split(parallel.data().rank(), 0).value();
    EXPECT_EQ(alone->world_size(), 1);
    use_everything(*alone, nullptr);
  });
}

TEST(JoinedCommunicator, SaysWhyItCouldNot) {
  JoinOptions nowhere;
  nowhere.seed = "127.0.0.1:9";
  nowhere.token = "no token";
  const Result<std::unique_ptr<Communicator>> joined = Communicator::join(nowhere);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kInvalidArgument) << joined.error().to_string();
  const std::vector<Node> nodes = Node::local(2).value();
  on_all_ranks(nodes, [](const Group& group) {
    const Result<CommunicatorGroup> wrong = CommunicatorGroup::make(*Communicator::net(group), {.tp = 3});
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code(), ErrorCode::kInvalidArgument);
    ASSERT_TRUE(group.barrier());
  });
}

TEST(NetCommunicator, EventsGoToTheDevicesStream) {
  const std::vector<Node> nodes = Node::local(1).value();
  auto fake = std::make_shared<FakeAdapter>();
  const std::unique_ptr<Communicator> world = Communicator::net(nodes[0].world(), {.adapter = fake, .stream = DeviceStream{7}});
  const DeviceEvent event = world->record_event().value();
  EXPECT_FALSE(fake->passed(event).value());
  ASSERT_TRUE(world->wait_event(event));
  EXPECT_EQ(fake->waited_for(), std::vector<DeviceEvent>{event});
  std::thread device([&] {
    while (fake->passed(DeviceEvent{2}).value()) std::this_thread::yield();  // until sync() has recorded it
    fake->pass(DeviceEvent{2});
  });
  ASSERT_TRUE(world->sync());
  EXPECT_TRUE(fake->passed(DeviceEvent{2}).value());
  device.join();
}

TEST(CommunicatorGroup, HasACommunicatorForEachAxis) {
  const std::vector<Node> nodes = Node::local(8).value();
  on_all_ranks(nodes, [](const Group& group) {
    const std::unique_ptr<Communicator> world = Communicator::net(group);
    const ParallelLayout layout{.tp = 2, .pp = 1, .dp = 4, .ep = 2};
    const CommunicatorGroup parallel = CommunicatorGroup::make(*world, layout).value();
    const auto members = [&](Communicator& part) { return members_of(part, group.rank()); };
    const int r = group.rank();
    EXPECT_EQ(members(parallel.tensor()), (std::vector<std::int32_t>{r / 2 * 2, r / 2 * 2 + 1}));
    EXPECT_EQ(members(parallel.pipeline()), (std::vector<std::int32_t>{r}));
    EXPECT_EQ(members(parallel.data()), (std::vector<std::int32_t>{r % 2, r % 2 + 2, r % 2 + 4, r % 2 + 6}));
    EXPECT_EQ(members(parallel.expert()), (std::vector<std::int32_t>{r % 2 + r / 4 * 4, r % 2 + r / 4 * 4 + 2}));
    EXPECT_EQ(parallel.data().rank(), layout.place(r).dp_index);
    EXPECT_EQ(parallel.expert().rank(), layout.place(r).ep_index);
  });
  EXPECT_FALSE(CommunicatorGroup::make(*Communicator::single(), {.tp = 2}));
  EXPECT_TRUE(CommunicatorGroup::make(*Communicator::single(), {}));
}

}  // namespace
}  // namespace nexar
