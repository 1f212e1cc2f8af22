// Strangers at the seed, and in the network before it: each is refused or ignored, and the world forms meanwhile.
#include "cluster/strangers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/join_fixture.h"
#include "cluster/join_proof.h"
#include "cluster/node_address.h"
#include "wire/link_messages.h"
#include "wire/matching_messages.h"

namespace nexar::cluster::test {
namespace {

class StrangersTest : public JoinTest {
 protected:
  crypto::Authority authority() const {
    SeedCredentials own = credentials();
    return crypto::Authority::make(crypto::PrivateKey::parse(own.content().key.der().view()).value(), own.content().cluster).value();
  }

  // A request like that of a node, for a key that can ask again.
  wire::JoinRequest request() const {
    wire::JoinRequest made;
    made.config_digest = Config{}.digest();
    made.agreed = Config{}.agreed();
    const auto csr = crypto::CertificateRequest::make(crypto::PrivateKey::generate().value()).value();
    made.request.assign(csr.der().begin(), csr.der().end());
    made.name = "a node";
    return made;
  }

  // Says the proof of a node, and waits for the seed's.
  void prove(Caller& caller, Voice& voice) const {
    caller.run_until([&] { return voice.ready || voice.end; });
    ASSERT_TRUE(voice.ready);
    voice.say(wire::JoinProof{join_proof(JoinRole::kWorker, token().secret.view(), token().cluster, *voice.link).value()});
    caller.run_until([&] { return !voice.frames.empty() || voice.end; });
    ASSERT_EQ(voice.frames.size(), 1u);
    ASSERT_EQ(voice.frames[0].header.type, wire::FrameType::kSeedProof);
  }

  static std::string reason(const Voice& voice) { return voice.end ? voice.end->error.sentence() : "not ended"; }
};

TEST_F(StrangersTest, WithTheWrongSecretAreRefused) {
  const Seed seed = start_seed(1);
  JoinClient::Options wrong = options(seed.address());
  wrong.token.secret.span()[31] ^= std::byte{1};
  EXPECT_EQ(join(std::move(wrong)).error().to_string(), "refused: the token is not this cluster's");
  EXPECT_TRUE(join(options(seed.address())));
}

TEST_F(StrangersTest, WithTheTokenOfAnotherClusterLeaveAtOnceNamingBothKeys) {
  const Seed seed = start_seed(1);
  JoinClient::Options wrong = options(seed.address());
  wrong.token = SeedCredentials::make().value().content().token();
  const std::string theirs = to_hex(wrong.token.authority).substr(0, 16);
  const Result<Joined> refused = join(std::move(wrong));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kRefused);
  EXPECT_NE(
      refused.error().sentence().find("the seed has key " + to_hex(token().authority).substr(0, 16) + ", and the token names " + theirs),
      std::string::npos)
      << refused.error().to_string();

