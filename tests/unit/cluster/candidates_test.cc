#include "cluster/candidates.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/host_id.h"
#include "cluster/host_port.h"

namespace nexar::cluster {
namespace {

io::Address address(const std::string& text) { return io::Address::parse(text).value(); }

std::vector<io::InterfaceAddress> host() {
  return {{"lo", address("127.0.0.1:0"), true, true},       {"lo", address("[::1]:0"), true, true},
          {"eth0", address("10.0.0.5:0"), true, false},     {"eth0", address("[fd00::5]:0"), true, false},
          {"eth0", address("[fe80::5]:0"), true, false},    {"ib0", address("192.168.7.5:0"), true, false},
          {"down0", address("172.16.0.5:0"), false, false}, {"auto0", address("169.254.1.2:0"), true, false}};
}

std::string chosen(const CandidateRules& rules, const std::vector<io::InterfaceAddress>& present = host()) {
  const Result<std::vector<io::Address>> candidates = choose_candidates(present, rules);
  if (!candidates) return candidates.error().to_string();
  std::string text;
  for (const io::Address& one : *candidates) text += (text.empty() ? "" : " ") + one.to_string();
  return text;
}

TEST(Candidates, AreAllThatOthersCanUseAndTheOneTowardsTheSeedFirst) {
  EXPECT_EQ(chosen({.towards_seed = address("192.168.7.5:0"), .port = 7}), "192.168.7.5:7 10.0.0.5:7 [fd00::5]:7");
  EXPECT_EQ(chosen({.port = 7}), "10.0.0.5:7 [fd00::5]:7 192.168.7.5:7");
}

TEST(Candidates, AreOfLoopbackWhenTheSeedIsThereOrThereIsNothingElse) {
  EXPECT_EQ(chosen({.towards_seed = address("[::1]:0"), .port = 7}), "[::1]:7 127.0.0.1:7 10.0.0.5:7 [fd00::5]:7 192.168.7.5:7");
  EXPECT_EQ(chosen({.port = 7}, {host()[0], host()[1]}), "127.0.0.1:7 [::1]:7");
  EXPECT_NE(chosen({.port = 7}, {host()[6]}).find("there is no address that peers could use"), std::string::npos);
}

TEST(Candidates, FollowTheInterfacesThatWereAskedFor) {
  EXPECT_EQ(chosen({.interfaces = {"ib0", "eth0"}, .port = 7}), "192.168.7.5:7 10.0.0.5:7 [fd00::5]:7");
  EXPECT_EQ(chosen({.interfaces = {"fd00::/64"}, .port = 7}), "[fd00::5]:7");
  EXPECT_EQ(chosen({.interfaces = {"10.0.0.5"}, .port = 7}), "10.0.0.5:7");
  EXPECT_EQ(chosen({.interfaces = {"0.0.0.0/0"}, .towards_seed = address("192.168.7.5:0"), .port = 7}),
            "192.168.7.5:7 127.0.0.1:7 10.0.0.5:7 169.254.1.2:7");
  EXPECT_EQ(chosen({.interfaces = {"10.0.0.4/31", "10.0.0.0/8"}, .port = 7}), "10.0.0.5:7");
  EXPECT_EQ(chosen({.interfaces = {"auto0"}, .port = 7}), "169.254.1.2:7");
}

TEST(Candidates, AreOnlyOfFamiliesOnWhichTheNodeListens) {
  EXPECT_EQ(chosen({.port = 7, .v6 = false}), "10.0.0.5:7 192.168.7.5:7");
  EXPECT_EQ(chosen({.port = 7, .v4 = false}), "[fd00::5]:7");
}

TEST(Candidates, RefuseWhatFitsNothingNamingItAndWhatThereIs) {
  for (const char* pattern : {"eth9", "10.0.0.6", "10.0.0.0/33", "172.16.0.0/12", "fe80::/10", "down0", ""}) {
    const std::string text = chosen({.interfaces = {pattern}, .port = 7});
    EXPECT_TRUE(text.starts_with("invalid_argument: '" + std::string(pattern) + "' ")) << text;
    EXPECT_NE(text.find("eth0 10.0.0.5"), std::string::npos) << text;
    EXPECT_NE(text.find("down0 172.16.0.5 (down)"), std::string::npos) << text;
  }
}

TEST(Candidates, AreAtMostSixteen) {
  std::vector<io::InterfaceAddress> many;
  for (int i = 1; i <= 40; ++i) many.push_back({"eth" + std::to_string(i), address("10.0.0." + std::to_string(i) + ":0"), true, false});
  EXPECT_EQ(choose_candidates(many, {.port = 7})->size(), kCandidatesMax);
  EXPECT_EQ(choose_candidates(many, {.towards_seed = address("10.0.0.40:0"), .port = 7})->front(), address("10.0.0.40:7"));
}

TEST(HostId, IsTheSameForEqualMarksAndNames) {
  const io::HostMarks marks{"boot", 5};
  EXPECT_EQ(host_id(marks, ""), host_id(marks, ""));
  EXPECT_EQ(host_id(marks, "a"), host_id(marks, "a"));
  EXPECT_NE(host_id(marks, "a"), host_id(marks, "b"));
  EXPECT_NE(host_id(marks, "a"), host_id({"other", 5}, "a")) << "a name makes no host of two kernels";
  EXPECT_NE(host_id(marks, "a"), host_id({"boot", 6}, "a"));
  EXPECT_NE(host_id({"ab", 5}, "c"), host_id({"a", 5}, "bc"));
  EXPECT_EQ(this_host(""), this_host(""));
}

TEST(HostPort, IsANameOrAnAddressAndAPort) {
  EXPECT_EQ(parse_host_port("node7:70")->host, "node7");
  EXPECT_EQ(parse_host_port("node7:70")->port, 70);
  EXPECT_EQ(parse_host_port("[fd00::1]:70")->host, "fd00::1");
  EXPECT_EQ(parse_host_port("1.2.3.4:0")->host, "1.2.3.4");
  for (const char* bad :
       {"", "node7", "node7:", ":70", "node7:70000", "node7:x", "fd00::1:70", "[]:70", "[node7]:70", "[fd00::1:70", "a b:70"}) {
    const Result<HostPort> parsed = parse_host_port(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_NE(parsed.error().sentence().find("'" + std::string(bad) + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace nexar::cluster
