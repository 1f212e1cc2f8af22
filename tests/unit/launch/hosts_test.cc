#include "launch/hosts.h"

#include <gtest/gtest.h>

namespace nexar::launch {
namespace {

TEST(Hosts, HaveOneSlotUnlessTheySayMore) {
  const auto hosts = parse_hosts("a,b:2,fd00::1,[fd00::2]:3,[fd00::3]");
  ASSERT_TRUE(hosts) << hosts.error().to_string();
  EXPECT_EQ(*hosts, (std::vector<HostSlots>{{"a", 1}, {"b", 2}, {"fd00::1", 1}, {"fd00::2", 3}, {"fd00::3", 1}}));
}

TEST(Hosts, AreRefusedByTheirName) {
  for (const std::string text : {"", "a,", ",a", "a:0", "a:x", "a:-1", "a:", ":2", "a:4097", "a:4096,b", "-oProxyCommand=x", "[]:2"}) {
    const auto hosts = parse_hosts(text);
    ASSERT_FALSE(hosts) << text;
    EXPECT_EQ(hosts.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(hosts.error().sentence().find("--hosts"), std::string::npos) << hosts.error().to_string();
  }
}

TEST(Hosts, AreFilledInOrder) {
  const auto places = place_ranks(3, {{"a", 1}, {"b", 4}});
  ASSERT_TRUE(places) << places.error().to_string();
  EXPECT_EQ(*places, (std::vector<Place>{{"a", 0, 1}, {"b", 0, 2}, {"b", 1, 2}}));
}

TEST(Hosts, GetOneRankForEachSlotWhenNobodySaysHowMany) {
  const auto places = place_ranks(0, {{"a", 1}, {"b", 2}});
  ASSERT_TRUE(places) << places.error().to_string();
  EXPECT_EQ(places->size(), 3u);
}

TEST(Hosts, NamedTwiceAreOneHost) {
  const auto places = place_ranks(0, {{"a", 1}, {"b", 1}, {"a", 1}});
  ASSERT_TRUE(places) << places.error().to_string();
  EXPECT_EQ(*places, (std::vector<Place>{{"a", 0, 2}, {"b", 0, 1}, {"a", 1, 2}}));
}

TEST(Hosts, AreNotFilledBeyondTheirSlots) {
  const auto places = place_ranks(4, {{"a", 1}, {"b", 2}});
  ASSERT_FALSE(places);
  EXPECT_NE(places.error().sentence().find("4 ranks, but --hosts has 3 slots"), std::string::npos) << places.error().to_string();
}

TEST(Hosts, AreNotNeededForRanksHere) {
  const auto places = place_ranks(2, {});
  ASSERT_TRUE(places) << places.error().to_string();
  EXPECT_EQ(*places, (std::vector<Place>{{"", 0, 2}, {"", 1, 2}}));
  EXPECT_FALSE(place_ranks(0, {}));
  EXPECT_FALSE(place_ranks(-1, {}));
  EXPECT_FALSE(place_ranks(kWorldMax + 1, {}));
}

TEST(Words, AreCutAsAShellDoes) {
  const auto words = split_words(R"( ssh  -o 'A B' "c \"d\"" e\ f'g'h "" )");
  ASSERT_TRUE(words) << words.error().to_string();
  EXPECT_EQ(*words, (std::vector<std::string>{"ssh", "-o", "A B", "c \"d\"", "e fgh", ""}));
}

TEST(Words, AreRefusedWithoutTheEndOfAQuote) {
  EXPECT_FALSE(split_words("ssh 'a"));
  EXPECT_FALSE(split_words("  "));
}

}  // namespace
}  // namespace nexar::launch
