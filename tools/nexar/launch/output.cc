#include "launch/output.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace nexar::launch {

LineCutter::LineCutter(int rank, const LineStyle& style) : raw_(!style.prefix) {
  if (raw_) return;
  // Red, green, yellow, blue, magenta, cyan: those that are legible on black and on white.
  prefix_ = style.colour ? fmt::format("\x1b[{}m[{}]\x1b[0m ", 31 + rank % 6, rank) : fmt::format("[{}] ", rank);
}

void LineCutter::add(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::size_t taken = std::min(newline == std::string_view::npos ? bytes.size() : newline, kLineMax - rest_.size());
    rest_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    const bool complete = !bytes.empty() && bytes.front() == '\n';
    if (complete) bytes.remove_prefix(1);
    if (!complete && rest_.size() < kLineMax) continue;
    show(rest_, complete, out);
    rest_.clear();
  }
}

void LineCutter::finish(std::string& out) {
  if (!rest_.empty()) show(rest_, false, out);
  rest_.clear();
}

void LineCutter::show(std::string_view line, bool complete, std::string& out) const {
  out.append(prefix_).append(line);
  if (complete || !raw_) out.push_back('\n');
}

OutputFile::OutputFile(int fd) : fd_(fd) {
  struct stat status;
  const bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  piece_ = regular ? kLineMax : PIPE_BUF;  // a pipe that is ready takes this much
}

void OutputFile::put(std::string_view text) {
  if (broken_) return;
  if (written_ == waiting_.size() || written_ >= kWaitingMax) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
  waiting_.append(text);
}

bool OutputFile::write_some() {
  const ssize_t count = write(fd_, waiting_.data() + written_, std::min(piece_, waiting_.size() - written_));
  broken_ = count < 0 && errno != EINTR && errno != EAGAIN;
  if (broken_) waiting_.clear();
  written_ = broken_ ? 0 : written_ + static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  return !broken_;
}

bool is_same_file(int a, int b) {
  struct stat first;
  struct stat second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace nexar::launch
