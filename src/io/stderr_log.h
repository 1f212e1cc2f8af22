// The default log sink: one line for each record on standard error, with the time in UTC and the level, coloured on a terminal.
//
//   2026-03-01T10:20:30.123456Z nexar warning mesh: peer stopped answering rank=0 epoch=2 peer=3
#pragma once

#include "nexar/log.h"

namespace nexar::io {

// Each sink writes whole lines; several may be in use at once.
LogSink stderr_log();

}  // namespace nexar::io
