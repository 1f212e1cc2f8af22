// Runs plans of all ranks on real values, in a random order that a runner would be allowed to take.
//
// Independent of the verifier: it knows nothing of symbols. It is as unkind as the rules allow. Messages are eager (copied when sent, the
// send is done at once) or bulk (moved in pieces after a grant, straight between the buffers, the send being done some time after the last
// piece has arrived). Several calls may be in flight; all messages from one rank to another then share one lane, and only the first in it
// moves.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace nexar::plan {

// Every element is 64 bits, whatever they stand for.
using Word = std::uint64_t;

struct Arithmetic {
  std::function<Word(Word left, Word right)> combine;
  std::function<Word(Word sum, std::uint64_t divisor)> divide;
  Word identity = 0;
};

// What the user of one rank has: both buffers, which are one where the shape says so.
struct UserBuffers {
  std::vector<Word> input;
  std::vector<Word> output;
};

// Fills in what the user has before the call: input[rank][i] = value(rank, i), and rubbish in the output.
std::vector<UserBuffers> buffers_for(std::span<const Plan> plans, const std::function<Word(Rank, std::uint64_t)>& value);

// The result of a rank, wherever the shape has put it.
std::span<const Word> result_of(const Plan& plan, const UserBuffers& buffers);

struct RunningCall {
  std::span<const Plan> plans;
  const Arithmetic* arithmetic;
  std::vector<UserBuffers>* buffers;
};

// False when nothing more can happen and something is left to do.
bool execute(std::vector<RunningCall> calls, std::uint64_t seed);

}  // namespace nexar::plan
