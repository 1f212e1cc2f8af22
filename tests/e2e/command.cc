#include "command.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/clock.h"
#include "io/file_descriptor.h"

namespace nexar::test {
namespace {

struct Pipe {
  io::FileDescriptor read;
  io::FileDescriptor write;
};

Error system_error(std::string_view what, int number) { return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(number))}; }

Result<Pipe> open_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot open a pipe", errno);
  return Pipe{io::FileDescriptor(ends[0]), io::FileDescriptor(ends[1])};
}

// A process that was started, killed and reaped with this object unless it was waited for.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    static_cast<void>(reap());
  }

  // The status as waitpid gives it.
  int reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

Result<pid_t> spawn(const std::string& file, const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  const int problem = posix_spawn(&pid, file.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return system_error("cannot start " + file, problem);
  return pid;
}

// Appends what is there; false at the end of the stream.
bool read_into(std::string& text, int fd) {
  std::array<char, 4096> piece;
  const ssize_t count = read(fd, piece.data(), piece.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  text.append(piece.data(), std::min(static_cast<std::size_t>(count), kCommandOutputMax - text.size()));
  return count > 0;
}

// Reads both streams to their ends; false when that takes too long.
bool drain(const Pipe& out, std::string& out_text, const Pipe& err, std::string& err_text, base::Duration limit) {
  const base::Time deadline = io::real_clock().now() + limit;
  std::array<pollfd, 2> streams = {pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - io::real_clock().now());
    if (left.count() <= 0) return false;
    if (poll(streams.data(), streams.size(), static_cast<int>(left.count())) < 0) continue;
    if (streams[0].revents != 0 && !read_into(out_text, streams[0].fd)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !read_into(err_text, streams[1].fd)) streams[1].fd = -1;
  }
  return true;
}

std::string how_it_ended(int status) {
  return WIFEXITED(status) ? fmt::format("exited with {}", WEXITSTATUS(status)) : fmt::format("was ended by signal {}", WTERMSIG(status));
}

}  // namespace

std::string find_tool(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : std::string();
  const char* path = std::getenv("PATH");
  const std::string folders = fmt::format("{}:/usr/sbin:/sbin:/usr/bin:/bin", path != nullptr ? path : "");
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    std::string file = folders.substr(begin, end - begin) + "/" + name;
    if (end > begin && access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return {};
}

Result<std::string> run_command(const std::vector<std::string>& words, base::Duration limit) {
  const std::string line = fmt::format("`{}`", fmt::join(words, " "));
  const std::string file = find_tool(words.at(0));
  if (file.empty()) return Error(ErrorCode::kUnsupported, fmt::format("{}: there is no {} here", line, words[0]));
  Result<Pipe> out = open_pipe();
  if (!out) return out.error();
  Result<Pipe> err = open_pipe();
  if (!err) return err.error();
  const Result<pid_t> pid = spawn(file, words, out->write.get(), err->write.get());
  if (!pid) return pid.error();
  Child child(*pid);
  out->write.reset();
  err->write.reset();

  std::string output;
  std::string complaint;
  if (!drain(*out, output, *err, complaint, limit))
    return Error(ErrorCode::kIo, fmt::format("{} was not done in time: {}", line, complaint));
  const int status = child.reap();
  complaint.erase(complaint.find_last_not_of('\n') + 1);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return Error(ErrorCode::kIo, fmt::format("{} {}: {}", line, how_it_ended(status), complaint));
}

}  // namespace nexar::test
