// Plain TCP between two processes: the yardstick beside which nexar's own numbers are quoted. `--help` shows the options.
//
//   supervisor --fork--> server   (first core, its namespace)   \  one TCP connection;
//              --fork--> client   (second core, its namespace)  /  the client reports
//
// The supervisor only waits. When one end fails it ends the other, and the kernel ends both when the supervisor is gone, however it went.
// Exit status: 0 success, 1 the measurement failed or bytes were wrong, 2 the command line was not understood.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tcp_end.h"
#include "tcp_options.h"
#include "tcp_report.h"
#include "tcp_socket.h"

namespace nexar::bench {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

void give_up(int) {
  constexpr char kMessage[] = "tcp_exchange: not done within the time of --limit\n";
  if (write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) _exit(1);
  _exit(1);
}

void limit_time(int seconds) {
  std::signal(SIGALRM, give_up);
  alarm(static_cast<unsigned>(seconds));
}

void enter_namespace(const std::string& name) {
  if (name.empty()) return;
  const std::string path = "/run/netns/" + name;
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) fail_with_errno("cannot open the network namespace " + path);
  if (setns(fd.get(), CLONE_NEWNET) != 0) fail_with_errno("cannot enter the network namespace " + path);
}

// The core that this end is to run on; -1 when there is only one, which the ends then share as the scheduler likes.
int core_for(const Options& options, End::Side side) {
  const bool server = side == End::Side::kServer;
  if (options.cores) return server ? options.cores->first : options.cores->second;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return -1;
  int skip = server ? 0 : 1;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && skip-- == 0) return core;
  }
  return -1;
}

void pin(const Options& options, End::Side side) {
  const int core = options.pin ? core_for(options, side) : -1;
  if (core < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail_with_errno("cannot run on core " + std::to_string(core));
}

// Calls visit(index of the size, sample) for every size in every repetition. Sizes are interleaved, so that a slow spell of the machine
// does not fall on one of them.
void measure_all(End& end, const Options& options, const std::function<void(std::size_t, Sample)>& visit) {
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (std::size_t i = 0; i < options.sizes.size(); ++i) visit(i, end.measure(options.sizes[i], repetition));
  }
  end.meet();
}

int serve(const Options& options, const Listener& listener) {
  pin(options, End::Side::kServer);
  End end(options, End::Side::kServer, accept_one(listener));
  measure_all(end, options, [](std::size_t, const Sample&) {});
  return 0;
}

int run_client(const Options& options, std::uint16_t port, std::FILE* json) {
  pin(options, End::Side::kClient);
  End end(options, End::Side::kClient, connect_to(options, port));
  const Setting setting{congestion_of(end.fd()), send_buffer_of(end.fd()), receive_buffer_of(end.fd())};
  std::FILE* table = json == stdout ? stderr : stdout;
  print_setting(table, options, setting);

  std::vector<std::vector<Sample>> samples(options.sizes.size());
  measure_all(end, options, [&](std::size_t size, Sample sample) { samples[size].push_back(std::move(sample)); });
  std::vector<Row> rows;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    rows.push_back(summarize(options.mode, options.sizes[i], samples[i]));
    wrong += rows.back().wrong;
  }
  print_table(table, rows);
  if (json != nullptr) print_json(json, options, setting, rows);
  if (std::fflush(nullptr) != 0) fail_with_errno("cannot write the results");
  return wrong == 0 ? 0 : 1;
}

int guarded(const std::function<int()>& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    std::fprintf(stderr, "tcp_exchange: %s; `tcp_exchange --help` shows what is accepted\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tcp_exchange: %s\n", error.what());
    return 1;
  }
}

// Runs `work` in a process that does not outlive this one.
pid_t start(const std::function<int()>& work) {
  const pid_t supervisor = getpid();
  const pid_t child = fork();
  if (child < 0) fail_with_errno("cannot fork");
  if (child > 0) return child;
  const int status = guarded([&] {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail_with_errno("cannot ask to end with the supervisor");
    return getppid() == supervisor ? work() : 1;  // it may have gone before we could ask
  });
  std::fflush(nullptr);
  _exit(status);
}

// Both ends, or as soon as one has failed, the end of the other.
int supervise(pid_t server, pid_t client) {
  int result = 0;
  for (int left = 2; left > 0; --left) {
    int status = 0;
    pid_t ended = -1;
    do ended = wait(&status);
    while (ended < 0 && errno == EINTR);
    if (ended < 0) fail_with_errno("cannot wait for the two ends");
    const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (good || result != 0) continue;
    result = 1;
    const char* which = ended == server ? "server" : "client";
    if (WIFSIGNALED(status)) std::fprintf(stderr, "tcp_exchange: the %s was ended by signal %d\n", which, WTERMSIG(status));
    if (left == 2) kill(ended == server ? client : server, SIGKILL);
  }
  return result;
}

// The port goes from the server to the client through a pipe, because only the kernel of the server's namespace knows what is free.
int run_both(const Options& options, std::FILE* json) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_with_errno("cannot open a pipe");
  Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t server = start([&] {
    enter_namespace(options.server_namespace);
    const Listener listener = listen_on(options);
    if (write(write_end.get(), &listener.port, sizeof listener.port) != sizeof listener.port) fail_with_errno("cannot name the port");
    return serve(options, listener);
  });
  const pid_t client = start([&] {
    const Descriptor mine = std::exchange(write_end, Descriptor());
    enter_namespace(options.client_namespace);
    std::uint16_t port = 0;
    if (read(read_end.get(), &port, sizeof port) != sizeof port) return 1;  // the server has said why
    return run_client(options, port, json);
  });
  return supervise(server, client);
}

int run_listener(const Options& options) {
  const Listener listener = listen_on(options);
  std::fprintf(stderr, "tcp_exchange: listening on %s port %u\n", options.address.c_str(), unsigned{listener.port});
  return serve(options, listener);
}

// Opened before anything is measured: a name that cannot be written to is better known now.
File open_json(const Options& options) {
  if (options.json.empty() || options.json == "-") return {nullptr, &std::fclose};
  File file(std::fopen(options.json.c_str(), "w"), &std::fclose);
  if (!file) fail_with_errno("cannot write " + options.json);
  return file;
}

int run(int argc, char** argv) {
  const std::optional<Options> options = parse_options(argc, argv);
  if (!options) return 0;
  const File file = open_json(*options);
  std::FILE* json = options->json == "-" ? stdout : file.get();
  limit_time(options->limit_seconds);
  switch (options->role) {
    case Role::kBoth: return run_both(*options, json);
    case Role::kListen: return run_listener(*options);
    case Role::kConnect: return run_client(*options, options->port, json);
  }
  return 2;
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
  return nexar::bench::guarded([&] { return nexar::bench::run(argc, argv); });
}
