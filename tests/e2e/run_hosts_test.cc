// `nexar run --hosts` between network namespaces: each is a host, and `ip netns exec` is its remote shell.
#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "command.h"
#include "namespaces.h"

namespace nexar::test {
namespace {

// The launcher is in the first namespace, so that its seed can be reached from the others.
std::vector<std::string> launcher_in(const Namespaces& net, std::vector<std::string> arguments) {
  std::vector<std::string> words = {"ip", "netns", "exec", net.name(0), NEXAR_TOOL, "run", "--ssh", "ip netns exec"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(RunHosts, StartsEachRankInItsNamespace) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create({.count = 3}).value();
  const std::string hosts = fmt::format("{},{}:2,{}", net.name(0), net.name(1), net.name(2));
  const std::string script = "echo $NEXAR_RANK of $NEXAR_WORLD_SIZE on $(ip netns identify $$), seed at ${NEXAR_SEED%:*}";
  const Result<std::string> output = run_command(launcher_in(net, {"--hosts", hosts, "--listen", "10.77.0.1", "sh", "-c", script}));
  ASSERT_TRUE(output) << output.error().to_string();
  const auto line = [&](int rank, int host) { return fmt::format("[{0}] {0} of 4 on {1}, seed at 10.77.0.1", rank, net.name(host)); };
  EXPECT_EQ(sorted_lines(*output), (std::vector<std::string>{line(0, 0), line(1, 1), line(2, 1), line(3, 2)}));
}

TEST(RunHosts, AsksForAnAddressWhenAHostIsNoName) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create().value();
  const Result<std::string> output = run_command(launcher_in(net, {"--hosts", net.name(1), "true"}));
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().sentence().find("exited with 2"), std::string::npos) << output.error().to_string();
  EXPECT_NE(output.error().sentence().find(net.name(1)), std::string::npos) << output.error().to_string();
  EXPECT_NE(output.error().sentence().find("--listen"), std::string::npos) << output.error().to_string();
}

TEST(RunHosts, TellsItsOwnAddressOnTheWayToTheFirstHost) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create().value();
  // A remote shell that takes addresses for hosts.
  std::vector<std::string> words = launcher_in(net, {"--ssh", fmt::format("sh -c 'exec ip netns exec {} \"$1\" \"$2\"'", net.name(1)),
                                                     "--hosts", "10.77.0.2", "--no-prefix", "sh", "-c", "echo ${NEXAR_SEED%:*}"});
  words.erase(words.begin() + 6, words.begin() + 8);
  const Result<std::string> output = run_command(words);
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_EQ(*output, "10.77.0.1\n");
}

TEST(RunHosts, FormsAWorldAcrossNamespaces) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create({.count = 3}).value();
  const std::string hosts = fmt::format("{},{}:2,{}", net.name(0), net.name(1), net.name(2));
  const Result<std::string> output = run_command(launcher_in(net, {"--hosts", hosts, "--listen", "10.77.0.1", NEXAR_RING, "leave"}));
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_NE(output->find("passed 18 among 4"), std::string::npos) << *output;
}

// Two hosts in each of two subnets, and a router between them that lets nothing pass but UDP of and to these ports.
Namespaces routed(const std::string& ports) {
  Namespaces net = Namespaces::create({.count = 4, .subnets = 2}).value();
  const std::string rules = fmt::format(
      "table inet wall {{ chain passing {{ type filter hook forward priority 0; policy drop; "
      "udp sport {{ {0} }} udp dport {{ {0} }} accept; udp sport 7070 accept; udp dport 7070 accept; meta l4proto 58 accept; }}; }}",
      ports);
  run_command({"ip", "netns", "exec", net.router(), "nft", rules}).value();
  return net;
}

std::string ring_in(const Namespaces& net, int slots, const std::string& listen, const std::string& ports, const std::string& interfaces,
                    const std::string& patience = "15s") {
  std::vector<std::string> words = {"env", "NEXAR_PORT=" + ports, "NEXAR_INTERFACES=" + interfaces, "NEXAR_JOIN_TIMEOUT=" + patience};
  std::string hosts;
  for (int i = 0; i < net.size(); ++i) hosts += fmt::format("{}{}:{}", i == 0 ? "" : ",", net.name(i), slots);
  const std::vector<std::string> launched = launcher_in(net, {"--hosts", hosts, "--listen", listen, NEXAR_RING, "leave"});
  words.insert(words.end(), launched.begin(), launched.end());
  const Result<std::string> output = run_command(words);
  return output ? *output : output.error().to_string();
}

TEST(RunHosts, FormsAWorldAcrossARouterOnAFixedPort) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = routed("7100");
  for (const auto& [listen, network] : {std::pair("10.77.0.1:7070", "10.77.0.0/16"), std::pair("[fd00:77::1]:7070", "fd00:77::/32")}) {
    const std::string output = ring_in(net, 1, listen, "7100", network);
    EXPECT_NE(output.find("passed 18 among 4"), std::string::npos) << listen << ": " << output;
  }
  const std::string walled = ring_in(net, 1, "10.77.0.1:7070", "7200", "10.77.0.0/16", "3s");
  EXPECT_NE(walled.find("has no link"), std::string::npos) << "the router keeps other ports apart: " << walled;
  EXPECT_NE(walled.find(":7200"), std::string::npos) << walled;
}

TEST(RunHosts, FormsAWorldAcrossARouterOnARangeOfPorts) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = routed("7100-7101");
  for (const auto& [listen, network] : {std::pair("10.77.0.1:7070", "10.77.0.0/16"), std::pair("[fd00:77::1]:7070", "fd00:77::/32")}) {
    const std::string output = ring_in(net, 2, listen, "7100-7101", network);
    EXPECT_NE(output.find("passed 84 among 8"), std::string::npos) << listen << ": " << output;
  }
}

TEST(RunHosts, MeasuresBetweenTwoNamespaces) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create().value();
  const std::string hosts = fmt::format("{},{}", net.name(0), net.name(1));
  const Result<std::string> output = run_command({"ip",       "netns",         "exec",    net.name(0), NEXAR_TOOL, "bench",     "p2p",
                                                  "--ssh",    "ip netns exec", "--hosts", hosts,       "--listen", "10.77.0.1", "--mode",
                                                  "pingpong", "--bytes",       "8",       "--iters",   "5",        "--json",    "-"});
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_NE(output->find("\"wrong\": 0"), std::string::npos) << *output;
}

TEST(RunHosts, NamesAHostThatCannotBeEntered) {
  if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  const Namespaces net = Namespaces::create().value();
  const Result<std::string> output =
      run_command(launcher_in(net, {"--hosts", fmt::format("{},nexar-nonesuch", net.name(0)), "--listen", "10.77.0.1", "sleep", "1000"}));
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().sentence().find("rank 1"), std::string::npos) << output.error().to_string();
  EXPECT_NE(output.error().sentence().find("nexar-nonesuch"), std::string::npos) << output.error().to_string();
}

}  // namespace
}  // namespace nexar::test
