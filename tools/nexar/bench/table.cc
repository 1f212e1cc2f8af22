#include "bench/table.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace nexar::bench {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr const char* kReplaceLine = "\x1b[1A\x1b[2K";  // up, and clear

}  // namespace

void Table::write(const std::string& lines) {
  if (!shown_) return;
  std::string text = bar_is_there_ ? kReplaceLine : "";
  text += lines;
  bar_is_there_ = has_bar_ && rows_.size() < expected_;
  if (bar_is_there_) {
    const std::size_t full = rows_.size() * kBarWidth / expected_;
    text += fmt::format("[{}{}] {} of {}\n", std::string(full, '#'), std::string(kBarWidth - full, ' '), rows_.size(), expected_);
  }
  fmt::print("{}", text);
  std::fflush(stdout);
}

void Table::add(Row row) {
  const std::string head = rows_.empty() ? table_head() : "";
  rows_.push_back(std::move(row));
  write(head + table_line(rows_.back()));
}

}  // namespace nexar::bench
