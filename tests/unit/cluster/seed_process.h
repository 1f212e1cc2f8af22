// A seed in a process of its own, so that its memory can be told from that of those who come to it.
#pragma once

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "nexar/seed.h"

namespace nexar::cluster::test {

class SeedProcess {
 public:
  // Forks: no other thread may run then.
  explicit SeedProcess(SeedOptions options) {
    int commands[2];
    int answers[2];
    if (pipe(commands) != 0 || pipe(answers) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      close(commands[1]);
      close(answers[0]);
      serve(std::move(options), commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    commands_ = commands[1];
    answers_ = answers[0];
    address_ = ask('a');
  }
  ~SeedProcess() {
    close(commands_);
    close(answers_);
    int status = 0;
    waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0) << "the seed did not end well";
  }
  SeedProcess(const SeedProcess&) = delete;
  SeedProcess& operator=(const SeedProcess&) = delete;

  const std::string& address() const { return address_; }

  // Bytes that it has allocated now.
  long allocated() const { return std::stol(ask('m')); }

  // The most that was ever resident since reset_peak(), and what is now, in bytes.
  long peak() const { return status("VmHWM:"); }
  long resident() const { return status("VmRSS:"); }
  void reset_peak() const { std::ofstream("/proc/" + std::to_string(child_) + "/clear_refs") << "5"; }

 private:
  [[noreturn]] static void serve(SeedOptions options, int commands, int answers) {
    Result<Seed> seed = Seed::start(std::move(options));
    if (!seed) _exit(1);
    for (char command = 0; read(commands, &command, 1) == 1;) {
      const struct mallinfo2 memory = mallinfo2();
      const std::string answer = (command == 'a' ? seed->address() : std::to_string(memory.uordblks + memory.hblkhd)) + "\n";
      if (write(answers, answer.data(), answer.size()) < 0) break;
    }
    seed->stop();
    _exit(0);
  }

  std::string ask(char command) const {
    std::string line;
    if (write(commands_, &command, 1) != 1) return line;
    for (char letter = 0; read(answers_, &letter, 1) == 1 && letter != '\n';) line += letter;
    return line;
  }

  long status(const std::string& name) const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/status");
    for (std::string word; file >> word;)
      if (word == name) {
        long kibibytes = 0;
        file >> kibibytes;
        return kibibytes * 1024;
      }
    return 0;
  }

  pid_t child_ = -1;
  int commands_ = -1;
  int answers_ = -1;
  std::string address_;
};

}  // namespace nexar::cluster::test
