"""Whether two figures were measured on the same machine: a host moves the cores of a virtual one about, and what ranks tell each other takes several times as long
when they no longer share a cache."""
import os
import time

from places import run

PAUSE = 0.5  # seconds, while the cores are apart
PATIENCE = 600


class Cores:
    """Measures on cores that are at most `near` nanoseconds apart, there and back, or wherever they are."""

    def __init__(self, programs, near=None):
        self.program, self.near, self.seen = programs / "core_distance", near, []

    def are_near(self):
        if self.near is None and len(os.sched_getaffinity(0)) < 2:
            return True
        apart = int(run(self.program))
        if self.near is not None and apart > self.near:
            return False
        self.seen.append(apart)
        return True

    def measured(self, once):
        """What `once` returns. Where a distance was asked for, of a run before and after which the cores were so near."""
        given_up = time.monotonic() + PATIENCE
        while time.monotonic() < given_up:
            if not self.are_near():
                time.sleep(PAUSE)
                continue
            found = once()
            if self.near is None or self.are_near():
                return found
        raise SystemExit(f"--near: the cores were not within {self.near} ns of each other for {PATIENCE} s")

    def take_range(self):
        """For a table: how far apart they were since this was last asked."""
        seen, self.seen = self.seen, []
        return f"{min(seen)}-{max(seen)} ns" if seen else "-"
