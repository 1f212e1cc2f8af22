// Starting a program as the leader of a process group of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "launch/binding.h"
#include "nexar/result.h"

namespace nexar::launch {

// What shells return when a program is not there, or there and cannot be run.
inline constexpr int kNotFound = 127;
inline constexpr int kNotExecutable = 126;

// The file that a program's name stands for, or why it cannot be run.
struct FoundProgram {
  std::string file;     // empty when there is a problem
  std::string problem;  // names the program
  int status = 0;       // kNotFound or kNotExecutable
};

// Looks in PATH for a name without a slash; one with a slash is a path.
FoundProgram find_program(const std::string& name);

struct Command {
  std::string file;
  std::vector<std::string> words;        // the first is the name that the program is told
  std::vector<std::string> environment;  // NAME=VALUE
};

struct Streams {
  int in;
  int out;
  int err;
};

struct StartOptions {
  sigset_t mask;                 // of signals that the program finds blocked
  bool dies_with_parent = true;  // SIGKILL when the thread that started it ends
  Cores cores{};                 // that it runs on; empty: wherever this process may

  // Called between the start of the process and that of the program: nothing that is not noted ever runs.
  std::function<void(pid_t)> note{};
};

// Starts it; its process group has the number that is returned. kIo when the kernel refuses the file, kUnsupported when it refuses the
// cores, kOverloaded when there can be no more processes. The caller reaps it.
Result<pid_t> start(const Command& command, const Streams& streams, const StartOptions& options);

}  // namespace nexar::launch
