// TCP carries bulk between hosts. Between processes of one host, and on short clean networks, bbr is slower than cubic: it paces.
#include <string>

#include "doctor/checks.h"

namespace nexar::tool::doctor {

Findings check_congestion_control(const Surroundings& here) {
  const char* name = "tcp congestion";
  const auto chosen = here.system.line("/proc/sys/net/ipv4/tcp_congestion_control");
  const auto available = here.system.line("/proc/sys/net/ipv4/tcp_available_congestion_control");
  if (!chosen) return {warning(name, "the kernel does not tell which is used", "mount /proc/sys, or look at the host of the container")};
  const std::string seen = *chosen + " is the default; there are " + available.value_or(*chosen);
  if (*chosen == "cubic" || *chosen == "reno") return {ok(name, seen)};
  const bool has_cubic = available && available->find("cubic") != std::string::npos;
  // nexar asks for cubic by itself where it may.
  if (has_cubic) return {ok(name, seen + "; nexar takes cubic for its own connections")};
  return {warning(name, seen, "load cubic for connections within a host and over short networks: `modprobe tcp_cubic`")};
}

}  // namespace nexar::tool::doctor
