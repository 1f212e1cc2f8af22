#include "transport/quic/packet_size.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

namespace nexar::transport::quic {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFull = 8972;
constexpr base::Duration kTimeout = 20ms;
constexpr base::Duration kSilence = kTimeout * PacketSize::kSilentTimeouts;

base::Time at(base::Duration since_start) { return base::Time(since_start); }

// Full packets vanish from `when` on; returns when small ones are sent instead.
base::Time fall(PacketSize& size, base::Time when) {
  size.sent(when);
  size.expired(kTimeout, when + kSilence);
  return when + kSilence;
}

TEST(PacketSize, IsSmallAfterASilence) {
  PacketSize size(kFull);
  size.sent(at(1s));
  size.expired(kTimeout, at(1s) + kSilence - 1ns);
  EXPECT_EQ(size.bytes(), kFull);
  size.expired(kTimeout, at(1s) + kSilence);
  EXPECT_EQ(size.bytes(), PacketSize::kSmallBytes);
}

TEST(PacketSize, StaysFullWhenNothingIsOnItsWay) {
  PacketSize size(kFull);
  size.expired(kTimeout, at(10s));
  size.sent(at(11s));
  size.acknowledged(true, at(11s));
  size.expired(kTimeout, at(20s));
  EXPECT_EQ(size.bytes(), kFull);
}

TEST(PacketSize, StaysFullWhenThePeerOnlyPauses) {
  PacketSize size(kFull);
  size.sent(at(1s));
  size.expired(1us, at(1s) + PacketSize::kSilenceMin - 1ns);
  size.acknowledged(false, at(2s));
  size.expired(kTimeout, at(2s) + kSilence - 1ns);
  EXPECT_EQ(size.bytes(), kFull);
}

TEST(PacketSize, IsTriedInFullAgainAfterAPauseWhenThePeerAnswers) {
  PacketSize size(kFull);
  const base::Time fallen = fall(size, at(1s));
  size.acknowledged(false, fallen + PacketSize::kFirstPause - 1ns);
  EXPECT_EQ(size.bytes(), PacketSize::kSmallBytes);
  size.acknowledged(false, fallen + PacketSize::kFirstPause);
  EXPECT_EQ(size.bytes(), kFull);
}

TEST(PacketSize, PausesGrowToTheirLimitWhileFullPacketsFail) {
  PacketSize size(kFull);
  base::Time now = at(1s);
  base::Duration pause = PacketSize::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    now = fall(size, now);
    size.acknowledged(true, now + pause - 1ns);
    ASSERT_EQ(size.bytes(), PacketSize::kSmallBytes) << i;
    now += pause;
    size.acknowledged(true, now);
    ASSERT_EQ(size.bytes(), kFull) << i;
    pause = std::min(2 * pause, PacketSize::kLongestPause);
  }
}

TEST(PacketSize, ASilenceLongAfterTheLastBeginsWithTheFirstPause) {
  PacketSize size(kFull);
  base::Time now = at(1s);
  for (int i = 0; i < 5; ++i) {
    now = fall(size, now) + PacketSize::kLongestPause;
    size.acknowledged(true, now);
  }
  now = fall(size, now + 1h);
  size.acknowledged(true, now + PacketSize::kFirstPause);
  EXPECT_EQ(size.bytes(), kFull);
}

TEST(PacketSize, LearnsFromTheKernelWhatFullIs) {
  PacketSize size(kFull);
  size.set_full(1400);
  EXPECT_EQ(size.bytes(), 1400u);
}

}  // namespace
}  // namespace nexar::transport::quic
