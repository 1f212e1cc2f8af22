// Questions and answers over loopback.
#include "doctor/probe.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "doctor/echo.h"
#include "doctor/introduction.h"
#include "doctor/judge_path.h"
#include "doctor/surroundings.h"
#include "io/stream_socket.h"

namespace nexar::tool::doctor {
namespace {

using namespace std::chrono_literals;

// A busy machine may take its time; nothing waits this long when all is well.
constexpr auto kLong = 20s;

TEST(Probe, FindsAnEchoWithNoLossAndThePacketsOfLoopback) {
  const EchoDialect dialect(77, 3);
  const auto echo = Echo::open({}, dialect).value();
  Prober prober = Prober::open(io::Address::loopback_v4(echo->udp_port()), dialect).value();
  const Path path = prober.examine(kLong);
  EXPECT_EQ(path.reach, Reach::kAnswered);
  EXPECT_EQ(path.asked, 100);
  EXPECT_LT(path.lost, 100);
  EXPECT_GT(path.round_trip, 0ns);
  EXPECT_EQ(path.mtu_passed, path.mtu_assumed);
  EXPECT_EQ(reach_tcp(io::Address::loopback_v4(echo->tcp_port()), kLong), Reach::kAnswered);
}

TEST(Probe, IsNotAnsweredByAnotherRunOrRank) {
  const auto echo = Echo::open({}, EchoDialect(77, 3)).value();
  for (const EchoDialect& other : {EchoDialect(78, 3), EchoDialect(77, 4)}) {
    Prober prober = Prober::open(io::Address::loopback_v4(echo->udp_port()), other).value();
    EXPECT_EQ(prober.reach(100ms), Reach::kSilent);
  }
}

TEST(Probe, HearsThatNobodyIsThere) {
  io::Address udp;
  io::Address tcp;
  {
    udp = io::UdpSocket::open(io::Address::loopback_v4(0)).value().local_address();
    tcp = io::StreamListener::listen(io::Address::loopback_v4(0)).value().local_address();
  }
  const QuicDialect dialect;
  Prober prober = Prober::open(udp, dialect).value();
  EXPECT_EQ(prober.reach(100ms), Reach::kRefused);
  EXPECT_EQ(reach_tcp(tcp, kLong), Reach::kRefused);
}

TEST(Probe, TakesOnlyAnAnswerToItsOwnVersionQuestionForOne) {
  const QuicDialect dialect;
  const std::vector<std::byte> question = dialect.question(258, 1200);
  EXPECT_EQ(question.size(), 1200u);
  EXPECT_FALSE(dialect.answered(question));
  // What RFC 8999 makes of it: a version of 0, and the two ids the other way around.
  const unsigned char answer[] = {0x80, 0, 0, 0, 0, 4, 2, 1, 0, 0, 8, 'd', 'o', 'c', 't', 'o', 'r', '?', '?', 0, 0, 0, 1};
  EXPECT_EQ(dialect.answered(std::as_bytes(std::span(answer))), 258u);
  EXPECT_FALSE(dialect.answered(std::as_bytes(std::span(answer)).first(9)));
}

TEST(Probe, LossesAndPacketsThatVanishAreJudged) {
  Path path{.reach = Reach::kAnswered, .round_trip = 1500us, .asked = 100, .lost = 0, .mtu_assumed = 9000, .mtu_passed = 9000};
  EXPECT_EQ(judge_loss("x", path).verdict, Verdict::kOk);
  EXPECT_EQ(judge_size("x", path, "eth0").verdict, Verdict::kOk);
  path.lost = 1;
  path.mtu_passed = 1500;
  EXPECT_EQ(judge_loss("x", path).verdict, Verdict::kWarning);
  EXPECT_EQ(judge_size("x", path, "eth0").verdict, Verdict::kWrong);
  path.lost = 10;
  EXPECT_EQ(judge_loss("x", path).verdict, Verdict::kWrong);
  EXPECT_EQ(judge_loss("x", path).seen, "90 of 100 packets answered, round trip 1.50 ms");
}

TEST(Ports, AreOneOrARange) {
  EXPECT_EQ(parse_ports("").value().last, 0);
  EXPECT_EQ(parse_ports("7070").value().last, 7070);
  EXPECT_EQ(parse_ports("7070-7080").value().first, 7070);
  for (const char* bad : {"0", "x", "70000", "2-1", "1-", "-1", "1-2-3", " 1"}) EXPECT_FALSE(parse_ports(bad)) << bad;
}

TEST(Introduction, ComesAsItWasSentAndNothingElseIsTakenForOne) {
  const Introduction sent{~std::uint64_t{0}, 1, 65535, {"10.0.0.1:1", "[fd00::1]:1"}, 3.5e9, 1.7e9};
  const std::string text = to_text(sent);
  const Introduction got = introduction_from(std::as_bytes(std::span(text))).value();
  EXPECT_EQ(got.run, sent.run);
  EXPECT_EQ(got.tcp, sent.tcp);
  EXPECT_EQ(got.addresses, sent.addresses);
  EXPECT_EQ(got.clock, sent.clock);
  for (const std::string bad : {"", "{}", "[1]", R"({"run":"x"})"})
    EXPECT_EQ(introduction_from(std::as_bytes(std::span(bad))).error().code(), ErrorCode::kMismatch) << bad;
}

}  // namespace
}  // namespace nexar::tool::doctor
