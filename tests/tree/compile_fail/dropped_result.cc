// Compiles only with KEEP defined: a Result that nobody looks at is an error.
#include "nexar/config.h"

nexar::Result<void> work();

void caller() {
#if defined(KEEP)
  nexar::Result<void> done = work();
  nexar::Result<nexar::Config> config = nexar::Config::from_env();
  if (!done || !config) return;
#elif defined(DROP_VALUE)
  nexar::Config::from_env();
#else
  work();
#endif
}
