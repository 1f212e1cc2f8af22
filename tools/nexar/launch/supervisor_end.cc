// How ranks end: signals, deaths, and our standard input on its way to rank 0.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launch/descendants.h"
#include "launch/remote_rank.h"
#include "launch/supervised_rank.h"
#include "launch/supervisor.h"

namespace nexar::launch {

void Supervisor::take_signals() {
  while (const auto signal = signals_.next()) on_signal(*signal);
}

void Supervisor::on_signal(int signal) {
  switch (signal) {
    case SIGCHLD: return reap();
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
      if (alive() == 0 || stopping_) {
        if (alive() == 0 && !status_) status_ = 128 + signal;
        return kill_all();
      }
      // How the ranks end is now their answer to it; only if there were none to answer is it ours.
      stopping_ = interrupted_ = true;
      kill_at_ = Clock::now() + options_.grace;
      return pass_on(signal);
    case SIGTSTP:
      pass_on(SIGTSTP);
      kill(getpid(), SIGSTOP);
      return;
    case SIGCONT:
    case SIGQUIT:
    case SIGUSR1:
    case SIGUSR2: return pass_on(signal);
    default: return;
  }
}

void Supervisor::pass_on(int signal) {
  for (const auto& rank : ranks_) {
    if (!rank->is_alive) continue;
    if (rank->is_remote)
      rank->to_send += signal_record(signal);
    else
      kill(-rank->pid, signal);
  }
}

// A process that has ended keeps its number until it is reaped: so its group is killed and released before that.
void Supervisor::reap() {
  siginfo_t how = {};
  while (waitid(P_ALL, 0, &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid != 0) {
    const pid_t pid = how.si_pid;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& r) { return r->is_alive && r->pid == pid; });
    if (rank != ranks_.end()) {
      kill(-pid, SIGKILL);
      keeper_.release(pid);
    }
    waitpid(pid, nullptr, 0);
    if (rank != ranks_.end()) on_end(**rank, how);
    if (pid == keeper_.pid()) stop(1, "its keeper was killed; stopping all ranks");
    how = {};
  }
}

void Supervisor::on_end(Rank& rank, const siginfo_t& how) {
  rank.is_alive = false;
  rank.input.reset();
  // What it wrote comes before what we say of it; a pipe holds a megabyte at most.
  for (Stream* stream : {&rank.out, &rank.err})
    for (int i = 0; i < 16 && stream->pipe && read(*stream); ++i) {
    }
  const bool exited = how.si_code == CLD_EXITED;
  const int status = exited ? how.si_status : 128 + how.si_status;
  if (status != 0) {
    constexpr int kShellFailed = 255;
    std::string what = fmt::format("rank {}{}{}", rank.number, rank.host.empty() ? "" : " on ", rank.host);
    if (!exited)
      what += fmt::format(" was killed by signal {} ({})", how.si_status, strsignal(how.si_status));
    else if (rank.is_remote && status == kShellFailed)
      what = fmt::format("rank {}: the remote shell to {} failed (status {})", rank.number, rank.host, status);
    else if (rank.is_remote && status > 128 && status <= 128 + 64)
      what += fmt::format(" was killed by signal {} ({})", status - 128, strsignal(status - 128));
    else
      what += fmt::format(" exited with status {}", status);
    const bool was_stopping = stopping_;
    const std::string consequence = alive() > 0 ? "; stopping the others" : "";
    if (!status_) status_ = status;
    if (!was_stopping) stop(status, what + consequence);
  }
  if (alive() > 0) return;
  end_descendants(spared_, std::chrono::seconds(2));
  kill_at_.reset();
  cut_at_.reset();
  if (interrupted_ || killed_) leave_at_ = Clock::now() + std::chrono::seconds(1);
}

void Supervisor::stop(int status, const std::string& why) {
  if (!status_) status_ = status;
  if (stopping_) return;
  stopping_ = true;
  if (!why.empty()) say(why);
  pass_on(SIGTERM);
  pass_on(SIGCONT);  // one that is stopped could not end
  kill_at_ = Clock::now() + options_.grace;
}

// A remote end kills its own when it is told or when it hears no more of us; its shell gets a second for that.
void Supervisor::kill_all() {
  const Clock::time_point now = Clock::now();
  kill_at_.reset();
  stopping_ = killed_ = true;
  for (const auto& rank : ranks_) {
    if (!rank->is_alive) continue;
    if (!rank->is_remote) kill(-rank->pid, SIGKILL);
    rank->to_send += rank->is_remote ? signal_record(SIGKILL) : "";
    rank->input_ends_with_queue = rank->is_remote;
  }
  if (alive() > 0)
    cut_at_ = now + std::chrono::seconds(1);
  else
    leave_at_ = now;
}

Supervisor::Rank* Supervisor::input_taker() const {
  if (!input_open_ || ranks_.empty()) return nullptr;
  Rank& first = *ranks_.front();
  if (!first.copies_input || !first.input || !first.to_send.empty() || first.input_ends_with_queue) return nullptr;
  // Reading a terminal from the background would be refused.
  if (isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) != getpgrp()) return nullptr;
  return &first;
}

void Supervisor::pump_input(Rank& rank) {
  std::array<char, kDataMax> bytes;
  const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count > 0) {
    const std::string_view piece(bytes.data(), static_cast<std::size_t>(count));
    rank.to_send += rank.is_remote ? input_record(piece) : std::string(piece);
    return;
  }
  input_open_ = false;
  if (rank.is_remote)
    rank.to_send += input_end_record();
  else
    rank.input.reset();
}

void Supervisor::write_input(Rank& rank) {
  const ssize_t count = write(rank.input.get(), rank.to_send.data(), rank.to_send.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count < 0)
    rank.to_send.clear();
  else
    rank.to_send.erase(0, static_cast<std::size_t>(count));
  if (count < 0 || (rank.to_send.empty() && rank.input_ends_with_queue)) rank.input.reset();
}

}  // namespace nexar::launch
