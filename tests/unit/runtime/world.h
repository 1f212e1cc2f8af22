// Worlds for tests, of nodes that are opened one by one, and of members that are no nodes and say what a test wants.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/view.h"
#include "crypto/identity.h"
#include "io/clock.h"
#include "io/epoll_loop.h"
#include "io/random.h"
#include "nexar/node.h"
#include "plan/version.h"
#include "runtime/node_core.h"
#include "transport/quic_pair.h"

namespace nexar::runtime::test {

// Identities and a view for `size` ranks. Each rank is opened as a node or stays a hole; addresses are filled in as they become known.
struct World {
  explicit World(int size) : authority(crypto::LocalAuthority::make({}).value()) {
    view.members.resize(static_cast<std::size_t>(size));
    for (cluster::Member& member : view.members) {
      io::system_random().fill(member.node.bytes);
      io::system_random().fill(member.host.bytes);  // each on a host of its own, so that they meet over the network
    }
    cores.resize(view.members.size());
  }

  crypto::Identity identity(Rank rank) const { return authority.make_node(view.member(rank).node, io::real_clock().wall()).value(); }

  std::shared_ptr<NodeCore> open(
      Rank rank, const Config& config = {}, const LogSink& log = [](const LogRecord&) {}) {
    const crypto::Identity who = identity(rank);
    NodeCore::Options options;
    options.identity = &who;
    options.config = config;
    options.address = io::Address::loopback_v4(0);
    options.log = log;
    auto& core = cores[static_cast<std::size_t>(rank)] = NodeCore::open(options).value();
    view.members[static_cast<std::size_t>(rank)].addresses.push_back(core->address());
    return core;
  }

  crypto::LocalAuthority authority;
  cluster::View view;
  std::vector<std::shared_ptr<NodeCore>> cores;
};

// A member with keys of its own and no node: it says hello, and then whatever the test tells it to.
struct Rogue : transport::test::Recorder, transport::quic::LinkAcceptor {
  Rogue(const World& world, Rank as) : Rogue(world, as, world.identity(as)) {}
  Rogue(const World& world, Rank as, const crypto::Identity& identity)
      : world_(world), as_(as), loop(io::EpollLoop::open().value()), verifier(world.authority) {
    endpoint =
        transport::quic::Endpoint::open({*loop, io::system_random()}, io::Address::loopback_v4(0), identity, verifier, *this).value();
  }
  transport::LinkHandler* on_link(transport::Link& opened) override {
    link = &opened;
    return this;
  }

  wire::Hello hello() const {
    wire::Hello hello;
    hello.plan_version = plan::kPlanVersion;
    hello.node = world_.view.member(as_).node;
    hello.cluster = world_.authority.authority().certificate().cluster();
    hello.config_digest = Config{}.digest();
    hello.eager_bytes = 1u << 20;
    hello.eager_messages = 10;
    hello.announcements = 10;
    return hello;
  }

  void call(Rank rank) { link = endpoint->connect(world_.view.member(rank).addresses.front(), *this).value(); }

  template <typename M>
  void say(const M& message, Epoch epoch = 1, mesh::GroupId group = 0) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {.group = group, .epoch = epoch}, frame));
    ASSERT_TRUE(link->send(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes)));
  }

  bool run_until(const std::function<bool()>& done) {
    const base::Time deadline = loop->refresh() + std::chrono::minutes(1);
    while (!done() && loop->refresh() < deadline) loop->turn(std::chrono::milliseconds(5));
    return done();
  }
  bool has(wire::FrameType type) const {
    return std::any_of(frames.begin(), frames.end(), [&](const Frame& frame) { return frame.header.type == type; });
  }
  template <typename M>
  M last() const {
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      if (frame->header.type == M::kType) return wire::decode_frame<M>(frame->header, frame->payload).value();
    ADD_FAILURE() << "there is no " << wire::to_string(M::kType);
    return {};
  }

  const World& world_;
  Rank as_;
  std::unique_ptr<io::EpollLoop> loop;
  transport::test::Verifier verifier;
  std::unique_ptr<transport::quic::Endpoint> endpoint;
};

}  // namespace nexar::runtime::test
