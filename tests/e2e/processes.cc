#include "processes.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cluster/view.h"
#include "crypto/identity.h"
#include "io/clock.h"
#include "io/random.h"
#include "runtime/node_core.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kFormation = 60s;

// How long a rank may say nothing. ThreadSanitizer takes a minute for what takes a second, when others keep the cores busy.
#if defined(__SANITIZE_THREAD__)
constexpr std::chrono::milliseconds kSilence = 300s;
#else
constexpr std::chrono::milliseconds kSilence = 60s;
#endif

void write_line(int fd, std::string line) {
  line += '\n';
  const ssize_t written = ::write(fd, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) std::abort();  // lines of a test fit into a pipe
}

std::optional<std::string> read_line(int fd) {
  std::string line;
  for (char c = 0; ::read(fd, &c, 1) == 1; line += c)
    if (c == '\n') return line;
  return std::nullopt;
}

// Ranks of one network namespace are on one host, as Node::local has it.
HostId host_of(const std::vector<LocalOptions::Place>& places, std::size_t rank) {
  HostId host;
  std::size_t first = 0;
  while (!places.empty() && places[first].network_namespace != places[rank].network_namespace) ++first;
  host.bytes[0] = static_cast<std::byte>(first);
  return host;
}

// A rank's whole life, in its own process. Says its address, hears everybody's, forms the world.
void live(Rank rank, cluster::View view, runtime::NodeCore::Options options, const crypto::Identity& identity, const Wire& wire,
          const Processes::Body& body) {
  options.identity = &identity;
  Result<std::shared_ptr<runtime::NodeCore>> core = runtime::NodeCore::open(options);
  if (!core) return wire.say("cannot open: " + core.error().to_string());
  wire.say((*core)->address().to_string());
  for (cluster::Member& member : view.members) {
    const std::optional<std::string> address = wire.hear();
    if (!address) return;
    member.addresses = {io::Address::parse(*address).value()};
  }
  if (auto formed = (*core)->form(rank, view); !formed) return wire.say("cannot form: " + formed.error().to_string());
  if (auto ready = (*core)->wait_ready(kFormation); !ready) return wire.say("not ready: " + ready.error().to_string());
  wire.say("ready");
  Node node(*core);
  body(node, wire);
}

}  // namespace

void Wire::say(const std::string& line) const { write_line(out_, line); }
std::optional<std::string> Wire::hear() const { return read_line(in_); }

Processes::Processes(int size, const Config& config, const Body& body, const std::vector<LocalOptions::Place>& places,
                     const std::function<void(Rank)>& prepare) {
  const crypto::LocalAuthority authority = crypto::LocalAuthority::make({}).value();
  cluster::View view;
  view.members.resize(static_cast<std::size_t>(size));
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    io::system_random().fill(view.members[rank].node.bytes);
    view.members[rank].host = host_of(places, rank);
  }
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    runtime::NodeCore::Options options;
    options.config = config;
    options.address = io::Address::loopback_v4(0);
    if (!places.empty()) {
      options.address = io::Address::parse(places[rank].address + ":0").value();
      options.network_namespace = places[rank].network_namespace;
    }
    const crypto::Identity identity = authority.make_node(view.members[rank].node, io::real_clock().wall()).value();
    int to[2];
    int from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) std::abort();
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const Process& other : processes_) {
        ::close(other.in);
        ::close(other.out);
      }
      ::close(to[1]);
      ::close(from[0]);
      if (prepare) prepare(static_cast<Rank>(rank));
      live(static_cast<Rank>(rank), view, options, identity, Wire(to[0], from[1]), body);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(to[0]);
    ::close(from[1]);
    Process process;
    process.pid = pid;
    process.in = from[0];
    process.out = to[1];
    processes_.push_back(process);
  }
  std::vector<std::string> addresses;
  for (Rank rank = 0; rank < size; ++rank) addresses.push_back(hear(rank));
  for (Rank rank = 0; rank < size; ++rank)
    for (const std::string& address : addresses) say(rank, address);
  for (Rank rank = 0; rank < size; ++rank) EXPECT_EQ(hear(rank), "ready") << rank;
}

Processes::~Processes() {
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (!processes_[rank].reaped) {
      signal(static_cast<Rank>(rank), SIGKILL);
      wait(static_cast<Rank>(rank));
    }
    ::close(processes_[rank].in);
    ::close(processes_[rank].out);
  }
}

std::string Processes::hear(Rank rank) {
  Process& process = processes_[static_cast<std::size_t>(rank)];
  for (;;) {
    if (const std::size_t end = process.rest.find('\n'); end != std::string::npos) {
      std::string line = process.rest.substr(0, end);
      process.rest.erase(0, end + 1);
      return line;
    }
    pollfd readable{process.in, POLLIN, 0};
    char buffer[4096];
    if (::poll(&readable, 1, static_cast<int>(kSilence.count())) != 1) return "";
    const ssize_t count = ::read(process.in, buffer, sizeof buffer);
    if (count <= 0) return "";
    process.rest.append(buffer, static_cast<std::size_t>(count));
  }
}

void Processes::say(Rank rank, const std::string& line) { write_line(processes_[static_cast<std::size_t>(rank)].out, line); }

void Processes::signal(Rank rank, int number) const {
  const pid_t pid = processes_[static_cast<std::size_t>(rank)].pid;
  ::kill(pid, number);
  // On a busy machine its threads may run on for milliseconds.
  siginfo_t ignored = {};
  if (number == SIGSTOP) ::waitid(P_PID, static_cast<id_t>(pid), &ignored, WSTOPPED | WEXITED | WNOWAIT);
}

int Processes::wait(Rank rank) {
  Process& process = processes_[static_cast<std::size_t>(rank)];
  if (!std::exchange(process.reaped, true)) ::waitpid(process.pid, &process.status, 0);
  return process.status;
}

}  // namespace nexar::test
