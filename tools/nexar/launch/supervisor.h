// Runs the ranks of one world from their start to their end.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "io/file_descriptor.h"
#include "launch/child.h"
#include "launch/keeper.h"
#include "launch/output.h"
#include "launch/signals.h"
#include "nexar/result.h"

namespace nexar::launch {

struct SupervisorOptions {
  std::string name = "nexar run";  // in what it says
  LineStyle style;
  std::chrono::nanoseconds grace = std::chrono::seconds(5);  // between asking a rank to end and killing it
  std::optional<std::chrono::nanoseconds> timeout;           // of the whole
};

// How one rank is started.
struct RankCommand {
  int rank = 0;
  Command command;
  std::string host;     // where it runs, for messages; empty: here
  std::string request;  // for a remote rank, what its far end reads first
  bool is_remote = false;
  Cores cores;  // that it runs on, if it is here and bound
};

// Starts ranks, shows what they write, passes signals on, and ends all when one fails.
//
// The status is that of the first rank that did not end with 0; 128 and the signal's number for one that a signal ended. Each rank has a
// process group of its own: what a rank has started ends with it. When run() returns, or when this process dies, no process of them is
// left.
//
// Thread: main. Owned by the command.
class Supervisor {
 public:
  Supervisor(SupervisorOptions options, const Signals& signals, Keeper& keeper);
  ~Supervisor();  // kills what runs
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // False when an interruption or the end of another rank has made it pointless; then run() says with what status.
  Result<bool> start(const RankCommand& rank);

  // Returns when all have ended, with the status for the launcher to exit with.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank;
  struct Stream;

  void turn(bool may_wait);
  int wait_time() const;
  void check_deadlines();
  bool is_done() const;

  OutputFile& error_file() { return one_file_ ? out_ : err_; }
  bool read(Stream& stream);  // true when there was something
  void say(const std::string& sentence);
  void write_to(OutputFile& file);

  void take_signals();
  void on_signal(int signal);
  void pass_on(int signal);
  void reap();
  void on_end(Rank& rank, const siginfo_t& how);
  void stop(int status, const std::string& why);
  void kill_all();

  Rank* input_taker() const;  // the rank that waits for our standard input, if we may read it now
  void pump_input(Rank& rank);
  void write_input(Rank& rank);
  int alive() const;

  SupervisorOptions options_;
  const Signals& signals_;
  Keeper& keeper_;
  std::vector<pid_t> spared_;  // children that were there before: not ours
  std::vector<std::unique_ptr<Rank>> ranks_;
  OutputFile out_;
  OutputFile err_;
  bool one_file_;  // both are the same terminal or file: err_ is not used, so that lines stay whole

  bool input_open_ = true;                     // our own standard input, as far as we read it
  std::optional<int> status_;                  // of the first failure
  bool stopping_ = false;                      // the ranks have been asked to end
  bool interrupted_ = false;                   // because we were
  bool killed_ = false;                        // and then killed
  std::optional<Clock::time_point> kill_at_;   // end of the grace
  std::optional<Clock::time_point> cut_at_;    // remote shells that have not ended by themselves
  std::optional<Clock::time_point> leave_at_;  // all have ended on request: output that nobody takes is dropped
  std::optional<Clock::time_point> timeout_at_;
};

}  // namespace nexar::launch
