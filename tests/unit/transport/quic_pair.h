// Two endpoints on loopback, driven by one loop, and handlers that remember what they heard.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "crypto/identity.h"
#include "io/clock.h"
#include "io/epoll_loop.h"
#include "io/random.h"
#include "transport/quic/endpoint.h"
#include "wire/frame.h"
#include "wire/matching_messages.h"
#include "wire/transfer_messages.h"

namespace nexar::transport::test {

// Keeps every frame whole.
class Recorder : public LinkHandler, public Sink {
 public:
  struct Frame {
    wire::Header header;
    std::vector<std::byte> payload;
  };

  void on_ready() override { ready = true; }
  Result<Sink*> on_frame(const wire::Header& header) override {
    if (refuse_frames) return Error(ErrorCode::kRefused, "this test takes no frames");
    frames.push_back({header, {}});
    return static_cast<Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header&) override { return {}; }
  void take(base::ByteView bytes) override { frames.back().payload.insert(frames.back().payload.end(), bytes.begin(), bytes.end()); }
  void on_room(wire::Lane lane) override { room.push_back(lane); }
  void on_end(const LinkEnd& what) override {
    end.emplace(what);
    link = nullptr;
  }

  bool ready = false;
  bool refuse_frames = false;
  std::vector<Frame> frames;
  std::vector<wire::Lane> room;
  std::optional<LinkEnd> end;
  Link* link = nullptr;
};

// Accepts certificates of one authority, or none.
class Verifier : public PeerVerifier {
 public:
  explicit Verifier(const crypto::LocalAuthority& authority) : authority_(authority) {}
  Result<void> verify(const crypto::Certificate& certificate) override {
    if (refusal) return *refusal;
    return crypto::verify(certificate, authority_.authority().certificate(), authority_.authority().certificate().cluster(),
                          io::real_clock().wall());
  }
  std::optional<Error> refusal;

 private:
  const crypto::LocalAuthority& authority_;
};

// One end: its endpoint, and a recorder for each link that it accepts.
struct Side : quic::LinkAcceptor {
  Side(io::Loop& loop, const crypto::LocalAuthority& authority, int number, const io::Address& local = io::Address::loopback_v4(0),
       const crypto::LocalAuthority* trusts = nullptr)
      : verifier(trusts != nullptr ? *trusts : authority) {
    NodeId node;
    node.bytes[0] = static_cast<std::byte>(number);
    const crypto::Identity identity = authority.make_node(node, io::real_clock().wall()).value();
    endpoint = quic::Endpoint::open({loop, io::system_random()}, local, identity, verifier, *this).value();
  }

  LinkHandler* on_link(Link& link) override {
    if (refuse_links) return nullptr;
    accepted.push_back(std::make_unique<Recorder>());
    accepted.back()->link = &link;
    return accepted.back().get();
  }

  bool refuse_links = false;
  Verifier verifier;
  std::vector<std::unique_ptr<Recorder>> accepted;
  std::unique_ptr<quic::Endpoint> endpoint;
};

class QuicTest : public testing::Test {
 protected:
  QuicTest() : loop(io::EpollLoop::open().value()), authority(crypto::LocalAuthority::make({}).value()) {}

  // Runs the loop until `done`, which a test then checks; a minute is far more than anything here takes.
  void run_until(const std::function<bool()>& done) {
    const base::Time deadline = loop->refresh() + std::chrono::minutes(1);
    while (!done() && loop->refresh() < deadline) loop->turn(std::chrono::milliseconds(10));
  }

  void connect(Side& from, Side& to, Recorder& handler) {
    handler.link = from.endpoint->connect(to.endpoint->local_address(), handler).value();
    run_until([&] { return handler.end || (handler.ready && !to.accepted.empty() && to.accepted.back()->ready); });
  }

  // An eager message of some bytes.
  static wire::Header message(std::uint64_t tag, std::size_t size) {
    return wire::header_of(wire::EagerMessage{.key = tag}, {.group = 1, .epoch = 1}, static_cast<std::uint32_t>(size));
  }

  std::unique_ptr<io::EpollLoop> loop;
  crypto::LocalAuthority authority;
};

}  // namespace nexar::transport::test
