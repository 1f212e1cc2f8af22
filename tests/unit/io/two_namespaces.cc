#include "io/two_namespaces.h"

#include <cstdlib>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nexar::io {
namespace {

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }  // NOLINT: in tests only

void must(const std::string& command) { EXPECT_TRUE(run(command)) << command; }

}  // namespace

std::optional<std::string> TwoNamespaces::unavailable() {
  if (geteuid() != 0) return "needs root, to create network namespaces";
  if (!run("ip -V")) return "needs the ip command (package iproute2)";
  const std::string name = fmt::format("nexar-probe-{}", getpid());
  const bool works = run("ip netns add " + name) && run(fmt::format("ip -n {} link add dev va type veth peer name vb", name));
  run("ip netns del " + name);
  if (!works) return "needs a kernel and a container that allow network namespaces and veth devices";
  return std::nullopt;
}

TwoNamespaces::TwoNamespaces() : left_(fmt::format("nexar-left-{}", getpid())), right_(fmt::format("nexar-right-{}", getpid())) {
  must("ip netns add " + left_);
  must("ip netns add " + right_);
  must(fmt::format("ip -n {} link add dev cable mtu 1500 type veth peer name cable netns {}", left_, right_));
  must(fmt::format("ip -n {} addr add 10.77.0.1/24 dev cable", left_));
  must(fmt::format("ip -n {} addr add 10.77.0.2/24 dev cable", right_));
  for (const std::string& name : {left_, right_}) {
    must(fmt::format("ip -n {} link set cable up", name));
    must(fmt::format("ip -n {} link set lo up", name));
  }
}

TwoNamespaces::~TwoNamespaces() {
  run("ip netns del " + left_);
  run("ip netns del " + right_);
}

}  // namespace nexar::io
