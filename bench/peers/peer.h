// A runtime that nexar's collectives are set beside, and the program that measures it: the same timing, checks and rows as `nexar bench`.
//
//   PEER [--op all_reduce,broadcast] [--bytes 8,1K,64M] [--iters N] [--time 200ms] [--check] [--out-of-place] [--transport LABEL] [--json
//   FILE]
//
// Elements are f32 and reductions are sums. How the ranks are started is the runtime's own affair.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/call.h"
#include "bench/memory.h"
#include "bench/timing.h"

namespace nexar::bench {

// A call that is ready to be made again and again.
struct Prepared {
  std::function<void()> once;     // empty: the peer has no such call
  std::function<void()> load{};   // where the peer works on memory of its own: to there, before a call whose result counts
  std::function<void()> store{};  // and back
};

class Peer : public World {
 public:
  virtual std::string name() const = 0;

  // `memory` outlives what is returned.
  virtual Prepared prepare(const Call& call, Memory& memory) = 0;
};

// What a peer is: its own options, and how it is started once they are known.
struct PeerProgram {
  std::function<void(CLI::App&)> add_options;
  std::function<std::unique_ptr<Peer>()> start;
};

// The program. Returns its exit status: 0, 1 when something failed or was wrong, 2 for a command line that was not understood.
int run_peer(int argc, char** argv, const PeerProgram& program);

}  // namespace nexar::bench
