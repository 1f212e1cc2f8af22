// Starting the ranks of a world, here or on other hosts.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace nexar::launch {

struct LaunchOptions {
  std::string name = "nexar run";  // in what the launcher says
  int world = 0;                   // 0: one rank for each slot of the hosts
  std::string hosts;               // `a,b:2`; empty: all ranks here
  std::string ssh = "ssh";         // runs a command elsewhere: SSH HOST COMMAND...
  std::string nexar;               // the tool's path there; empty: as here
  std::string listen;              // where ranks find the seed; empty: loopback, or the address that reaches the first host
  bool bind = false;               // each rank to its share of its host's cores
  bool prefix = true;              // mark lines with the rank that wrote them
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  std::optional<std::chrono::nanoseconds> timeout;
  std::chrono::nanoseconds formation = std::chrono::seconds(60);  // from the first rank's join to the last one's
  std::vector<std::string> program;                               // and its arguments
};

// Runs the world to its end and returns the status to exit with. What is wrong with the options is said on standard error: status 2; a
// program that cannot be run 127 or 126; anything else of our own 1.
int launch(const LaunchOptions& options);

}  // namespace nexar::launch
