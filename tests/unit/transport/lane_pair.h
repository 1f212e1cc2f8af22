// Two ends of TCP lanes on loopback, driven by one loop, and what they remember.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "io/clock.h"
#include "io/epoll_loop.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/listener.h"
#include "wire/frame.h"
#include "wire/transfer_messages.h"

namespace nexar::transport::test {

using Bytes = std::vector<std::byte>;

inline Bytes random_bytes(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline wire::Header bulk_header(std::uint64_t number, std::size_t size) {
  const wire::Bulk bulk{.transfer = 1 + number, .stripe = 0, .generation = 0, .offset = number};
  return wire::header_of(bulk, {.group = 1, .epoch = 1}, static_cast<std::uint32_t>(size));
}

// One end: sends what was queued, and keeps every frame whole.
class LaneEndpoint : public tcp::LaneHandler, public tcp::LaneAcceptor, public BulkSource, public Sink {
 public:
  enum class Taking { kTake, kPlace, kScatter };
  struct Received {
    wire::Header header;
    Bytes payload;
    std::size_t filled = 0;
    bool whole = false;
  };

  void queue(Bytes payload) {
    outgoing.push_back(std::move(payload));
    if (lane) lane->bulk_ready();
  }

  // LaneHandler
  void on_ready() override {
    ++readies;
    lane->set_bulk_source(this);
  }
  Result<Sink*> on_frame(const wire::Header& header) override {
    EXPECT_FALSE(end);
    if (refuse_frames) return Error(ErrorCode::kRefused, "this test takes no frames");
    frames.push_back({header, Bytes(header.length)});
    if (when_frame) when_frame();
    return drop_payload ? static_cast<Sink*>(nullptr) : static_cast<Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header& header) override {
    EXPECT_FALSE(end);
    EXPECT_EQ(header, frames.back().header);
    EXPECT_EQ(frames.back().filled, drop_payload ? 0 : header.length);
    frames.back().whole = true;
    ++whole;
    return {};
  }
  void on_end(const LinkEnd& what) override {
    EXPECT_FALSE(end) << "a lane ends once";
    end.emplace(what);
    lane.reset();
  }

  // LaneAcceptor
  void on_lane(const wire::LaneTicket&, std::unique_ptr<tcp::Lane> accepted) override {
    lane = std::move(accepted);
    lane->start(*this);
  }

  // BulkSource: the payload lies in memory that is spoiled as soon as it may be.
  std::optional<Frame> next(std::size_t bytes_max) override {
    EXPECT_FALSE(end);
    spoil();
    if (outgoing.empty()) return std::nullopt;
    current_ = std::move(outgoing.front());
    outgoing.pop_front();
    EXPECT_LE(current_.size(), bytes_max);
    return Frame{bulk_header(sent++, current_.size()), current_};
  }
  bool has_next() const override { return !outgoing.empty(); }
  void spoil() { std::fill(current_.begin(), current_.end(), std::byte{0xee}); }

  // Sink
  void take(base::ByteView bytes) override {
    EXPECT_FALSE(end);
    Received& frame = frames.back();
    ASSERT_LE(bytes.size(), frame.payload.size() - frame.filled);
    std::copy(bytes.begin(), bytes.end(), frame.payload.begin() + static_cast<std::ptrdiff_t>(frame.filled));
    frame.filled += bytes.size();
    taken += bytes.size();
  }
  std::size_t place(std::size_t bytes, std::span<base::ByteSpan> regions) override {
    EXPECT_FALSE(end);
    if (taking == Taking::kTake) return 0;
    const base::ByteSpan rest = base::ByteSpan(frames.back().payload).subspan(frames.back().filled, bytes);
    if (taking == Taking::kPlace || bytes < 3) {
      regions[0] = rest;
      return 1;
    }
    const std::size_t third = bytes / 3;
    regions[0] = rest.first(third);
    regions[1] = rest.subspan(third, third);
    regions[2] = rest.subspan(2 * third);
    return 3;
  }
  void placed(std::size_t bytes) override {
    EXPECT_FALSE(end);
    frames.back().filled += bytes;
    placed_bytes += bytes;
  }

  Taking taking = Taking::kPlace;
  bool refuse_frames = false;
  bool drop_payload = false;
  std::function<void()> when_frame;
  std::deque<Bytes> outgoing;
  std::uint64_t sent = 0;
  std::vector<Received> frames;
  std::size_t whole = 0;
  std::size_t taken = 0;
  std::size_t placed_bytes = 0;
  int readies = 0;
  std::optional<LinkEnd> end;
  std::unique_ptr<tcp::Lane> lane;

 private:
  Bytes current_;
};

// Counts (key, number) pairs.
class SealCounter : public tcp::SealObserver {
 public:
  void on_seal(const crypto::Sha256& key, std::uint64_t number) override {
    ++seals;
    keys.insert(key);
    if (!pairs.insert({key, number}).second) ++repeated;
  }
  std::uint64_t seals = 0;
  std::uint64_t repeated = 0;
  std::set<crypto::Sha256> keys;
  std::set<std::pair<crypto::Sha256, std::uint64_t>> pairs;
};

class LaneTest : public testing::Test {
 protected:
  LaneTest() : loop(io::EpollLoop::open().value()) { listener = tcp::Listener::open(*loop, io::Address::loopback_v4(0), options).value(); }

  // Runs the loop until `done`, which a test then checks; a minute is far more than anything here takes.
  void run_until(const std::function<bool()>& done) {
    const base::Time deadline = loop->refresh() + std::chrono::minutes(1);
    while (!done() && loop->refresh() < deadline) {
      loop->turn(std::chrono::milliseconds(10));
      client.spoil();  // what a lane wants to keep it has copied when the turn is over
      server.spoil();
    }
  }

  tcp::LaneKeys keys(tcp::Side side, std::optional<tcp::LaneTerms> other_terms = {}) const {
    return tcp::LaneKeys::derive(material, other_terms.value_or(terms), side, limits);
  }

  static wire::LaneTicket ticket(unsigned number) {
    wire::LaneTicket made{};
    base::store_le(made.data(), number);
    return made;
  }

  void expect(unsigned number = 1) { ASSERT_TRUE(listener->expect(ticket(number), keys(tcp::Side::kListens), server)); }
  void dial(const io::Address& to, unsigned number = 1, std::optional<tcp::LaneTerms> other_terms = {}) {
    client.lane = tcp::Lane::connect(*loop, to, ticket(number), keys(tcp::Side::kConnects, other_terms), client, options).value();
  }

  // A lane, ready at both ends.
  void connect() {
    expect();
    dial(listener->local_address());
    run_until([&] { return (client.readies > 0 && server.readies > 0) || client.end || server.end; });
    ASSERT_EQ(client.readies, 1);
    ASSERT_EQ(server.readies, 1);
  }

  // A lane of the server's alone: the other end is a socket that does nothing by itself.
  io::StreamSocket connect_socket() {
    io::StreamListener plain = io::StreamListener::listen(io::Address::loopback_v4(0), {.receive_buffer_bytes = 16u << 10}).value();
    io::StreamSocket socket = io::StreamSocket::connect(plain.local_address(), {.receive_buffer_bytes = 16u << 10}).value();
    std::optional<io::StreamSocket> accepted;
    run_until([&] { return (accepted = plain.accept().value()).has_value(); });
    server.on_lane({}, tcp::Lane::accept(*loop, *std::move(accepted), keys(tcp::Side::kListens), options));
    return socket;
  }

  // Every frame that `to` has whole is the one that was sent.
  static void expect_frames(const LaneEndpoint& to, const std::vector<Bytes>& sent) {
    ASSERT_EQ(to.whole, sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(to.frames[i].header, bulk_header(i, sent[i].size()));
      EXPECT_TRUE(to.frames[i].payload == sent[i]) << "frame " << i;
    }
  }

  std::unique_ptr<io::EpollLoop> loop;
  tcp::LaneOptions options;
  tcp::LaneTerms terms{.name = {.lane = 2, .generation = 7}};
  tcp::RecordLimits limits;
  Bytes material = random_bytes(tcp::kMaterialBytes, 42);
  std::unique_ptr<tcp::Listener> listener;
  LaneEndpoint client;
  LaneEndpoint server;
};

}  // namespace nexar::transport::test
