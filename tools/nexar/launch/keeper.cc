#include "launch/keeper.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/descendants.h"

namespace nexar::launch {
namespace {

// What travels through the pipe; far below what a pipe takes in one piece.
struct Record {
  pid_t group;
  enum class What : std::int32_t { kKillAtOnce, kKillGently, kRelease } what;
};

// A remote end needs a round trip to notice and to kill its own; after this long it has not noticed.
constexpr int kGentleMilliseconds = 5000;
constexpr int kLookMilliseconds = 20;

void end_groups(const std::map<pid_t, Record::What>& groups) {
  for (const auto& [group, what] : groups)
    if (what == Record::What::kKillAtOnce) kill(-group, SIGKILL);
  for (int waited = 0; waited < kGentleMilliseconds; waited += kLookMilliseconds) {
    bool any = false;
    for (const auto& [group, what] : groups) any = any || (what == Record::What::kKillGently && has_living_member(group));
    if (!any) return;
    const timespec pause{0, kLookMilliseconds * 1'000'000L};
    nanosleep(&pause, nullptr);
  }
  for (const auto& [group, what] : groups) kill(-group, SIGKILL);
}

// Keeps nothing of the launcher's open: whoever reads its output shall see the end of it.
void leave_everything_but(int pipe) {
  const int null = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) dup2(null, stream);
  dup2(pipe, 3);
  close_range(4, ~0u, 0);
}

[[noreturn]] void keep(int pipe) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();
  prctl(PR_SET_NAME, "nexar-keeper");
  leave_everything_but(pipe);
  std::map<pid_t, Record::What> groups;
  Record record;
  while (read(3, &record, sizeof record) == static_cast<ssize_t>(sizeof record)) {
    if (record.what == Record::What::kRelease)
      groups.erase(record.group);
    else
      groups[record.group] = record.what;
  }
  end_groups(groups);
  _exit(0);
}

void tell(int pipe, const Record& record) {
  while (write(pipe, &record, sizeof record) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<Keeper> Keeper::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error(ErrorCode::kIo, std::string("cannot open a pipe: ") + std::strerror(errno));
  io::FileDescriptor read_end(ends[0]);
  io::FileDescriptor write_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return Error(ErrorCode::kOverloaded, std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) keep(read_end.get());
  return Keeper(pid, std::move(write_end));
}

Keeper::Keeper(Keeper&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

Keeper::~Keeper() {
  if (pid_ < 0) return;
  pipe_.reset();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Keeper::guard(pid_t group, Way way) {
  tell(pipe_.get(), {group, way == Way::kAtOnce ? Record::What::kKillAtOnce : Record::What::kKillGently});
}

void Keeper::release(pid_t group) { tell(pipe_.get(), {group, Record::What::kRelease}); }

}  // namespace nexar::launch
