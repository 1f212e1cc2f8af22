// What a Supervisor knows of one rank.
#pragma once

#include <string>

#include <sys/types.h>

#include "io/file_descriptor.h"
#include "launch/output.h"
#include "launch/supervisor.h"

namespace nexar::launch {

// One of a rank's two outputs.
struct Supervisor::Stream {
  io::FileDescriptor pipe;  // none after its end
  LineCutter lines;
  OutputFile* file;
};

struct Supervisor::Rank {
  int number;
  std::string host;
  bool is_remote;
  pid_t pid;  // of it, or of the remote shell; also its process group
  bool is_alive;
  Stream out;
  Stream err;
  io::FileDescriptor input;    // of its standard input, or of its far end's; none when we write nothing there
  std::string to_send;         // through `input`: a request and records, or a piece of our own standard input
  bool copies_input;           // ours is copied to it
  bool input_ends_with_queue;  // `input` is closed when to_send is empty
};

}  // namespace nexar::launch
