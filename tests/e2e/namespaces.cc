#include "namespaces.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/assert.h"
#include "command.h"
#include "io/clock.h"
#include "io/file_descriptor.h"
#include "io/network_namespace.h"
#include "io/random.h"

namespace nexar::test {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kPrefix = "nexar-test-";  // then the pid, so that what a dead process left can be told from what is in use
constexpr char kFolder[] = "/run/netns";
constexpr char kInterface[] = "eth0";
constexpr int kMtuMin = 1280;   // IPv6 does not run below
constexpr int kMtuMax = 65535;  // of a veth
constexpr int kLossSteps = 10'000;

// A cable carries packets a few milliseconds after both ends are up.
constexpr base::Duration kCarrierTimeMax = std::chrono::seconds(10);

// The last address of a subnet is the router's.
std::string router_v4(int subnet) { return fmt::format("10.77.{}.254", subnet); }
std::string router_v6(int subnet) { return fmt::format("fd00:77:0:{:x}::fe", subnet); }

std::string path_of(const std::string& name) { return fmt::format("{}/{}", kFolder, name); }

Result<void> run(const Words& words) {
  const Result<std::string> output = run_command(words);
  if (!output) return output.error();
  return {};
}

Result<void> run_each(const std::vector<Words>& commands) {
  for (const Words& words : commands) {
    if (Result<void> done = run(words); !done) return done;
  }
  return {};
}

Result<void> run_inside(const std::string& name, const Words& words) {
  return io::in_network_namespace(path_of(name), [&words] { return run(words); });
}

Result<void> write_setting(const std::string& path, std::string_view value) {
  std::ofstream file(path);
  if (file << value << std::flush) return {};
  return Error(ErrorCode::kIo, fmt::format("cannot write {} to {}", value, path));
}

// Up, and packets pass: with a veth, the other end is up too.
bool is_running(int socket) {
  ifreq request{};
  std::strncpy(request.ifr_name, kInterface, IFNAMSIZ - 1);
  return ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

// The kernel announces it only to those who listen to all its news; asking every millisecond is simpler, and short.
Result<void> wait_until_running(const std::string& name) {
  return io::in_network_namespace(path_of(name), [&name]() -> Result<void> {
    const io::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const base::Time deadline = io::real_clock().now() + kCarrierTimeMax;
    while (!is_running(socket.get())) {
      if (io::real_clock().now() > deadline) return Error(ErrorCode::kTimeout, fmt::format("{} of {} stays down", kInterface, name));
      poll(nullptr, 0, 1);
    }
    return {};
  });
}

bool hears_itself(const io::Address& address) {
  const io::FileDescriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (bind(socket.get(), address.data(), address.size()) != 0) return false;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) return false;
  if (sendto(socket.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&name), size) != 1) return false;
  pollfd readable{socket.get(), POLLIN, 0};
  return poll(&readable, 1, 10) == 1;
}

// An IPv6 address is there at once and of use a little later, when the kernel has come to it, without detection of duplicates too: until
// then what is sent to it goes to the cable and is lost.
Result<void> wait_until_heard(const std::string& name, const io::Address& address) {
  return io::in_network_namespace(path_of(name), [&]() -> Result<void> {
    const base::Time deadline = io::real_clock().now() + kCarrierTimeMax;
    while (!hears_itself(address))
      if (io::real_clock().now() > deadline) return Error(ErrorCode::kTimeout, fmt::format("{} of {} stays deaf", address.host(), name));
    return {};
  });
}

// The process that made a namespace of this name; nothing for names that are not ours.
std::optional<pid_t> maker_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || pid <= 0 || end == name.data() + name.size() || *end != '-') return std::nullopt;
  return pid;
}

// Of tests that were killed. Another test may be at it too, so that one is gone already is no failure.
void remove_leftovers() {
  for (const std::string& name : Namespaces::existing()) {
    if (kill(*maker_of(name), 0) != 0 && errno == ESRCH) static_cast<void>(run({"ip", "netns", "del", name}));
  }
}

