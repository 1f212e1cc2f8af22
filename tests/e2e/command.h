// Runs the system's own tools, without a shell.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"
#include "nexar/result.h"

namespace nexar::test {

// Tools that configure a network take milliseconds; one that takes this long hangs.
inline constexpr base::Duration kCommandTimeMax = std::chrono::seconds(20);

// Of each stream, what is kept; the rest is read and dropped.
inline constexpr std::size_t kCommandOutputMax = std::size_t{64} << 10;

// The file that a tool's name stands for, looked for in PATH and where administrators' tools are, or the path itself;
// empty when there is none.
std::string find_tool(const std::string& name);

// Runs words[0] with the rest as its arguments, in the network namespace of the calling thread, and returns what it wrote to standard
// output. Fails with kUnsupported when there is no such tool, and with kIo, carrying the command and what it wrote to standard error, when
// it exits with anything but 0, or when it is not done in time and was killed.
Result<std::string> run_command(const std::vector<std::string>& words, base::Duration limit = kCommandTimeMax);

}  // namespace nexar::test
