#include "launch/child.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "io/file_descriptor.h"

namespace nexar::launch {
namespace {

FoundProgram problem(const std::string& name, int number) {
  const bool missing = number == ENOENT || number == ENOTDIR;
  return {"", fmt::format("cannot run {}: {}", name, missing ? "there is no such program" : std::strerror(number)),
          missing ? kNotFound : kNotExecutable};
}

// 0 when the file can be run, otherwise why not.
int refusal(const std::string& file) {
  struct stat status;
  if (stat(file.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

// Everything that the new process needs, made before it: between fork and exec nothing may be allocated, because the launcher has threads.
struct Prepared {
  explicit Prepared(const Command& command) : file(command.file.c_str()) {
    for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& variable : command.environment) environment.push_back(const_cast<char*>(variable.c_str()));
    words.push_back(nullptr);
    environment.push_back(nullptr);
  }

  const char* file;
  std::vector<char*> words;
  std::vector<char*> environment;
};

[[noreturn]] void become(const Prepared& prepared, const Streams& streams, const StartOptions& options, pid_t parent, int gate,
                         int report) {
  setpgid(0, 0);
  if (options.dies_with_parent) prctl(PR_SET_PDEATHSIG, SIGKILL);
  char go = 0;
  // A parent that died before the line above sends nothing any more; then the gate has ended too.
  if (getppid() != parent || read(gate, &go, 1) != 1) _exit(kNotFound);
  dup2(streams.in, STDIN_FILENO);
  dup2(streams.out, STDOUT_FILENO);
  dup2(streams.err, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &options.mask, nullptr);
  execve(prepared.file, prepared.words.data(), prepared.environment.data());
  const int number = errno;
  static_cast<void>(!write(report, &number, sizeof number));
  _exit(number == ENOENT ? kNotFound : kNotExecutable);
}

// Before the program is there, so that none of its threads ever runs elsewhere.
Result<void> bind(pid_t pid, const Cores& cores) {
  if (cores.empty()) return {};
  const int count = *std::max_element(cores.begin(), cores.end()) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(count), [](cpu_set_t* made) { CPU_FREE(made); });
  const std::size_t size = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(size, set.get());
  for (const int core : cores) CPU_SET_S(core, size, set.get());
  if (sched_setaffinity(pid, size, set.get()) == 0) return {};
  return Error(ErrorCode::kUnsupported, fmt::format("cannot bind it to cores {}: {}", to_string(cores), std::strerror(errno)));
}

struct Pipe {
  io::FileDescriptor read;
  io::FileDescriptor write;
};

Result<Pipe> open_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error(ErrorCode::kOverloaded, fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  return Pipe{io::FileDescriptor(ends[0]), io::FileDescriptor(ends[1])};
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

FoundProgram find_program(const std::string& name) {
  if (name.empty()) return problem("\"\"", ENOENT);
  if (name.find('/') != std::string::npos) {
    const int why = refusal(name);
    return why == 0 ? FoundProgram{name, "", 0} : problem(name, why);
  }
  const char* path = std::getenv("PATH");
  const std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  int why = ENOENT;
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    const int refused = refusal(file);
    if (refused == 0) return {file, "", 0};
    if (refused == EACCES) why = refused;  // as shells do: one that may not be run is worth telling
    begin = end + 1;
  }
  return problem(name, why);
}

Result<pid_t> start(const Command& command, const Streams& streams, const StartOptions& options) {
  const Prepared prepared(command);
  Result<Pipe> gate = open_pipe();
  if (!gate) return gate.error();
  Result<Pipe> report = open_pipe();
  if (!report) return report.error();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Error(ErrorCode::kOverloaded, fmt::format("cannot start {}: {}", command.words.at(0), std::strerror(errno)));
  if (pid == 0) {
    close(gate->write.get());  // its own copy would keep the gate from ending with the parent
    become(prepared, streams, options, parent, gate->read.get(), report->write.get());
  }
  setpgid(pid, pid);  // here too: whoever is first, the group is there before the program is
  if (options.note) options.note(pid);
  report->write.reset();
  gate->read.reset();
  if (const Result<void> bound = bind(pid, options.cores); !bound) {
    gate->write.reset();  // its end: the program is not started
    reap(pid);
    return bound.error();
  }
  static_cast<void>(!write(gate->write.get(), "", 1));
  int number = 0;
  ssize_t count = 0;
  while ((count = read(report->read.get(), &number, sizeof number)) < 0 && errno == EINTR) {
  }
  if (count != static_cast<ssize_t>(sizeof number)) return pid;  // the end: the program runs
  reap(pid);
  return Error(ErrorCode::kIo, fmt::format("cannot run {}: {}", command.words.at(0), std::strerror(number)));
}

}  // namespace nexar::launch
