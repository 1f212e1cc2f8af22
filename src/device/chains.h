// What an adapter does in several steps: each goes on when the steps before it have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "nexar/device.h"

namespace nexar::device {

// One call that takes several steps. advance() is called until it returns true; by then it has completed the caller's completion.
class Chain {
 public:
  virtual ~Chain() = default;
  virtual bool advance() = 0;
};

// Several steps that end as one, with the first error in the order of posting.
class Steps {
 public:
  explicit Steps(std::size_t count) : completions_(std::make_unique<DeviceCompletion[]>(count)), count_(count) {}

  DeviceCompletion& operator[](std::size_t index) { return completions_[index]; }
  bool done() const;
  Result<void> result() const;

 private:
  std::unique_ptr<DeviceCompletion[]> completions_;
  std::size_t count_;
};

// The chains of an adapter that have not ended. Thread: any.
class ChainList {
 public:
  // Takes a chain that has posted its first steps, and advances it once: where steps end at once it is over now.
  void add(std::unique_ptr<Chain> chain);

  // Advances all; true when one ended. A second thread that comes meanwhile does nothing.
  bool advance();

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<Chain>> chains_;
};

// Many single steps, one completion.
std::unique_ptr<Chain> gather_chain(std::unique_ptr<Steps> steps, DeviceCompletion& done);

}  // namespace nexar::device
