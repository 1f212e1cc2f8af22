// Ranks that are real processes, for tests that kill and stop them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "nexar/config.h"
#include "nexar/node.h"

namespace nexar::test {

// What a rank's body has beside its node: lines to and from the test.
class Wire {
 public:
  Wire(int in, int out) : in_(in), out_(out) {}
  void say(const std::string& line) const;
  std::optional<std::string> hear() const;  // the next line; nothing at the end

 private:
  int in_;
  int out_;
};

// `size` processes, each a rank of one world, which run `body` and exit. The test's process must have no threads when they are made; the
// destructor kills and reaps what is left.
class Processes {
 public:
  using Body = std::function<void(Node&, const Wire&)>;

  // One place for each rank, or none: here, on loopback. Ranks of one namespace are on one host. Each process runs `prepare` before
  // anything else.
  Processes(int size, const Config& config, const Body& body, const std::vector<LocalOptions::Place>& places = {},
            const std::function<void(Rank)>& prepare = {});
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // The next line that a rank says; "" when it has ended, or after a minute.
  std::string hear(Rank rank);
  void say(Rank rank, const std::string& line);

  // After SIGSTOP it is stopped.
  void signal(Rank rank, int number) const;

  // How it ended, as waitpid says. Waits for it.
  int wait(Rank rank);

 private:
  struct Process {
    pid_t pid = -1;
    int in = -1;   // what it says
    int out = -1;  // what it is told
    std::string rest;
    bool reaped = false;
    int status = 0;
  };

  std::vector<Process> processes_;
};

}  // namespace nexar::test
