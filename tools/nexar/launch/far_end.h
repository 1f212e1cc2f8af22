// The far end of a remote shell.
#pragma once

namespace nexar::launch {

// Reads a RankRequest from standard input, runs that program with this process's outputs, and obeys the records that follow. When the
// stream ends the launcher is gone: then the program is killed with all that it has started. Returns the program's status; 128 and the
// signal's number when a signal ended it.
int run_far_end();

}  // namespace nexar::launch
