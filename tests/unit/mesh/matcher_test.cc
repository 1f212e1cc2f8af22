#include "mesh/matcher.h"

#include <algorithm>
#include <deque>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace nexar::mesh {
namespace {

Receive receive_of(Rank source, std::optional<Tag> tag, GroupId group = 1) {
  Receive receive;
  receive.group = group;
  receive.source = source;
  receive.tag = tag;
  return receive;
}

Arrival eager(Rank source, Tag tag, std::uint64_t bytes = 0) {
  Arrival arrival;
  arrival.source = source;
  arrival.tag = tag;
  arrival.bytes = bytes;
  arrival.complete = true;
  return arrival;
}

TEST(Matcher, KeepsAnEarlyMessageUntilItsReceiveIsPosted) {
  Matcher matcher;
  EXPECT_EQ(matcher.match(1, 0, 7), nullptr);
  matcher.keep(1, eager(0, 7, 42));
  Receive other = receive_of(0, 8);
  EXPECT_EQ(matcher.post(other), nullptr);
  Receive receive = receive_of(0, 7);
  const std::unique_ptr<Arrival> arrival = matcher.post(receive);
  ASSERT_NE(arrival, nullptr);
  EXPECT_EQ(arrival->bytes, 42u);
  EXPECT_EQ(matcher.arrivals(), 0u);
  EXPECT_EQ(matcher.posted(), 1u);
}

TEST(Matcher, GivesAMessageToTheReceiveThatWasPostedFirst) {
  Matcher matcher;
  Receive wild = receive_of(kAnySource, std::nullopt);
  Receive exact = receive_of(0, 7);
  EXPECT_EQ(matcher.post(exact), nullptr);
  EXPECT_EQ(matcher.post(wild), nullptr);
  EXPECT_EQ(matcher.match(1, 0, 7), &exact);
  EXPECT_EQ(matcher.match(1, 0, 7), &wild);
  EXPECT_EQ(matcher.match(1, 0, 7), nullptr);
}

TEST(Matcher, DoesNotMixGroups) {
  Matcher matcher;
  Receive receive = receive_of(kAnySource, std::nullopt, 2);
  EXPECT_EQ(matcher.post(receive), nullptr);
  EXPECT_EQ(matcher.match(1, 0, 7), nullptr);
  EXPECT_EQ(matcher.match(2, 0, 7), &receive);
}

TEST(Matcher, ACancelledReceiveMatchesNothing) {
  Matcher matcher;
  Receive exact = receive_of(0, 7);
  Receive wild = receive_of(kAnySource, 7);
  matcher.post(exact);
  matcher.post(wild);
  EXPECT_TRUE(matcher.cancel(exact));
  EXPECT_TRUE(matcher.cancel(wild));
  EXPECT_FALSE(matcher.cancel(exact));
  EXPECT_EQ(matcher.match(1, 0, 7), nullptr);
  EXPECT_EQ(matcher.posted(), 0u);
}

TEST(Matcher, ALostSourceTakesItsReceivesAndAnnouncementsButNotItsWholeMessages) {
  Matcher matcher;
  Receive only_it = receive_of(3, std::nullopt);
  Receive anybody = receive_of(kAnySource, 9);
  matcher.post(only_it);
  matcher.post(anybody);
  matcher.keep(1, eager(3, 5));
  Arrival announced = eager(3, 6);
  announced.form = Arrival::Form::kAnnounced;
  announced.complete = false;
  matcher.keep(1, std::move(announced));
  EXPECT_EQ(matcher.drop_source(3), std::vector<Receive*>{&only_it});
  EXPECT_EQ(matcher.arrivals(), 1u);
  EXPECT_NE(matcher.find(1, 3, 5), nullptr);
  EXPECT_EQ(matcher.match(1, 2, 9), &anybody);
}

// Against a plain list that is searched from the front.
TEST(Matcher, BehavesLikeTwoListsSearchedInOrder) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Matcher matcher;
    std::deque<Receive> receives;
    std::vector<Receive*> posted;
    struct Early {
      Rank source;
      Tag tag;
      std::uint64_t id;
    };
    std::vector<Early> early;
    std::uint64_t next_id = 0;
    const auto fits = [](const Receive& receive, Rank source, Tag tag) {
      return (receive.source == kAnySource || receive.source == source) && (!receive.tag || *receive.tag == tag);
    };
    for (int step = 0; step < 400; ++step) {
      if (random() % 2 == 0) {  // a message
        const Rank source = static_cast<Rank>(random() % 3);
        const Tag tag = random() % 3;
        const auto expected = std::find_if(posted.begin(), posted.end(), [&](const Receive* one) { return fits(*one, source, tag); });
        Receive* got = matcher.match(1, source, tag);
        ASSERT_EQ(got, expected == posted.end() ? nullptr : *expected) << "seed " << seed << " step " << step;
        if (got != nullptr) {
          posted.erase(expected);
        } else {
          early.push_back({source, tag, next_id});
          matcher.keep(1, eager(source, tag, next_id++));
        }
      } else if (random() % 4 == 0 && !posted.empty()) {  // a cancellation
        const std::size_t which = random() % posted.size();
        ASSERT_TRUE(matcher.cancel(*posted[which]));
        posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(which));
      } else {  // a receive
        receives.push_back(
            receive_of(static_cast<Rank>(random() % 4) - 1, random() % 4 == 3 ? std::nullopt : std::optional<Tag>(random() % 3)));
        Receive& receive = receives.back();
        const auto expected =
            std::find_if(early.begin(), early.end(), [&](const Early& one) { return fits(receive, one.source, one.tag); });
        const std::unique_ptr<Arrival> got = matcher.post(receive);
        ASSERT_EQ(got != nullptr, expected != early.end()) << "seed " << seed << " step " << step;
        if (got != nullptr) {
          ASSERT_EQ(got->bytes, expected->id) << "seed " << seed << " step " << step;
          early.erase(expected);
        } else {
          posted.push_back(&receive);
        }
      }
    }
  }
}

}  // namespace
}  // namespace nexar::mesh
