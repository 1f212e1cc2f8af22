// `nexar run --hosts` between network namespaces: each is a host, and `ip netns exec` is its remote shell.
#include <algorithm>
#include <sstream>
#include <string>
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
