#include "launch/far_end.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "io/file_descriptor.h"
#include "launch/binding.h"
#include "launch/child.h"
#include "launch/descendants.h"
#include "launch/keeper.h"
#include "launch/remote_rank.h"
#include "launch/signals.h"

namespace nexar::launch {
namespace {

// Input that the program has not read; above it the launcher's records wait, and with them its signals. The end of the stream is seen
// still.
constexpr std::size_t kInputMax = std::size_t{64} << 10;

// The first line, and what came after it.
struct Beginning {
  std::string line;
  std::string rest;
};

std::optional<Beginning> read_beginning() {
  std::string text;
  std::array<char, 4096> bytes;
  while (text.size() <= kRequestMax) {
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    const std::size_t old = text.size();
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (const std::size_t newline = text.find('\n', old); newline != std::string::npos)
      return Beginning{text.substr(0, newline), text.substr(newline + 1)};
  }
  return std::nullopt;
}

int fail(const std::string& problem, int status) {
  fmt::print(stderr, "nexar: {}\n", problem);
  return status;
}

// Those that the request's rank has of this host; none when it is not bound.
Result<Cores> cores_of(const RankRequest& request) {
  if (!request.binding) return Cores();
  Result<std::vector<Cores>> shares = share_cores_here(request.binding->local_size);
  if (!shares) return shares.error();
  return std::move((*shares)[static_cast<std::size_t>(request.binding->local_rank)]);
}

// The program, and the stream that says what to do with it. Thread: main.
class FarEnd {
 public:
  FarEnd(const Signals& signals, Keeper& keeper) : signals_(signals), keeper_(keeper), spared_(descendants({})) {}

  Result<void> start(const RankRequest& request, const std::string& file, const Cores& cores) {
    Command command{file, request.words, {}};
    for (char** variable = environ; *variable != nullptr; ++variable) command.environment.emplace_back(*variable);
    io::FileDescriptor theirs(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (request.has_input) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return Error(ErrorCode::kOverloaded, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
      theirs.reset(ends[0]);
      input_.reset(ends[1]);
      fcntl(ends[1], F_SETFL, O_NONBLOCK);
    }
    const Result<pid_t> pid =
        launch::start(command, {theirs.get(), STDOUT_FILENO, STDERR_FILENO},
                      {signals_.mask(), true, cores, [this](pid_t noted) { keeper_.guard(noted, Keeper::Way::kAtOnce); }});
    if (!pid) return pid.error();
    pid_ = *pid;
    return {};
  }

  int run(std::string_view first_records) {
    obey(first_records);
    while (!status_) turn();
    end_descendants(spared_, std::chrono::seconds(2));
    return *status_;
  }

 private:
  void turn() {
    const bool reads = is_open_ && waiting_.size() < kInputMax;
    std::array<pollfd, 3> descriptors = {pollfd{signals_.descriptor(), POLLIN, 0},
                                         pollfd{is_open_ ? STDIN_FILENO : -1, static_cast<short>(reads ? POLLIN : 0), 0},
                                         pollfd{waiting_.empty() ? -1 : input_.get(), POLLOUT, 0}};
    if (poll(descriptors.data(), descriptors.size(), -1) <= 0) return;
    if (descriptors[2].revents != 0) write_input();
    if (descriptors[1].revents != 0) reads ? read_records() : launcher_is_gone();
    if (descriptors[0].revents != 0) take_signals();
  }

  void read_records() {
    std::array<char, 16384> bytes;
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) return launcher_is_gone();
    obey({bytes.data(), static_cast<std::size_t>(count)});
  }

  void launcher_is_gone() {
    is_open_ = false;
    kill(-pid_, SIGKILL);
  }

  void obey(std::string_view bytes) {
    const auto records = records_.add(bytes);
    if (!records) {
      fmt::print(stderr, "nexar: {}\n", records.error().sentence());
      return launcher_is_gone();
    }
    for (const RecordReader::Record& record : *records) {
      if (const auto* input = std::get_if<RecordReader::Input>(&record)) {
        if (input_) waiting_ += input->bytes;
      } else if (const auto* signal = std::get_if<RecordReader::Signal>(&record)) {
        kill(-pid_, signal->number);
      } else {
        input_ended_ = true;
      }
    }
    if (input_ended_ && waiting_.empty()) input_.reset();
  }

  void write_input() {
    const ssize_t count = write(input_.get(), waiting_.data(), waiting_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    waiting_.erase(0, count < 0 ? waiting_.size() : static_cast<std::size_t>(count));
    if (count < 0 || (input_ended_ && waiting_.empty())) input_.reset();
  }

  void take_signals() {
    while (const auto signal = signals_.next()) {
      if (*signal == SIGCHLD)
        reap();
      else if (*signal == SIGTERM || *signal == SIGINT || *signal == SIGHUP || *signal == SIGQUIT || *signal == SIGUSR1 ||
               *signal == SIGUSR2)
        kill(-pid_, *signal);
    }
  }

  void reap() {
    siginfo_t how = {};
    while (waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid != 0) {
      const pid_t pid = how.si_pid;
      if (pid == pid_) {
        status_ = how.si_code == CLD_EXITED ? how.si_status : 128 + how.si_status;
        kill(-pid, SIGKILL);
        keeper_.release(pid);
      }
      waitpid(pid, nullptr, 0);
      how = {};
    }
  }

  const Signals& signals_;
  Keeper& keeper_;
  std::vector<pid_t> spared_;
  pid_t pid_ = -1;
  std::optional<int> status_;
  bool is_open_ = true;  // the stream of records
  RecordReader records_;
  io::FileDescriptor input_;  // of the program; none when it has ended or there is none
  std::string waiting_;       // for it
  bool input_ended_ = false;
};

}  // namespace

int run_far_end() {
  const std::optional<Beginning> beginning = read_beginning();
  if (!beginning) return fail("no request of a launcher came on standard input", 1);
  const Result<RankRequest> request = decode_request(beginning->line);
  if (!request) return fail(request.error().sentence(), 1);

  const Result<Signals> signals = Signals::take();
  if (!signals) return fail(signals.error().sentence(), 1);
  adopt_orphans();
  Result<Keeper> keeper = Keeper::start();
  if (!keeper) return fail(keeper.error().sentence(), 1);
  if (chdir(request->directory.c_str()) != 0) return fail(fmt::format("cannot enter {}: {}", request->directory, std::strerror(errno)), 1);
  for (const auto& [name, value] : request->environment) setenv(name.c_str(), value.c_str(), 1);
  const FoundProgram program = find_program(request->words.at(0));
  if (program.file.empty()) return fail(program.problem, program.status);

  const Result<Cores> cores = cores_of(*request);
  if (!cores) return fail(cores.error().sentence(), 1);

  FarEnd far_end(*signals, *keeper);
  if (const auto started = far_end.start(*request, program.file, *cores); !started)
    return fail(started.error().sentence(), started.error().code() == ErrorCode::kIo ? kNotExecutable : 1);
  return far_end.run(beginning->rest);
}

}  // namespace nexar::launch
