#include "rpc/frame_queue.h"

#include <utility>

#include "transport/quic_pair.h"
#include "wire/rpc_messages.h"

namespace nexar::rpc {
namespace {

// A queue to a peer whose link is not ready yet, so that everything waits.
struct FrameQueueTest : transport::test::QuicTest {
  FrameQueueTest() : a(*loop, authority, 0), b(*loop, authority, 1), mesh(0, 2, 1, {}), queue(mesh, 1, {.calls = 2}) {}
  ~FrameQueueTest() override { a.endpoint.reset(); }  // before the mesh, which its links call

  void connect() { mesh.attach(1, **a.endpoint->connect(b.endpoint->local_address(), mesh.handler(1)), {}); }
  void answer(std::uint64_t call, std::size_t bytes) {
    queue.answer(wire::header_of(wire::RpcReply{.call = call}, {.epoch = 1}, static_cast<std::uint32_t>(bytes)),
                 std::vector<std::byte>(bytes));
  }

  transport::test::Side a;
  transport::test::Side b;
  mesh::Mesh mesh;
  FrameQueue queue;
};

TEST_F(FrameQueueTest, ARequestThatWaitsCanBeTakenBackOnce) {
  connect();
  queue.request(5, wire::header_of(wire::RpcRequest{.call = 5}, {.epoch = 1}, 0), {});
  EXPECT_FALSE(queue.empty());
  EXPECT_FALSE(queue.take_back(6));
  EXPECT_TRUE(queue.take_back(5));
  EXPECT_FALSE(queue.take_back(5));
  EXPECT_TRUE(queue.empty());
}

TEST_F(FrameQueueTest, WhatWaitsGoesInOrderWhenThereIsRoom) {
  connect();
  for (const std::uint64_t call : {1, 2, 3}) answer(call, 10);
  run_until([&] { return !b.accepted.empty() && std::as_const(mesh).peer(1).is_ready(); });
  queue.drain();
  EXPECT_TRUE(queue.empty());
  run_until([&] { return b.accepted.front()->frames.size() == 3; });
  ASSERT_EQ(b.accepted.front()->frames.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(b.accepted.front()->frames[i].header.id, i + 1);
}

TEST_F(FrameQueueTest, APeerThatReadsNoAnswersIsGivenUp) {
  connect();
  const std::size_t bound = kRefusalsBytesMax + 2 * wire::kEagerBytesMax;
  for (std::size_t sent = 0; sent <= bound; sent += wire::kEagerBytesMax) answer(1, wire::kEagerBytesMax);
  run_until([&] { return mesh.link(1) == nullptr; });
  EXPECT_EQ(mesh.link(1), nullptr);
}

}  // namespace
}  // namespace nexar::rpc
