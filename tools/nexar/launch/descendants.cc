#include "launch/descendants.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <system_error>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

namespace nexar::launch {
namespace {

struct Process {
  pid_t pid = -1;
  pid_t parent = -1;
  pid_t group = -1;
  bool is_zombie = false;
};

// From /proc/PID/stat: `PID (NAME) STATE PARENT GROUP ...`. The name may hold anything, parentheses too.
Process read_process(const std::filesystem::path& folder, pid_t pid) {
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text, '\0');  // which takes an error for the end: a process that goes while it is read is none
  const std::size_t name_end = text.rfind(')');
  Process process{pid, -1, -1, true};
  if (name_end == std::string::npos) return process;  // it has gone meanwhile
  std::istringstream fields(text.substr(name_end + 1));
  char state = 'Z';
  fields >> state >> process.parent >> process.group;
  process.is_zombie = state == 'Z' || state == 'X';
  return process;
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry("/proc", gone), end; !gone && entry != end; entry.increment(gone))
    if (const auto pid = base::parse_number(entry->path().filename().string()))
      processes.push_back(read_process(entry->path(), static_cast<pid_t>(*pid)));
  return processes;
}

}  // namespace

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants(const std::vector<pid_t>& spared) {
  std::multimap<pid_t, pid_t> children;
  for (const Process& process : all_processes()) children.emplace(process.parent, process.pid);
  std::vector<pid_t> found = {getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child)
      if (std::find(spared.begin(), spared.end(), child->second) == spared.end()) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

bool has_living_member(pid_t group) {
  const std::vector<Process> processes = all_processes();
  return std::any_of(processes.begin(), processes.end(),
                     [&](const Process& process) { return process.group == group && !process.is_zombie; });
}

void end_descendants(const std::vector<pid_t>& spared, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    const std::vector<pid_t> left = descendants(spared);
    if (left.empty()) return;
    for (const pid_t pid : left) kill(pid, SIGKILL);
    for (const pid_t pid : left) waitpid(pid, nullptr, WNOHANG);  // those that are our own; the others become so when their parents end
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace nexar::launch
