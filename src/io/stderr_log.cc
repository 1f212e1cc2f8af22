#include "io/stderr_log.h"

#include <memory>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

namespace nexar::io {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kOff: return spdlog::level::off;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kTrace: return spdlog::level::trace;
  }
  return spdlog::level::err;
}

}  // namespace

// A logger of our own, not one of spdlog's registry: nothing here is shared with an application that uses spdlog too.
LogSink stderr_log() {
  auto logger = std::make_shared<spdlog::logger>("nexar", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%fZ %n %^%l%$ %v", spdlog::pattern_time_type::utc));
  logger->set_level(spdlog::level::trace);  // levels are filtered before
  logger->flush_on(spdlog::level::trace);
  return [logger](const LogRecord& record) { logger->log(spdlog_level(record.level), to_string(record)); };
}

}  // namespace nexar::io
