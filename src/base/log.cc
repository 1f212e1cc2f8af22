#include "base/log.h"

#include <algorithm>
#include <array>

namespace nexar {
namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"off", "error", "warning", "info", "debug", "trace"};

void append_field(std::string& line, const LogField& field) {
  line += ' ';
  line += field.key;
  line += '=';
  if (!field.value.empty() && field.value.find_first_of(" \t\n\"=\\") == std::string::npos) {
    line += field.value;
    return;
  }
  line += '"';
  for (const char c : field.value) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n')
      line += "\\n";
    else
      line += c;
  }
  line += '"';
}

}  // namespace

std::string_view to_string(LogLevel level) {
  const auto index = static_cast<std::size_t>(level);
  return index < kLevelNames.size() ? kLevelNames[index] : "unknown";
}

std::optional<LogLevel> log_level_from(std::string_view name) {
  const auto found = std::find(kLevelNames.begin(), kLevelNames.end(), name);
  if (found == kLevelNames.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kLevelNames.begin());
}

std::string to_string(const LogRecord& record) {
  std::string line(record.source);
  line += ": ";
  line += record.message;
  for (const LogField& field : record.context) append_field(line, field);
  for (const LogField& field : record.fields) append_field(line, field);
  return line;
}

namespace base {

void Logger::set_context(std::string_view key, std::string value) {
  const auto found = std::find_if(context_.begin(), context_.end(), [&](const LogField& field) { return field.key == key; });
  if (found != context_.end())
    found->value = std::move(value);
  else
    context_.push_back({std::string(key), std::move(value)});
}

void Logger::write(LogLevel level, std::string_view source, std::string_view message, std::initializer_list<Fact> facts) const {
  if (!enabled(level)) return;
  std::vector<LogField> fields;
  fields.reserve(facts.size());
  for (const Fact& fact : facts) fields.push_back(fact.field);
  sink_({level, source, message, context_, fields});
}

using Source = std::string_view;
using Facts = std::initializer_list<Fact>;

void Logger::error(Source source, std::string_view message, Facts facts) const { write(LogLevel::kError, source, message, facts); }
void Logger::warning(Source source, std::string_view message, Facts facts) const { write(LogLevel::kWarning, source, message, facts); }
void Logger::info(Source source, std::string_view message, Facts facts) const { write(LogLevel::kInfo, source, message, facts); }
void Logger::debug(Source source, std::string_view message, Facts facts) const { write(LogLevel::kDebug, source, message, facts); }
void Logger::trace(Source source, std::string_view message, Facts facts) const { write(LogLevel::kTrace, source, message, facts); }

}  // namespace base
}  // namespace nexar
