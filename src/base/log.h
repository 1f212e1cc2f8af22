// How a layer speaks: a level, the name of the layer, a sentence, and facts as fields.
//
//   log.warning("mesh", "peer stopped answering", {{"peer", 3}, {"silent_for", "5s"}});
//
// A message below the logger's level costs one comparison and the evaluation of its arguments.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "nexar/log.h"

namespace nexar::base {

// A fact of any printable type.
struct Fact {
  template <typename T>
  Fact(std::string_view key, const T& value) : field{std::string(key), fmt::format("{}", value)} {}

  LogField field;
};

// Filters by level and adds who speaks.
//
// Owned by a node; whoever owns it keeps its context (rank, epoch) up to date. Thread: engine.
class Logger {
 public:
  Logger(LogLevel level, LogSink sink) : level_(level), sink_(std::move(sink)) {}

  bool enabled(LogLevel level) const { return level <= level_ && level != LogLevel::kOff && sink_ != nullptr; }

  // Sets a context field, which every later record carries; fields keep the order in which they first came.
  void set_context(std::string_view key, std::string value);

  void write(LogLevel level, std::string_view source, std::string_view message, std::initializer_list<Fact> facts = {}) const;

  // One word for each level, so that call sites read as sentences.
  void error(std::string_view source, std::string_view message, std::initializer_list<Fact> facts = {}) const;
  void warning(std::string_view source, std::string_view message, std::initializer_list<Fact> facts = {}) const;
  void info(std::string_view source, std::string_view message, std::initializer_list<Fact> facts = {}) const;
  void debug(std::string_view source, std::string_view message, std::initializer_list<Fact> facts = {}) const;
  void trace(std::string_view source, std::string_view message, std::initializer_list<Fact> facts = {}) const;

 private:
  LogLevel level_;
  LogSink sink_;
  std::vector<LogField> context_;
};

}  // namespace nexar::base
