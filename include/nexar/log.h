// Where the library's own messages go.
//
// A node logs through one sink: standard error unless a program supplies a callback. nexar never writes to standard output.
// Level and context are part of the record, so a callback can feed any logging system without parsing text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nexar/export.h"

namespace nexar {

// In order of urgency; a logger set to one level passes it and everything more urgent. kOff passes nothing.
enum class LogLevel : std::uint8_t { kOff, kError, kWarning, kInfo, kDebug, kTrace };

NEXAR_API std::string_view to_string(LogLevel level);                     // "warning"
NEXAR_API std::optional<LogLevel> log_level_from(std::string_view name);  // the reverse

struct LogField {
  std::string key;
  std::string value;
};

// One message. It lives only while the sink runs; a sink that keeps something copies it.
struct LogRecord {
  LogLevel level;
  std::string_view source;            // the layer that speaks, e.g. "mesh"
  std::string_view message;           // a sentence without the facts
  std::span<const LogField> context;  // who speaks: rank and epoch of the node
  std::span<const LogField> fields;   // the facts
};

// `mesh: peer stopped answering rank=0 epoch=2 peer=3`: the record without level and time, on one line.
NEXAR_API std::string to_string(const LogRecord& record);

// Called by any thread of the runtime, one call at a time for each node. It may not block or call nexar.
using LogSink = std::function<void(const LogRecord&)>;

}  // namespace nexar