// The rules that stop a protocol. Where both ends block, the resets that say so must still pass.
std::string blocking_rules(Protocol protocol, Blocking how) {
  std::string arriving = fmt::format("iifname {} meta l4proto {}", kInterface, protocol == Protocol::kUdp ? "udp" : "tcp");
  if (protocol == Protocol::kTcpConnections) arriving += " tcp flags & (syn | ack) == syn";
  if (how == Blocking::kDropped) return arriving + " drop\n";
  if (protocol == Protocol::kUdp) return arriving + " reject\n";
  return fmt::format("{0} tcp flags & rst == rst accept\n{0} reject with tcp reset\n", arriving);
}

// The parts of everything that create() does which a host may refuse.
Result<void> try_out(const std::string& name) {
  if (Result<void> added = run({"ip", "netns", "add", name}); !added) return added;
  Result<void> tried = run({"ip", "link", "add", "name", "a", "netns", name, "type", "veth", "peer", "name", "b", "netns", name});
  if (tried) tried = run({"tc", "-n", name, "qdisc", "add", "dev", "a", "root", "tbf", "rate", "1mbit", "burst", "10kb", "latency", "1ms"});
  if (tried) {
    tried = run_inside(name, {"nft", "table inet t { chain c { type filter hook input priority 0; numgen random mod 9 < 1 drop; }; }"});
  }
  const Result<void> removed = run({"ip", "netns", "del", name});
  return tried ? removed : tried;
}

std::string fresh_prefix() { return fmt::format("{}{}-{:08x}", kPrefix, getpid(), io::system_random().number<std::uint32_t>()); }

std::optional<std::string> find_missing() {
  if (geteuid() != 0) return "network namespaces need root";
  for (const char* tool : {"ip", "tc", "nft"}) {
    if (find_tool(tool).empty()) return fmt::format("there is no {} (packages iproute2 and nftables)", tool);
  }
  if (access("/proc/sys/net/ipv6", F_OK) != 0) return "the kernel has no IPv6";
  const Result<void> tried = try_out(fresh_prefix() + "-trial");
  if (!tried) return tried.error().to_string();
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Namespaces::missing() {
  static const std::optional<std::string> answer = find_missing();
  return answer;
}

std::vector<std::string> Namespaces::existing() {
  std::vector<std::string> names;
  std::error_code error;  // no folder: nothing was ever made
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    if (maker_of(entry.path().filename().string())) names.push_back(entry.path().filename().string());
  }
  return names;
}

Result<Namespaces> Namespaces::create(const Options& options) {
  if (options.count < 2 || options.count > kCountMax) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} namespaces are not from 2 to {}", options.count, kCountMax));
  }
  if (options.subnets < 1 || options.subnets > options.count) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} subnets are not from 1 to {}", options.subnets, options.count));
  }
  if (options.mtu < kMtuMin || options.mtu > kMtuMax) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("an MTU of {} is not from {} to {}", options.mtu, kMtuMin, kMtuMax));
  }
  remove_leftovers();
  Namespaces made(fresh_prefix(), options.count, options.subnets);
  if (Result<void> built = made.build(options); !built) return built.error();
  return made;
}

// Errors are only told, because a destructor has nobody to return them to; what is left goes when the next test creates its own.
Namespaces::~Namespaces() {
  for (const std::string& name : created_) {
    if (const Result<void> removed = run({"ip", "netns", "del", name}); !removed) {
      fmt::print(stderr, "{}\n", removed.error().to_string());
    }
  }
}

Result<void> Namespaces::build(const Options& options) {
  for (int i = 0; i < count_; ++i) {
    if (Result<void> added = add(name(i)); !added) return added;
  }
  if (Result<void> joined = join(options); !joined) return joined;
  for (int i = 0; i < count_; ++i) {
    if (Result<void> up = run({"ip", "-n", name(i), "link", "set", kInterface, "up"}); !up) return up;
  }
  for (int i = 0; i < count_; ++i) {
    if (Result<void> done = configure(i, options); !done) return done;
  }
  return {};
}

Result<void> Namespaces::add(const std::string& name) {
  if (Result<void> added = run({"ip", "netns", "add", name}); !added) return added;
  created_.push_back(name);
  return run({"ip", "-n", name, "link", "set", "lo", "up"});
}

