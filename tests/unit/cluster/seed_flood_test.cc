// Floods at a seed: worlds form meanwhile, memory stays within bounds and is given back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/join_fixture.h"
#include "cluster/seed_process.h"
#include "cluster/strangers.h"

namespace nexar::cluster::test {
namespace {

// Resident memory and allocations say nothing where a sanitizer keeps its own books.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryCounts = false;
constexpr int kShare = 10;  // of the floods, which take that much longer there
#else
constexpr bool kMemoryCounts = true;
constexpr int kShare = 1;
#endif

constexpr int kWorld = 4;
constexpr long kBytesMore = 8l << 20;
constexpr long kBytesKept = 512l << 10;  // pools that stay for the next connections

class SeedFloodTest : public JoinTest {
 protected:
  SeedOptions seed_options() const {
    return {.listen = "127.0.0.1:0", .world = kWorld, .credentials = credentials(), .log = LogLevel::kOff};
  }

  // What the first handshake brings into memory and stays there: code above all.
  static void warm_up(const SeedProcess& seed) {
    Caller caller;
    Voice& voice = caller.call(seed.address());
    caller.run_until([&] { return voice.ready; });
    voice.say(wire::JoinProof{});
    caller.run_until([&] { return voice.end.has_value(); });
  }

  // Lets `flood` loose on a seed, and a world form when that is under way. It calls back when it is.
  void run(const SeedProcess& seed, const std::function<void(const std::function<void()>& under_way)>& flood) {
    warm_up(seed);
    const long allocated = seed.allocated();
    const long resident = seed.resident();
    seed.reset_peak();
    std::atomic<bool> begun = false;
    std::thread attacker([&] {
      flood([&] { begun = true; });
      begun = true;
    });
    while (!begun) std::this_thread::yield();
    expect_world(join_all(seed.address(), kWorld));
    attacker.join();
    if (!kMemoryCounts) return;
    EXPECT_LE(seed.peak() - resident, kBytesMore);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (seed.allocated() > allocated + kBytesKept && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_LE(seed.allocated(), allocated + kBytesKept) << "memory is not given back";
    RecordProperty("peak_bytes", std::to_string(seed.peak() - resident));
  }
};

TEST_F(SeedFloodTest, OfRandomDatagrams) {
  const SeedProcess seed(seed_options());
  run(seed, [&](const auto& under_way) {
    io::UdpSocket socket = io::UdpSocket::open(io::Address::loopback_v4(0)).value();
    io::SeededRandom random(3);
    std::array<std::byte, 1500> datagram;
    random.fill(datagram);
    for (int i = 0; i < 100'000 / kShare; ++i) {
      if (i == 1000) under_way();
      random.fill(std::span(datagram).first(32));
      if (i % 2 == 0) {  // looks like a first packet of QUIC version 1
        datagram[0] |= std::byte{0xc0};
        for (std::size_t at = 1; at < 5; ++at) datagram[at] = at == 4 ? std::byte{1} : std::byte{0};
        datagram[5] = std::byte{8};
      }
      const std::size_t size = 1 + random.number<std::uint16_t>() % datagram.size();
      (void)socket.send(std::span(datagram).first(i % 4 == 0 ? 1200 : size), datagram.size(), io::Address::parse(seed.address()).value());
    }
  });
}

TEST_F(SeedFloodTest, OfValidFirstPackets) {
  const SeedProcess seed(seed_options());
  // Made before, because making one costs more than reading it.
  std::vector<std::vector<std::byte>> packets;
  io::UdpSocket sink = io::UdpSocket::open(io::Address::loopback_v4(0)).value();
  std::vector<std::byte> buffer(io::UdpSocket::kReceiveBufferMin);
  while (packets.size() < 10'000 / kShare) {
    Caller caller;
    for (int i = 0; i < 20; ++i) {
      caller.call(sink.local_address().to_string());
      caller.endpoint->flush();
      for (;;) {
        const Result<io::Received> received = sink.receive(buffer);
        if (!received || received->outcome != io::ReceiveOutcome::kDatagrams) break;
        packets.emplace_back(received->bytes.begin(), received->bytes.end());
      }
    }
  }
  run(seed, [&](const auto& under_way) {
    const io::Address target = io::Address::parse(seed.address()).value();
    for (std::size_t i = 0; i < packets.size(); ++i) {
      if (i == 100) under_way();
      (void)sink.send(packets[i], packets[i].size(), target);
    }
  });
}

TEST_F(SeedFloodTest, OfHandshakesThatStayHalfOpen) {
  const SeedProcess seed(seed_options());
  // The first packet of each and the first with a token come through; what would complete the handshake does not.
  std::set<std::pair<std::string, bool>> seen;
  const Relay relay(seed.address(), [&](bool to_seed, base::ByteView datagram) {
    if (!to_seed) return true;
    const auto number = [&](std::size_t at) { return at < datagram.size() ? std::to_integer<std::size_t>(datagram[at]) : 0; };
    if ((number(0) & 0xf0) != 0xc0) return false;  // no first packet
    const std::size_t id = 6 + number(5) + 1;      // where the sender's own id begins
    const std::size_t size = number(id - 1);
    if (id + size >= datagram.size()) return false;
    const bool has_token = number(id + size) != 0;
    return seen.emplace(std::string(reinterpret_cast<const char*>(datagram.data()) + id, size), has_token).second;
  });
  run(seed, [&](const auto& under_way) {
    for (int batch = 0; batch < 20; ++batch) {
      if (batch == 5) under_way();
      Caller caller;  // gone after a moment, without a word: each handshake is left as it is
      for (int i = 0; i < 50 / kShare; ++i) caller.call(relay.address());
      const base::Time end = caller.loop->refresh() + std::chrono::milliseconds(30);
      caller.run_until([&] { return caller.loop->now() >= end; });
    }
  });
}

}  // namespace
}  // namespace nexar::cluster::test
