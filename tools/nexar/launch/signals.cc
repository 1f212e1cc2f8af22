#include "launch/signals.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <sys/signalfd.h>
#include <unistd.h>

namespace nexar::launch {

Result<Signals> Signals::take() {
  sigset_t taken;
  sigfillset(&taken);
  // Those that say the program itself is wrong would be lost.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&taken, fault);
  sigset_t before;
  if (const int problem = pthread_sigmask(SIG_BLOCK, &taken, &before); problem != 0)
    return Error(ErrorCode::kIo, std::string("cannot block signals: ") + std::strerror(problem));
  const int descriptor = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) return Error(ErrorCode::kIo, std::string("cannot read signals: ") + std::strerror(errno));
  return Signals(io::FileDescriptor(descriptor), before);
}

std::optional<int> Signals::next() const {
  signalfd_siginfo info;
  if (read(descriptor_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace nexar::launch
