#include "launch/supervisor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launch/descendants.h"
#include "launch/remote_rank.h"
#include "launch/supervised_rank.h"

namespace nexar::launch {
namespace {

struct Pipe {
  io::FileDescriptor ours;
  io::FileDescriptor theirs;
};

// Our end does not block: a rank that stands still must not stop the others.
Result<Pipe> open_pipe(bool we_write) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error(ErrorCode::kOverloaded, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  Pipe pipe{io::FileDescriptor(ends[we_write ? 1 : 0]), io::FileDescriptor(ends[we_write ? 0 : 1])};
  fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, const Signals& signals, Keeper& keeper)
    : options_(std::move(options)),
      signals_(signals),
      keeper_(keeper),
      spared_(descendants({})),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      one_file_(is_same_file(STDOUT_FILENO, STDERR_FILENO)) {
  adopt_orphans();
  if (options_.timeout) timeout_at_ = Clock::now() + *options_.timeout;
}

Supervisor::~Supervisor() { end_descendants(spared_, std::chrono::seconds(2)); }

Result<bool> Supervisor::start(const RankCommand& command) {
  if (stopping_) return false;
  // What we cannot hand over we copy: a rank in another process group may not read our terminal, and a remote one reads no file of ours.
  const bool gets_input = command.rank == 0;
  const bool copies_input = gets_input && (command.is_remote || isatty(STDIN_FILENO) == 1);
  Result<Pipe> out = open_pipe(false);
  if (!out) return out.error();
  Result<Pipe> err = open_pipe(false);
  if (!err) return err.error();
  Pipe in{{}, io::FileDescriptor(gets_input ? dup(STDIN_FILENO) : open("/dev/null", O_RDONLY | O_CLOEXEC))};
  if (command.is_remote || copies_input) {
    Result<Pipe> pipe = open_pipe(true);
    if (!pipe) return pipe.error();
    in = *std::move(pipe);
  } else if (gets_input) {
    fcntl(in.theirs.get(), F_SETFD, FD_CLOEXEC);
  }

  pid_t noted = -1;
  const auto note = [&](pid_t pid) {
    noted = pid;
    keeper_.guard(pid, command.is_remote ? Keeper::Way::kGently : Keeper::Way::kAtOnce);
  };
  const Streams streams{in.theirs.get(), out->theirs.get(), err->theirs.get()};
  const Result<pid_t> pid = launch::start(command.command, streams, {signals_.mask(), !command.is_remote, command.cores, note});
  if (!pid && noted > 0) keeper_.release(noted);
  if (!pid) return pid.error();

  auto rank = std::make_unique<Rank>(Rank{command.rank, command.host, command.is_remote, *pid, true,
                                          Stream{std::move(out->ours), LineCutter(command.rank, options_.style), &out_},
                                          Stream{std::move(err->ours), LineCutter(command.rank, options_.style), &error_file()},
                                          std::move(in.ours), command.request, copies_input, false});
  ranks_.push_back(std::move(rank));
  turn(false);
  return !stopping_;
}

int Supervisor::run() {
  while (!is_done()) turn(true);
  return status_.value_or(0);
}

bool Supervisor::is_done() const {
  if (alive() > 0) return false;
  if (leave_at_ && Clock::now() >= *leave_at_) return true;
  const bool all_read = std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->out.pipe && !rank->err.pipe; });
  return all_read && out_.is_empty() && err_.is_empty();
}

int Supervisor::alive() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->is_alive; }));
}

// Waits for the first thing to do and does all that there is.
void Supervisor::turn(bool may_wait) {
  std::vector<pollfd> descriptors;
  std::vector<std::function<void()>> actions;
  const auto on = [&](int fd, short events, std::function<void()> action) {
    descriptors.push_back({fd, events, 0});
    actions.push_back(std::move(action));
  };
  on(signals_.descriptor(), POLLIN, [this] { take_signals(); });
  for (OutputFile* file : {&out_, &err_})
    if (!file->is_empty()) on(file->descriptor(), POLLOUT, [this, file] { write_to(*file); });
  for (const auto& rank : ranks_) {
    for (Stream* stream : {&rank->out, &rank->err})
      if (stream->pipe && stream->file->has_room()) on(stream->pipe.get(), POLLIN, [this, stream] { static_cast<void>(read(*stream)); });
    if (rank->input && !rank->to_send.empty()) on(rank->input.get(), POLLOUT, [this, &rank] { write_input(*rank); });
  }
  if (Rank* taker = input_taker()) on(STDIN_FILENO, POLLIN, [this, taker] { pump_input(*taker); });

  if (poll(descriptors.data(), descriptors.size(), may_wait ? wait_time() : 0) > 0)
    for (std::size_t i = 0; i < descriptors.size(); ++i)
      if (descriptors[i].revents != 0) actions[i]();
  check_deadlines();
}

int Supervisor::wait_time() const {
  // Whether we are in the foreground of our terminal changes without a sign.
  constexpr int kLookAtTerminal = 200;
  int milliseconds = isatty(STDIN_FILENO) == 1 ? kLookAtTerminal : -1;
  for (const auto& at : {kill_at_, cut_at_, leave_at_, timeout_at_}) {
    if (!at) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*at - Clock::now()).count();
    const int bounded = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    milliseconds = milliseconds < 0 ? bounded : std::min(milliseconds, bounded);
  }
  return milliseconds;
}

void Supervisor::check_deadlines() {
  const Clock::time_point now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_) {
    timeout_at_.reset();
    constexpr int kTimedOut = 124;  // as timeout(1) has it
    if (alive() > 0) stop(kTimedOut, "the time given by --timeout is over; stopping all ranks");
  }
  if (kill_at_ && now >= *kill_at_) kill_all();
  if (cut_at_ && now >= *cut_at_) {
    cut_at_.reset();
    for (const auto& rank : ranks_)
      if (rank->is_alive) kill(-rank->pid, SIGKILL);
  }
}

bool Supervisor::read(Stream& stream) {
  std::array<char, kLineMax> bytes;
  const ssize_t count = ::read(stream.pipe.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  std::string shown;
  if (count > 0) {
    stream.lines.add({bytes.data(), static_cast<std::size_t>(count)}, shown);
  } else {
    stream.lines.finish(shown);
    stream.pipe.reset();
  }
  stream.file->put(shown);
  return count > 0;
}

void Supervisor::say(const std::string& sentence) { error_file().put(fmt::format("{}: {}\n", options_.name, sentence)); }

void Supervisor::write_to(OutputFile& file) {
  if (!file.write_some()) stop(128 + SIGPIPE, "");
}

}  // namespace nexar::launch
