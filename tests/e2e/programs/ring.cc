// A rank of a world for tests: passes a number around a ring, then does what its first argument says.
//
//   ring leave      each rank leaves at a time of its own after its last message
//   ring again      waits for the end of its standard input, passes a number around once more, and leaves
//   ring wait       waits for a message that never comes, and says how that ended
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include <unistd.h>

#include "nexar/node.h"

namespace {

// Lines that a test waits for.
void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

// Every rank adds its own number on each of three rounds.
std::uint64_t pass_around(const nexar::Group& world) {
  const int size = world.size();
  const nexar::Rank next = (world.rank() + 1) % size;
  const nexar::Rank previous = (world.rank() + size - 1) % size;
  std::uint64_t sum = 0;
  for (nexar::Tag round = 0; round < 3; ++round) {
    if (world.rank() != 0) world.recv(&sum, sizeof sum, previous, round).value();
    sum += static_cast<std::uint64_t>(world.rank());
    world.send(&sum, sizeof sum, next, round).value();
    if (world.rank() == 0) world.recv(&sum, sizeof sum, previous, round).value();
  }
  return sum;
}

int run(const std::string& what) {
  nexar::Node node = nexar::Node::from_env().value();
  const std::uint64_t sum = pass_around(node.world());
  say("pid " + std::to_string(getpid()) + " passed " + std::to_string(sum) + " among " + std::to_string(node.size()));
  if (what == "again") {
    while (std::getchar() != EOF) continue;
    say("again " + std::to_string(pass_around(node.world())));
    node.close().value();
    return 0;
  }
  if (what == "leave") {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * node.rank()));  // what is tested: different times
    node.close().value();
    return 0;
  }
  std::uint64_t never = 0;
  const auto ended = node.world().recv(&never, sizeof never, (node.rank() + 1) % node.size(), 99);
  say(ended ? "a message came" : ended.error().to_string());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "leave");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ring: %s\n", error.what());
    return 1;
  }
}
