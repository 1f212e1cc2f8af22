// Threads of nexar's own, and what became of them when the process forked.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "nexar/result.h"

namespace nexar::io {

// Starts a thread that runs `body`. Every signal is blocked in it, so that the application's handlers run on the application's threads;
// `name`, of at most 15 characters, is what ps and debuggers show. kOverloaded when the process may have no more threads.
Result<std::thread> start_thread(const char* name, std::function<void()> body);

// Runs the calling thread on that core of those it may run on, counted from 0; on any when there are fewer.
void pin_thread(int core);

// How many forks lie between the first process that asked and this one: a different number than before means that this is a child, which
// has the memory of its parent and none of its other threads. Costs one load, where getpid() is a system call. A child of vfork or of a
// bare clone() is not seen; it has to exec anyway.
std::uint32_t forks();

}  // namespace nexar::io
