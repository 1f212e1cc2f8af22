// The signals that a supervising process gets, as something to read rather than as interruptions.
#pragma once

#include <optional>

#include <signal.h>

#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::launch {

// From take() on every signal that can be caught is pending until next() returns it; nothing in the process is interrupted by one. What the
// process ignores stays ignored, here and in its children. Thread: main.
class Signals {
 public:
  static Result<Signals> take();

  int descriptor() const { return descriptor_.get(); }  // readable when next() has one
  std::optional<int> next() const;

  // What was blocked before: what a child starts with.
  const sigset_t& mask() const { return mask_; }

 private:
  Signals(io::FileDescriptor descriptor, const sigset_t& mask) : descriptor_(std::move(descriptor)), mask_(mask) {}

  io::FileDescriptor descriptor_;
  sigset_t mask_;
};

}  // namespace nexar::launch
