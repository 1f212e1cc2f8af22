// Each peer costs descriptors: TCP lanes in both directions, and for one on this host a unix socket, a doorbell and its memory.
#include <string>

#include <fmt/format.h>

#include <sys/resource.h>

#include "doctor/checks.h"

namespace nexar::tool::doctor {
namespace {

constexpr rlim_t kOfTheProcess = 64;  // the program's own files, libraries, timers, the UDP socket
constexpr rlim_t kOfAPeer = 8;

std::string text(rlim_t limit) { return limit == RLIM_INFINITY ? "no limit" : std::to_string(limit); }

}  // namespace

Findings check_open_files(const Surroundings& here) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = kOfTheProcess + kOfAPeer * static_cast<rlim_t>(here.world);
  const std::string seen = fmt::format("{} may be open (at most {}); a full mesh of {} ranks takes up to {}", text(limit.rlim_cur),
                                       text(limit.rlim_max), here.world, needed);
  if (limit.rlim_cur >= needed) return {ok("open files", seen)};
  return {wrong(
      "open files", seen,
      limit.rlim_max >= needed
          ? fmt::format("run `ulimit -n {}` before the program", needed)
          : fmt::format("raise the hard limit: `* hard nofile {}` in /etc/security/limits.conf, or LimitNOFILE= of the service", needed))};
}

}  // namespace nexar::tool::doctor
