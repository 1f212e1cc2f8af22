// Somebody who ends the ranks when the launcher cannot.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::launch {

// A small process beside the launcher. It holds one end of a pipe; when the launcher is gone, however that came (kill -9 included), it
// reads the end of it and kills the process groups it was told of.
//
//   launcher --guard(group)--> pipe --> keeper          launcher gone --> end of pipe --> kill(-group)
//
// It has a session of its own, so that a signal to the launcher's whole process group does not reach it. Thread: main; start it before
// there are others. Owned by the launcher.
class Keeper {
 public:
  // How a group is ended.
  enum class Way : std::uint8_t {
    kAtOnce,  // SIGKILL
    kGently,  // it notices by itself that the launcher is gone; SIGKILL only if it has not after 5 s
  };

  static Result<Keeper> start();

  Keeper(Keeper&& other) noexcept;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper();  // lets it go, and waits until it has

  pid_t pid() const { return pid_; }

  // A group is guarded before its program runs, and released before its number can be another's.
  void guard(pid_t group, Way way);
  void release(pid_t group);

 private:
  Keeper(pid_t pid, io::FileDescriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  io::FileDescriptor pipe_;
};

}  // namespace nexar::launch
