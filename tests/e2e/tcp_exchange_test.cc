// The plain-TCP yardstick in two namespaces: it measures the network that is there, and its bytes survive losses.
#include <string>

#include <gtest/gtest.h>

#include "command.h"
#include "namespaces.h"

namespace nexar::test {
namespace {

class TcpExchange : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = Namespaces::missing()) GTEST_SKIP() << *why;
  }

  // What it wrote as JSON; it fails when a byte is wrong.
  static std::string run(const Namespaces& net, const io::Address& server, const std::string& mode, const std::string& bytes) {
    return run_command({NEXAR_TCP_EXCHANGE, "--netns-server", net.name(0), "--netns-client", net.name(1), "--address", server.host(),
                        "--mode", mode, "--bytes", bytes, "--iters", "3", "--repeat", "1", "--json", "-", "--limit", "15"})
        .value();
  }

  static double number(const std::string& json, const std::string& field) {
    return std::stod(json.substr(json.find("\"" + field + "\": ") + field.size() + 4));
  }
};

TEST_F(TcpExchange, RunsInTwoNamespaces) {
  const Namespaces net = Namespaces::create().value();
  for (const io::Address& server : {net.v4(0), net.v6(0)}) EXPECT_EQ(number(run(net, server, "exchange", "1M"), "wrong"), 0);
}

// 100 Mbit/s are 0.0125 GB/s, of which headers take a twentieth; what is in the burst comes on top.
TEST_F(TcpExchange, IsNotFasterThanTheLine) {
  Namespaces net = Namespaces::create().value();
  net.set_rate(100'000'000, 50'000, std::chrono::milliseconds(50)).value();
  const double rate = number(run(net, net.v4(0), "oneway", "1M"), "algbw_GBps");
  EXPECT_GT(rate, 0.001);
  EXPECT_LT(rate, 0.014);
}

TEST_F(TcpExchange, HasRightBytesInSpiteOfLosses) {
  Namespaces net = Namespaces::create().value();
  net.set_loss(1).value();
  EXPECT_EQ(number(run(net, net.v4(0), "exchange", "300001"), "wrong"), 0);
}

}  // namespace
}  // namespace nexar::test