  JoinClient::Options renamed = options(seed.address());
  renamed.token.cluster.bytes[0] ^= std::byte{1};
  EXPECT_EQ(join(std::move(renamed)).error().code(), ErrorCode::kRefused);
  EXPECT_TRUE(join(options(seed.address())));
}

TEST_F(StrangersTest, ThatStaySilentAreDroppedAndDelayNobody) {
  const Seed seed = start_seed(2);
  Caller caller;
  Voice& silent = caller.call(seed.address());
  caller.run_until([&] { return silent.ready; });
  expect_world(join_all(seed.address(), 2));
  EXPECT_FALSE(silent.end) << "the world did not wait for it";
  caller.run_until([&] { return silent.end.has_value(); });
  EXPECT_NE(reason(silent).find("nothing was heard for too long"), std::string::npos) << reason(silent);
}

TEST_F(StrangersTest, ThatKnowTheSecretAndAskNothingAreDropped) {
  const Seed seed = start_seed(1);
  Caller caller;
  Voice& silent = caller.call(seed.address());
  prove(caller, silent);
  EXPECT_TRUE(join(options(seed.address())));
  caller.run_until([&] { return silent.end.has_value(); });
  EXPECT_NE(reason(silent).find("nothing was heard for too long"), std::string::npos) << reason(silent);
}

TEST_F(StrangersTest, ThatSendFramesOutOfPlaceAreDisconnectedWithAReason) {
  const Seed seed = start_seed(1);
  Caller caller;
  const auto after = [&](auto say) {
    Voice& voice = caller.call(seed.address());
    caller.run_until([&] { return voice.ready; });
    say(voice);
    caller.run_until([&] { return voice.end.has_value(); });
    return reason(voice);
  };
  const auto expect_out_of_place = [](const std::string& text) {
    EXPECT_NE(text.find("frame came where it has no place"), std::string::npos) << text;
  };
  expect_out_of_place(after([](Voice& voice) { voice.say(wire::Hello{}); }));
  expect_out_of_place(after([](Voice& voice) { voice.say(wire::Ping{}); }));
  expect_out_of_place(after([&](Voice& voice) { voice.say(request()); }));
  expect_out_of_place(after([](Voice& voice) { voice.say(wire::SeedProof{}); }));
  expect_out_of_place(after([](Voice& voice) {
    const std::vector<std::byte> payload(60'000);
    (void)voice.link->send(wire::header_of(wire::EagerMessage{}, {}, static_cast<std::uint32_t>(payload.size())), payload);
  }));
  // And with the secret: a request that is none, and one that comes twice.
  expect_out_of_place(after([&](Voice& voice) {
    prove(caller, voice);
    voice.say(request());
    voice.say(request());
  }));
  // Who has not said where it listens does not wait, and has nothing to ask.
  expect_out_of_place(after([](Voice& voice) { voice.say(wire::JoinAsk{}); }));
  expect_out_of_place(after([&](Voice& voice) {
    prove(caller, voice);
    voice.say(wire::JoinAsk{});
  }));
  EXPECT_NE(after([&](Voice& voice) {
              prove(caller, voice);
              wire::JoinRequest broken = request();
              broken.request.back() ^= std::byte{1};
              voice.say(broken);
            }).find("ended the link"),
            std::string::npos);
  EXPECT_TRUE(join(options(seed.address()))) << "nobody else noticed, and no place was taken";
}

TEST_F(StrangersTest, InTheNetworkThatRelayDatagramsAreJustANetwork) {
  const Seed seed = start_seed(2);
  const Relay relay(seed.address(), [](bool, base::ByteView) { return true; });
  expect_world(join_all(relay.address(), 2));
}

TEST_F(StrangersTest, InTheNetworkThatLoseDatagramsCostOnlyTime) {
  const Seed seed = start_seed(4);
  io::SeededRandom random(7);
  const Relay relay(seed.address(), [&](bool, base::ByteView) { return random.number<std::uint8_t>() % 5 != 0; });
  expect_world(join_all(relay.address(), 4));
}

TEST_F(StrangersTest, InTheMiddleWithACertificateOfTheirOwnAreRefused) {
  const SeedCredentials other = SeedCredentials::make().value();
  const auto own = crypto::Authority::make(crypto::PrivateKey::parse(other.content().key.der().view()).value(), token().cluster).value();
  FalseSeed seed(own, [](Voice&, const Voice::Frame&) {});
  const Result<Joined> refused = join(options(seed.address()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kRefused);
  for (const auto& voice : seed.finish()) EXPECT_TRUE(voice->frames.empty()) << "something was said to a false seed";
}

TEST_F(StrangersTest, ThatReflectAProofAreRefusedAndHearNothingMore) {
  const crypto::Authority stolen = authority();  // the key, but not the secret
  FalseSeed seed(stolen, [](Voice& voice, const Voice::Frame& frame) {
    wire::SeedProof reflected;
    std::ranges::copy(frame.payload, reflected.proof.begin());
    voice.say(reflected);
  });
  const Result<Joined> refused = join(options(seed.address()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kRefused);
  EXPECT_NE(refused.error().sentence().find("does not know the secret"), std::string::npos) << refused.error().to_string();
  const auto& voices = seed.finish();
  ASSERT_EQ(voices.size(), 1u);
  EXPECT_EQ(voices[0]->frames.size(), 1u) << "nothing but the proof was said";
}

TEST_F(StrangersTest, ThatPassAProofOnAreRefusedByTheSeed) {
  const Seed seed = start_seed(1);
  const crypto::Authority stolen = authority();
  std::atomic<bool> heard = false;
  wire::JoinProof taken;
  FalseSeed thief(stolen, [&](Voice&, const Voice::Frame& frame) {
    std::ranges::copy(frame.payload, taken.proof.begin());
    heard = true;
  });
  std::thread victim([&] { EXPECT_FALSE(join(options(thief.address(), std::chrono::seconds(1)))); });
  while (!heard) std::this_thread::yield();
  thief.finish();
  Caller caller;
  Voice& voice = caller.call(seed.address());
  caller.run_until([&] { return voice.ready; });
  voice.say(taken);
  caller.run_until([&] { return voice.end.has_value(); });
  ASSERT_EQ(voice.frames.size(), 1u);
  EXPECT_EQ(voice.frames[0].header.type, wire::FrameType::kJoinRefuse);
  victim.join();
}

TEST_F(StrangersTest, AJoinWhoseAnswerWasLostIsTheSameWhenItIsRepeated) {
  const Seed seed = start_seed(2);
  const wire::JoinRequest asked = request();
  std::vector<std::vector<std::byte>> answers;
  for (int i = 0; i < 3; ++i) {
    Caller caller;  // vanishes without a word
    Voice& voice = caller.call(seed.address());
    prove(caller, voice);
    voice.say(asked);
    caller.run_until([&] { return voice.frames.size() == 2 || voice.end; });
    ASSERT_EQ(voice.frames.size(), 2u) << reason(voice);
    answers.push_back(voice.frames[1].payload);
  }
  EXPECT_EQ(answers[1], answers[0]) << "node, rank and certificate are the same";
  EXPECT_EQ(answers[2], answers[0]);
}

TEST_F(StrangersTest, AMemberAsksWhoIsMissingOnce) {
  const Seed seed = start_seed(2);
  Caller caller;
  Voice& voice = caller.call(seed.address());
  prove(caller, voice);
  voice.say(request());
  caller.run_until([&] { return voice.frames.size() == 2 || voice.end; });
  voice.say(wire::JoinReady{{to_wire(io::Address::loopback_v4(4711))}});
  voice.say(wire::JoinAsk{});
  caller.run_until([&] { return voice.frames.size() == 3 || voice.end; });
  ASSERT_EQ(voice.frames.size(), 3u) << reason(voice);
  const auto state = wire::decode_frame<wire::JoinState>(voice.frames[2].header, voice.frames[2].payload);
  ASSERT_TRUE(state) << state.error().to_string();
  EXPECT_EQ(state->error.sentence().substr(0, 21), "1 of 2 nodes have com");
  EXPECT_GT(state->left_ns, 0u);
  EXPECT_LE(state->left_ns, 60'000'000'000u);
  voice.say(wire::JoinAsk{});
  caller.run_until([&] { return voice.end.has_value(); });
  EXPECT_NE(reason(voice).find("frame came where it has no place"), std::string::npos) << reason(voice);
}

// Real time, and what a test adds to it.
class JumpingClock : public io::Clock {
 public:
  base::Time now() const override { return io::real_clock().now() + offset.load(); }
  std::chrono::sys_seconds wall() const override { return io::real_clock().wall(); }
  std::atomic<base::Duration> offset{base::Duration::zero()};
};

TEST_F(StrangersTest, ANodeWhoseLinkWasEndedByTheSeedComesAgain) {
  JumpingClock clock;
  const auto loop = io::EpollLoop::open(clock).value();
  const auto service =
      SeedService::open({*loop, io::system_random(), clock},
                        {io::Address::loopback_v4(0), 1, std::chrono::seconds(60),
                         parse_seed_file(format_seed_file(credentials().content())).value(), base::Logger(LogLevel::kOff, {})},
                        [](const Result<void>&) {})
          .value();
  std::atomic<bool> done = false;
  std::atomic<bool> dropped = false;
  Result<Joined> joined = Error(ErrorCode::kInternal, "not yet");
  std::thread node([&] {
    joined = join(options(service->address().to_string()), [&](JoinClient&) {
      clock.offset = kReadyTimeout;
      while (!dropped) std::this_thread::yield();
    });
    done = true;
  });
  while (!done) {
    loop->turn(std::chrono::milliseconds(5));
    dropped = service->counters().dropped > 0;
  }
  node.join();
  EXPECT_TRUE(joined) << joined.error().to_string();
  EXPECT_EQ(service->counters().dropped, 1u);
}

TEST_F(StrangersTest, ThatCompleteTheirHandshakesMakeWayForOthers) {
  const Seed seed = start_seed(2);
  Caller caller;
  for (std::size_t i = 0; i < kStrangersMax + 8; ++i) {
    Voice& voice = caller.call(seed.address());
    caller.run_until([&] { return voice.ready || voice.end; });
  }
  caller.run_until([&] { return std::ranges::count_if(caller.voices, [](const auto& voice) { return voice->end.has_value(); }) >= 8; });
  EXPECT_NE(reason(*caller.voices[0]).find("others are waiting"), std::string::npos) << reason(*caller.voices[0]);
  expect_world(join_all(seed.address(), 2));
}

}  // namespace
}  // namespace nexar::cluster::test
