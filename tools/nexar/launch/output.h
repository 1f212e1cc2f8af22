// What ranks write, on its way to the launcher's own standard output and standard error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nexar::launch {

// A line longer than this is cut: memory for ranks that write no newlines is bounded.
inline constexpr std::size_t kLineMax = std::size_t{64} << 10;

// How a rank's lines are marked.
struct LineStyle {
  bool prefix = true;
  bool colour = false;
};

// Cuts the bytes of one stream of one rank into lines, so that those of different ranks do not mix. With a prefix every piece that comes
// out is a whole line; without, the bytes are what the rank wrote, cut at newlines where that is possible.
class LineCutter {
 public:
  LineCutter(int rank, const LineStyle& style);

  // Appends to `out` what can be shown after these bytes.
  void add(std::string_view bytes, std::string& out);

  // The stream has ended: shows a last line without a newline.
  void finish(std::string& out);

 private:
  void show(std::string_view line, bool complete, std::string& out) const;

  std::string prefix_;
  bool raw_;
  std::string rest_;  // of a line without its end yet, below kLineMax
};

// A descriptor that is written only when it takes bytes, so that a reader that stands still does not make the launcher deaf to signals.
class OutputFile {
 public:
  // What waits here before the launcher stops reading from ranks, which then wait for their reader. One read more can be on top: kLineMax,
  // and a prefix for every line in it.
  static constexpr std::size_t kWaitingMax = std::size_t{1} << 20;

  explicit OutputFile(int fd);

  int descriptor() const { return fd_; }
  bool has_room() const { return waiting_.size() - written_ < kWaitingMax; }
  bool is_empty() const { return written_ == waiting_.size(); }
  void put(std::string_view text);

  // Writes a piece, when the descriptor is ready for it. False when nobody reads it any more: then what is put here is dropped.
  bool write_some();

 private:
  int fd_;
  std::size_t piece_;  // what a ready descriptor takes without blocking
  std::string waiting_;
  std::size_t written_ = 0;  // of waiting_
  bool broken_ = false;
};

// Whether two descriptors are the same terminal, pipe or file.
bool is_same_file(int a, int b);

}  // namespace nexar::launch
