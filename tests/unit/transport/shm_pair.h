// Two ends of a segment, each with a loop of its own, and a link between them: as two processes have it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "io/epoll_loop.h"
#include "io/random.h"
#include "transport/quic_pair.h"
#include "transport/shm/endpoint.h"

namespace nexar::transport::test {

class ShmTest : public testing::Test {
 protected:
  struct Side {
    std::unique_ptr<io::EpollLoop> loop = io::EpollLoop::open().value();
    std::unique_ptr<shm::Endpoint> endpoint = shm::Endpoint::open(*loop, io::system_random()).value();
    Recorder recorder{};
  };

  // The smaller the budget, the smaller the rings.
  explicit ShmTest(std::uint64_t budget = 16u << 20, bool reads = true) : segment(shm::HostSegment::create(2, 1, budget).value()) {
    auto [left, right] = io::StreamSocket::pair().value();
    shm::Channel channels[2] = {shm::Channel::accepted(std::move(left)).value(), shm::Channel::accepted(std::move(right)).value()};
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(channels[i].greet({{}, sides[i].endpoint->proof(), 0}, sides[i].endpoint->bell(), -1));
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(channels[i].read_greeting().value());
      sides[i].endpoint->use(segment, i);
      const shm::Ends ends{.here = i, .there = 1 - i, .reads = reads, .peer_reads = reads};
      sides[i].recorder.link = sides[i].endpoint->connect(ends, std::move(channels[i]), sides[i].recorder).value();
    }
  }

  void turn() {
    for (Side& side : sides) side.loop->turn(base::Duration::zero());
  }
  void run_until(const std::function<bool()>& done) {
    const base::Time deadline = sides[0].loop->refresh() + std::chrono::minutes(1);
    while (!done() && sides[0].loop->refresh() < deadline) turn();
  }

  static wire::Header message(std::uint64_t tag, std::size_t size) {
    return wire::header_of(wire::EagerMessage{.key = tag}, {.group = 1, .epoch = 1}, static_cast<std::uint32_t>(size));
  }
  template <typename M>
  bool say(int from, const M& what) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(what, {.epoch = 1}, frame));
    return link(from).send(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
  }
  Link& link(int side) { return *sides[side].recorder.link; }
  Recorder& heard(int side) { return sides[side].recorder; }

  std::shared_ptr<shm::HostSegment> segment;
  Side sides[2];
};

}  // namespace nexar::transport::test
