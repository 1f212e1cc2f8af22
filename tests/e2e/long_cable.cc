#include "long_cable.h"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "command.h"

namespace nexar::test {
namespace {

constexpr int kTriesMax = 500;  // 5 s

}  // namespace

std::optional<std::string> LongCable::missing() {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) return "there is no /dev/net/tun";
  return std::nullopt;
}

LongCable::LongCable(const Namespaces& net)
    : relay_(popen(fmt::format("python3 {} {} {} --round-trip 20 --device far0", NEXAR_DELAY, net.name(0), net.name(1)).c_str(), "w")) {
  for (int i = 0; i < 2; ++i) {
    const auto ip = [&](std::vector<std::string> words) {
      words.insert(words.begin(), {"ip", "-n", net.name(i)});
      return run_command(words);
    };
    for (int tries = 0; tries < kTriesMax && !ip({"addr", "add", address(i).host() + "/24", "dev", "far0"}); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until the relay has made it
    ip({"link", "set", "far0", "mtu", "9000", "txqueuelen", "20000", "up"}).value();
  }
}

LongCable::~LongCable() { pclose(relay_); }

io::Address LongCable::address(int i) { return io::Address::parse(i == 0 ? "10.79.0.1:0" : "10.79.0.2:0").value(); }

}  // namespace nexar::test
