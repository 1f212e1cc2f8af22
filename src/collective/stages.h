// The plans of one call, one after the other: most have one, some have two with something in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collective/call.h"
#include "nexar/result.h"
#include "plan/phases.h"
#include "plan/shape.h"

namespace nexar::collective {

// One plan's shape and memory.
struct Stage {
  plan::Shape shape;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  bool algorithm_asked = true;  // the caller's choice of an algorithm concerns this plan
};

// Thread: engine. Owned by an Operation.
class Stages {
 public:
  void begin(Call& call);

  // The next plan, when the one before is done; nothing when the call is complete, and its results are where they belong.
  Result<std::optional<Stage>> next();

 private:
  Result<std::optional<Stage>> next_of_two_halves();
  Result<std::optional<Stage>> next_of_strings();
  Result<std::optional<Stage>> lengths();
  Result<std::optional<Stage>> payload();
  void take_strings();

  Call* call_ = nullptr;
  int begun_ = 0;  // plans
  std::uint64_t own_length_ = 0;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::byte> joined_;  // all strings, one after the other
};

}  // namespace nexar::collective
