#include "doctor/judge_path.h"

#include <fmt/format.h>

namespace nexar::tool::doctor {
namespace {

// TCP and QUIC slow down at any loss that does not come from a full queue; at this share neither is of use.
constexpr int kLostMax = 10;  // of a hundred

}  // namespace

std::string time_text(std::chrono::nanoseconds time) {
  const double us = std::chrono::duration<double, std::micro>(time).count();
  return us < 1000 ? fmt::format("{:.0f} us", us) : fmt::format("{:.2f} ms", us / 1000);
}

Finding judge_loss(const std::string& whom, const Path& path) {
  const std::string name = "udp to " + whom;
  const std::string seen =
      fmt::format("{} of {} packets answered, round trip {}", path.asked - path.lost, path.asked, time_text(path.round_trip));
  if (path.lost == 0) return ok(name, seen);
  const char* remedy = "find where packets are lost: `ip -s link` and `nstat -az UdpRcvbufErrors` on both hosts, then the switches between";
  return path.lost < kLostMax ? warning(name, seen, remedy) : wrong(name, seen, remedy);
}

Finding judge_size(const std::string& whom, const Path& path, const std::string& interface) {
  const std::string name = "path mtu to " + whom;
  if (path.mtu_passed >= path.mtu_assumed) return ok(name, fmt::format("packets of {} bytes pass", path.mtu_passed));
  return wrong(
      name,
      fmt::format("this host sends packets of up to {} bytes, and of those above {} none arrives: they vanish on the way", path.mtu_assumed,
                  path.mtu_passed),
      fmt::format("give all interfaces of the network the same MTU, here `ip link set dev {} mtu {}`, or let the switches carry {}",
                  interface.empty() ? "DEVICE" : interface, path.mtu_passed, path.mtu_assumed));
}

}  // namespace nexar::tool::doctor
