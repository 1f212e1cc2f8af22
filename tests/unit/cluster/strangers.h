// Those who come to a seed and should not, and the network between them: what the tests of strangers are played with.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/seed_credentials.h"
#include "cluster/seed_service.h"
#include "cluster/token.h"
#include "crypto/authority.h"
#include "io/clock.h"
#include "io/epoll_loop.h"
#include "io/random.h"
#include "io/udp_socket.h"
#include "transport/quic/endpoint.h"
#include "wire/frame.h"
#include "wire/join_messages.h"

namespace nexar::cluster::test {

// Trusts whomever it reaches.
class Anybody : public transport::PeerVerifier {
  Result<void> verify(const crypto::Certificate&) override { return {}; }
};

// One end of a link, which says what a test tells it to and keeps what it hears.
class Voice : public transport::LinkHandler, private transport::Sink {
 public:
  struct Frame {
    wire::Header header;
    std::vector<std::byte> payload;
  };

  void on_ready() override { ready = true; }
  Result<transport::Sink*> on_frame(const wire::Header& header) override {
    if (header.type == wire::FrameType::kGoodbye) return static_cast<transport::Sink*>(nullptr);
    frames.push_back({header, {}});
    return static_cast<transport::Sink*>(this);
  }
  Result<void> on_frame_end(const wire::Header& header) override {
    if (answer && header.type != wire::FrameType::kGoodbye) answer(frames.back());
    return {};
  }
  void on_room(wire::Lane) override {}
  void on_end(const transport::LinkEnd& what) override {
    link = nullptr;
    end = what;
  }

  template <typename M>
  void say(const M& message) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {}, frame));
    (void)link->send(wire::decode_header(frame).value(), base::ByteView(frame).subspan(wire::kHeaderBytes));
  }

  bool ready = false;
  transport::Link* link = nullptr;
  std::vector<Frame> frames;
  std::optional<transport::LinkEnd> end;
  std::function<void(const Frame&)> answer;

 private:
  void take(base::ByteView bytes) override { frames.back().payload.insert(frames.back().payload.end(), bytes.begin(), bytes.end()); }
};

// A caller without a certificate, with a loop of its own.
class Caller {
 public:
  Caller() : loop(io::EpollLoop::open().value()) {
    endpoint = transport::quic::Endpoint::open_anonymous({*loop, io::system_random()}, io::Address::any_v4(0), anybody_).value();
  }

  Voice& call(const std::string& address) {
    voices.push_back(std::make_unique<Voice>());
    voices.back()->link = endpoint->connect(io::Address::parse(address).value(), *voices.back()).value();
    return *voices.back();
  }

  // Until `done`, which the test then checks; a minute is far more than anything takes.
  void run_until(const std::function<bool()>& done) {
    const base::Time limit = loop->refresh() + std::chrono::minutes(1);
    while (!done() && loop->refresh() < limit) loop->turn(std::chrono::milliseconds(5));
  }

  std::unique_ptr<io::EpollLoop> loop;
  std::vector<std::unique_ptr<Voice>> voices;  // outlive the endpoint

 private:
  Anybody anybody_;

 public:
  std::unique_ptr<transport::quic::Endpoint> endpoint;
};

// Answers like a seed, with whatever key it has, on a thread of its own.
class FalseSeed : private transport::quic::LinkAcceptor {
 public:
  using Answer = std::function<void(Voice&, const Voice::Frame&)>;

  FalseSeed(const crypto::Authority& authority, Answer answer) : answer_(std::move(answer)), loop_(io::EpollLoop::open().value()) {
    endpoint_ = transport::quic::Endpoint::open_to_anybody({*loop_, io::system_random()}, io::Address::loopback_v4(0), authority.key(),
                                                           authority.certificate(), *this)
                    .value();
    address_ = endpoint_->local_address().to_string();
    thread_ = std::thread([this] {
      while (!stop_) loop_->turn(std::chrono::milliseconds(5));
    });
  }
  ~FalseSeed() override { finish(); }

  const std::string& address() const { return address_; }

  // Ends it; what it has heard may be looked at afterwards.
  std::vector<std::unique_ptr<Voice>>& finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return voices_;
  }

 private:
  transport::LinkHandler* on_link(transport::Link& link) override {
    voices_.push_back(std::make_unique<Voice>());
    Voice& voice = *voices_.back();
    voice.link = &link;
    voice.answer = [this, &voice](const Voice::Frame& frame) { answer_(voice, frame); };
    return &voice;
  }

  Answer answer_;
  std::unique_ptr<io::EpollLoop> loop_;
  std::vector<std::unique_ptr<Voice>> voices_;
  std::unique_ptr<transport::quic::Endpoint> endpoint_;
  std::string address_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Passes datagrams between callers and the seed, those that its rule lets through. Each caller has a socket of its own towards the seed.
class Relay : private io::Watcher {
 public:
  // Called on the relay's thread.
  using Rule = std::function<bool(bool to_seed, base::ByteView datagram)>;

  Relay(const std::string& seed, Rule rule)
      : seed_(io::Address::parse(seed).value()),
        rule_(std::move(rule)),
        loop_(io::EpollLoop::open().value()),
        front_(io::UdpSocket::open(io::Address::loopback_v4(0), {.segmentation_offload = false}).value()),
        buffer_(io::UdpSocket::kReceiveBufferMin) {
    address_ = front_.local_address().to_string();
    loop_->watch(front_.fd(), {.read = true}, *this).value();
    thread_ = std::thread([this] {
      while (!stop_) loop_->turn(std::chrono::milliseconds(5));
    });
  }
  ~Relay() override {
    stop_ = true;
    thread_.join();
    loop_->unwatch(front_.fd());
    for (const auto& [caller, path] : paths_) loop_->unwatch(path->socket.fd());
  }

  const std::string& address() const { return address_; }

 private:
  struct Path : io::Watcher {
    Path(Relay& owner, const io::Address& from) : relay(owner), caller(from) {}
    void on_ready(io::Readiness) override {
      relay.pump(socket, [this](base::ByteView datagram, const io::Address&) {
        if (relay.rule_(false, datagram)) (void)relay.front_.send(datagram, datagram.size(), caller);
      });
    }
    Relay& relay;
    io::Address caller;
    io::UdpSocket socket = io::UdpSocket::open(io::Address::loopback_v4(0), {.segmentation_offload = false}).value();
  };

  void on_ready(io::Readiness) override {
    pump(front_, [this](base::ByteView datagram, const io::Address& from) {
      if (!rule_(true, datagram)) return;
      std::unique_ptr<Path>& path = paths_[from];
      if (path == nullptr) {
        path = std::make_unique<Path>(*this, from);
        loop_->watch(path->socket.fd(), {.read = true}, *path).value();
      }
      (void)path->socket.send(datagram, datagram.size(), seed_);
    });
  }

  void pump(io::UdpSocket& socket, const std::function<void(base::ByteView, const io::Address&)>& pass) {
    for (;;) {
      const Result<io::Received> received = socket.receive(buffer_);
      if (!received || received->outcome == io::ReceiveOutcome::kBlocked) return;
      for (base::ByteView rest = received->bytes; !rest.empty();) {
        const std::size_t size = std::min(received->segment, rest.size());
        pass(rest.first(size), received->from);
        rest = rest.subspan(size);
      }
    }
  }

  io::Address seed_;
  Rule rule_;
  std::unique_ptr<io::EpollLoop> loop_;
  io::UdpSocket front_;
  std::vector<std::byte> buffer_;
  std::map<io::Address, std::unique_ptr<Path>> paths_;
  std::string address_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace nexar::cluster::test