// Cables are made with their ends where they belong: the names of the interfaces never meet those of the host.
Result<void> Namespaces::join(const Options& options) {
  const std::string mtu = fmt::format("{}", options.mtu);
  // An end that has the index of the other would make the kernel take its time, up to a second, to notice the carrier; 1000 no other has.
  const auto cable = [&mtu](const std::string& from, const std::string& to, const std::string& interface) {
    return run({"ip", "link", "add",  "name", kInterface, "index",   "1000", "mtu", mtu,     "netns",
                from, "type", "veth", "peer", "name",     interface, "mtu",  mtu,   "netns", to});
  };
  if (!has_bridge()) return cable(name(0), name(1), kInterface);

  if (Result<void> added = add(bridge()); !added) return added;
  for (int i = 0; i < subnets_; ++i) {
    if (Result<void> added = add_subnet(i, mtu); !added) return added;
  }
  for (int i = 0; i < count_; ++i) {
    const std::string port = fmt::format("p{}", i);
    if (Result<void> laid = cable(name(i), bridge(), port); !laid) return laid;
    if (Result<void> set = run({"ip", "-n", bridge(), "link", "set", port, "master", fmt::format("br{}", subnet(i)), "up"}); !set)
      return set;
  }
  return {};
}

// A bridge, which is an interface of the router where there are several. Without snooping it floods what it does not know, so that
// neighbours find each other at once.
Result<void> Namespaces::add_subnet(int subnet, const std::string& mtu) {
  const std::string name = fmt::format("br{}", subnet);
  Result<void> done = run_each({{"ip", "-n", bridge(), "link", "add", "name", name, "mtu", mtu, "type", "bridge", "mcast_snooping", "0"},
                                {"ip", "-n", bridge(), "link", "set", name, "up"}});
  if (!done || subnets_ == 1) return done;
  done = run_each({{"ip", "-n", bridge(), "addr", "add", router_v4(subnet) + "/24", "dev", name},
                   {"ip", "-n", bridge(), "addr", "add", router_v6(subnet) + "/64", "dev", name, "nodad"}});
  if (!done) return done;
  return io::in_network_namespace(path_of(bridge()), []() -> Result<void> {
    if (Result<void> forwards = write_setting("/proc/sys/net/ipv4/ip_forward", "1"); !forwards) return forwards;
    return write_setting("/proc/sys/net/ipv6/conf/all/forwarding", "1");
  });
}

Result<void> Namespaces::add_routes(int i) {
  if (subnets_ == 1) return {};
  return run_each({{"ip", "-n", name(i), "route", "add", "default", "via", router_v4(subnet(i))},
                   {"ip", "-n", name(i), "-6", "route", "add", "default", "via", router_v6(subnet(i))}});
}

// Addresses come after the carrier: adding them waits for the kernel to have finished with the cable.
Result<void> Namespaces::configure(int i, const Options& options) {
  if (Result<void> ready = wait_until_running(name(i)); !ready) return ready;
  Result<void> kept = io::in_network_namespace(
      path(i), [] { return write_setting(fmt::format("/proc/sys/net/ipv6/conf/{}/keep_addr_on_down", kInterface), "1"); });
  if (!kept) return kept;
  if (!options.offload) {
    Result<void> single = run({"ip", "-n", name(i), "link", "set", kInterface, "gso_max_segs", "1"});
    if (!single) return single;
  }
  Result<void> addressed = run_each({{"ip", "-n", name(i), "addr", "add", v4(i).host() + "/24", "dev", kInterface},
                                     {"ip", "-n", name(i), "addr", "add", v6(i).host() + "/64", "dev", kInterface, "nodad"}});
  if (!addressed) return addressed;
  if (Result<void> heard = wait_until_heard(name(i), v6(i)); !heard) return heard;
  return add_routes(i);
}

std::string Namespaces::name(int i) const {
  NEXAR_ASSERT(i >= 0 && i < count_, "there is such a namespace");
  return fmt::format("{}-{}", prefix_, i);
}

std::string Namespaces::router() const {
  NEXAR_ASSERT(subnets_ > 1, "there is a router");
  return bridge();
}

std::string Namespaces::path(int i) const { return path_of(name(i)); }

io::Address Namespaces::v4(int i, std::uint16_t port) const {
  return *io::Address::parse(fmt::format("10.77.{}.{}:{}", subnet(i), i + 1, port));
}
io::Address Namespaces::v6(int i, std::uint16_t port) const {
  return *io::Address::parse(fmt::format("[fd00:77:0:{:x}::{:x}]:{}", subnet(i), i + 1, port));
}

Result<void> Namespaces::set_rate(std::uint64_t bits_per_second, std::size_t burst_bytes, base::Duration latency) {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(latency).count();
  if (bits_per_second == 0 || burst_bytes == 0 || microseconds <= 0) {
    return Error(ErrorCode::kInvalidArgument, "a rate, its burst and its latency are greater than nothing");
  }
  limited_ = true;
  for (int i = 0; i < count_; ++i) {
    Result<void> done =
        run({"tc", "-n", name(i), "qdisc", "replace", "dev", kInterface, "root", "tbf", "rate", fmt::format("{}bit", bits_per_second),
             "burst", fmt::format("{}b", burst_bytes), "latency", fmt::format("{}us", microseconds)});
    if (!done) return done;
  }
  return {};
}

Result<void> Namespaces::clear_rate() {
  if (!std::exchange(limited_, false)) return {};
  for (int i = 0; i < count_; ++i) {
    if (Result<void> done = run({"tc", "-n", name(i), "qdisc", "del", "dev", kInterface, "root"}); !done) return done;
  }
  return {};
}

Result<void> Namespaces::set_loss(double percent) {
  if (!(percent >= 0 && percent <= 100)) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("a loss of {} % is not from 0 to 100", percent));
  }
  loss_ = static_cast<int>(std::lround(percent / 100 * kLossSteps));
  return apply_filters();
}

Result<void> Namespaces::set_congestion_control(const std::string& name) {
  for (int i = 0; i < count_; ++i) {
    const Result<void> set = io::in_network_namespace(path(i), [&]() -> Result<void> {
      if (std::ofstream("/proc/sys/net/ipv4/tcp_congestion_control") << name << std::flush) return {};
      return Error(ErrorCode::kUnsupported, fmt::format("this kernel lets no namespace have the congestion control '{}'", name));
    });
    if (!set) return set;
  }
  return {};
}

Result<void> Namespaces::set_black_hole(std::size_t ip_bytes) {
  black_hole_ = ip_bytes;
  return apply_filters();
}

Result<void> Namespaces::block(int i, Protocol protocol, Blocking how) {
  state(i).blocked[protocol] = how;
  return apply_filter(i);
}

Result<void> Namespaces::block(Protocol protocol, Blocking how) {
  for (State& each : states_) each.blocked[protocol] = how;
  return apply_filters();
}

Result<void> Namespaces::unblock(Protocol protocol) {
  for (State& each : states_) each.blocked.erase(protocol);
  return apply_filters();
}

// One transaction replaces the whole table: no packet passes between the old rules and the new ones.
Result<void> Namespaces::apply_filter(int i) {
  std::string rules = "add table inet nexar\ndelete table inet nexar\n";
  rules += "table inet nexar {\nchain input {\ntype filter hook input priority 0\n";
  for (const auto& [protocol, how] : state(i).blocked) rules += blocking_rules(protocol, how);
  if (loss_ > 0) {
    const std::string share = loss_ < kLossSteps ? fmt::format("numgen random mod {} < {}", kLossSteps, loss_) : "";
    rules += fmt::format("iifname {} meta l4proto {{ tcp, udp }} {} drop\n", kInterface, share);
  }
  if (black_hole_ > 0) rules += fmt::format("iifname {} meta l4proto udp meta length > {} drop\n", kInterface, black_hole_);
  rules += "}\n}\n";
  return run_inside(name(i), {"nft", rules});
}

Result<void> Namespaces::apply_filters() {
  for (int i = 0; i < count_; ++i) {
    if (Result<void> done = apply_filter(i); !done) return done;
  }
  return {};
}

Result<void> Namespaces::link_down(int i) {
  state(i).is_down = true;
  return run({"ip", "-n", name(i), "link", "set", kInterface, "down"});
}

// Setting it up once more changes nothing, but waits for the kernel to have finished with the cable.
Result<void> Namespaces::link_up(int i) {
  const Words up = {"ip", "-n", name(i), "link", "set", kInterface, "up"};
  if (Result<void> done = run(up); !done) return done;
  state(i).is_down = false;
  const int other = has_bridge() ? i : 1 - i;         // the bridge's end of a cable is always up
  if (other != i && state(other).is_down) return {};  // the cable has no carrier before that one is up too
  for (const int end : {i, other}) {
    if (Result<void> ready = wait_until_running(name(end)); !ready) return ready;
  }
  return run(up);
}

}  // namespace nexar::test
