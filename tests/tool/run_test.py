#!/usr/bin/env python3
"""Usage: run_test.py NEXAR: `nexar run` starts ranks, shows what they write, and leaves nothing behind."""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path

NEXAR = sys.argv[1]
LIMIT = 30  # seconds; far more than anything here takes

# Stands in for ssh: runs the command here, whatever the host.
HERE = """sh -c 'exec "$1" "$2"'"""


def processes_with(marker):
    """The living processes that have the marker in their environment, as {pid: command line}."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if marker.encode() in (folder / "environ").read_bytes() and " Z " not in (folder / "stat").read_text():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            pass  # it ended while we looked
    return found


def wait_until(what, condition):
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(f"not within {LIMIT} s: {what}")


class Launched:
    """A launcher in the background, with everything it started marked; all killed when the block ends."""

    def __init__(self, *arguments, **options):
        self.marker = f"NEXAR_TEST_MARK={uuid.uuid4().hex}"
        name, value = self.marker.split("=")
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen([NEXAR, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, name: value}, start_new_session=True, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.communicate()

    def left(self):
        return processes_with(self.marker)

    def ranks(self, program):
        return [pid for pid, line in self.left().items() if line.split()[:1] == [program]]

    def named(self, name):
        return [pid for pid in self.left() if Path(f"/proc/{pid}/comm").read_text() == name + "\n"]

    def line(self):
        return self.process.stdout.readline()

    def lines_until(self, count, what):
        """Reads lines until `count` of them contain `what`."""
        while count > 0:
            line = self.line()
            if not line:
                raise AssertionError(f"output ended before {what}: {self.process.stderr.read()}")
            count -= what in line

    def end(self):
        out, err = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out, err


def run(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([NEXAR, "run", *arguments], capture_output=True, text=True, timeout=LIMIT, **options)


def cores_of(text):
    """The cores of a list as the kernel writes it: 0-3,8."""
    cores = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


def shares(*arguments, **options):
    """The cores that each rank may run on, by rank."""
    done = run(*arguments, "grep", "Cpus_allowed_list", "/proc/self/status", **options)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [cores_of(line.split()[-1]) for line in sorted(done.stdout.splitlines())]


class Run(unittest.TestCase):
    def test_each_rank_knows_its_place(self):
        done = run("-n", "3", "sh", "-c", "echo $NEXAR_RANK of $NEXAR_WORLD_SIZE, $NEXAR_LOCAL_RANK of $NEXAR_LOCAL_SIZE here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[{r}] {r} of 3, {r} of 3 here" for r in range(3)])

    def test_options_of_the_program_are_its_own(self):
        for between in ([], ["--"]):
            done = run("-n1", *between, "echo", "-n", "--hosts", "x")
            self.assertEqual((done.returncode, done.stdout), (0, "[0] --hosts x\n"), done.stderr)

    def test_streams_stay_apart_and_last_lines_are_shown(self):
        done = run("-n", "2", "sh", "-c", "printf out; printf err >&2")
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] out", "[1] out"])
        self.assertEqual(sorted(done.stderr.splitlines()), ["[0] err", "[1] err"])

    def test_without_prefix_the_bytes_are_the_programs(self):
        done = run("--no-prefix", "-n", "1", "sh", "-c", "head -c 1000000 /dev/zero; printf end")
        self.assertEqual(done.stdout, "\0" * 1000000 + "end")

    def test_lines_of_ranks_do_not_mix(self):
        script = "i=0; while [ $i -lt 300 ]; do printf '%s' $NEXAR_RANK$NEXAR_RANK; printf '%s\\n' $NEXAR_RANK$NEXAR_RANK; echo err $NEXAR_RANK >&2; i=$((i+1)); done"
        with tempfile.TemporaryFile("w+") as both:
            done = subprocess.run([NEXAR, "run", "-n", "4", "sh", "-c", script], stdout=both, stderr=both, stdin=subprocess.DEVNULL, timeout=LIMIT)
            self.assertEqual(done.returncode, 0)
            both.seek(0)
            lines = both.read().splitlines()
        self.assertEqual(len(lines), 4 * 600)
        for line in lines:
            self.assertRegex(line, r"^\[(\d)\] (\1\1\1\1|err \1)$")

    def test_megabytes_without_a_newline_are_cut(self):
        done = run("-n", "2", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' $NEXAR_RANK")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("0") - done.stdout.count("[0]") + done.stdout.count("1") - done.stdout.count("[1]"), 6000000)
        for line in done.stdout.splitlines():
            self.assertLessEqual(len(line), 65536 + 4)
            self.assertRegex(line[:5], r"^\[(\d)\] \1")

    def test_rank_0_gets_standard_input_and_the_others_none(self):
        done = run("-n", "3", "sh", "-c", "cat; echo end", stdin=None, input="hello\n")
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] end", "[0] hello", "[1] end", "[2] end"])

    def test_the_first_failure_is_the_status_and_is_told(self):
        with Launched("-n", "3", "sh", "-c", "[ $NEXAR_RANK = 1 ] && exit 7; sleep 1000") as world:
            status, _, err = world.end()
            self.assertEqual((status, err), (7, "nexar run: rank 1 exited with status 7; stopping the others\n"))
            self.assertEqual(world.left(), {})

    def test_a_signal_is_128_and_its_number(self):
        with Launched("-n", "3", "sh", "-c", "[ $NEXAR_RANK = 2 ] && kill -9 $$; sleep 1000") as world:
            status, _, err = world.end()
            self.assertEqual((status, err), (137, "nexar run: rank 2 was killed by signal 9 (Killed); stopping the others\n"))
            self.assertEqual(world.left(), {})

    def test_one_that_does_not_end_is_killed_after_the_grace(self):
        with Launched("--grace", "200ms", "-n", "2", "sh", "-c", "trap '' TERM; [ $NEXAR_RANK = 1 ] && exit 3; while :; do sleep 1; done") as world:
            self.assertEqual(world.end()[0], 3)
            self.assertEqual(world.left(), {})

    def test_a_stopped_rank_is_ended_too(self):
        with Launched("-n", "2", "sh", "-c", "[ $NEXAR_RANK = 0 ] && kill -STOP $$; sleep 0.2; exit 3") as world:
            self.assertEqual(world.end()[0], 3)
            self.assertEqual(world.left(), {})

    def test_a_time_limit_ends_all(self):
        with Launched("--timeout", "200ms", "-n", "2", "sleep", "1000") as world:
            status, _, err = world.end()
            self.assertEqual(status, 124)
            self.assertIn("--timeout", err)
            self.assertEqual(world.left(), {})

    def test_signals_are_passed_on(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            script = f"trap 'echo got it; exit 0' {sent.name[3:]}; echo ready; while :; do sleep 0.01; done"
            with Launched("-n", "3", "sh", "-c", script) as world:
                world.lines_until(3, "ready")
                world.process.send_signal(sent)
                status, out, err = world.end()
                self.assertEqual(status, 0, err)
                self.assertEqual(sorted(out.splitlines()), [f"[{r}] got it" for r in range(3)])

    def test_an_interruption_that_kills_is_the_status(self):
        with Launched("-n", "2", "sh", "-c", "echo ready; exec sleep 1000") as world:
            world.lines_until(2, "ready")
            world.process.send_signal(signal.SIGINT)
            self.assertEqual(world.end()[0], 130)
            self.assertEqual(world.left(), {})

    def test_a_second_interruption_kills(self):
        with Launched("--grace", "1h", "-n", "2", "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.01; done") as world:
            world.lines_until(2, "ready")
            world.process.send_signal(signal.SIGINT)
            world.lines_until(2, "no")
            world.process.send_signal(signal.SIGINT)
            self.assertEqual(world.end()[0], 137)
            self.assertEqual(world.left(), {})

    def test_a_reader_that_stands_still_does_not_make_it_deaf(self):
        def full(world):
            return all(written(pid) >= 65536 for pid in world.ranks("yes")) and len(world.ranks("yes")) == 2

        def written(pid):
            return int(re.search(r"wchar: (\d+)", Path(f"/proc/{pid}/io").read_text()).group(1))

        with Launched("-n", "2", "yes") as world:
            # The launcher holds a megabyte for its reader and takes no more; then ranks fill their pipes, and count no more either.
            wait_until("ranks have written what fits", lambda: full(world))
            world.process.send_signal(signal.SIGTERM)
            self.assertEqual(world.process.wait(timeout=LIMIT), 143)
            self.assertEqual(world.left(), {})

    def test_a_reader_that_goes_ends_all(self):
        with Launched("-n", "2", "sh", "-c", "yes") as world:
            world.line()
            world.process.stdout.close()
            world.process.wait(timeout=LIMIT)
            self.assertEqual(world.process.returncode, 141)
            self.assertEqual(world.left(), {})

    def test_what_a_rank_left_behind_ends_with_it(self):
        with Launched("-n", "2", "sh", "-c", "sleep 1000 & setsid sleep 1000 & exit 0") as world:
            self.assertEqual(world.end()[0], 0)
            self.assertEqual(world.left(), {})

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core cannot be shared out")
    def test_bound_ranks_have_cores_of_their_own(self):
        own = os.sched_getaffinity(0)
        for options in (("-n", "2"), ("--hosts", "a:2", "--ssh", HERE, "--listen", "127.0.0.1")):
            first, second = shares(*options, "--bind")
            self.assertTrue(first and second)
            self.assertEqual((first & second, first | second), (set(), own))
            self.assertEqual(shares(*options), [own, own])

    def test_ranks_are_bound_within_what_their_launcher_may_use(self):
        core = max(os.sched_getaffinity(0))
        for options in (("-n", "3"), ("--hosts", "a:3", "--ssh", HERE, "--listen", "127.0.0.1")):
            self.assertEqual(shares(*options, "--bind", preexec_fn=lambda: os.sched_setaffinity(0, {core})), [{core}] * 3)

    def test_cores_that_cannot_be_had_are_named_with_their_rank(self):
        # hwloc is told of cores that are not there: the first rank may have some of its share, the second none.
        environment = {**os.environ, "HWLOC_SYNTHETIC": "core:2048 pu:1"}
        done = run("-n", "2", "--bind", "sleep", "1000", env=environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^nexar run: rank 1: cannot bind it to cores 1024-2047: .+\n$")
        done = run("--hosts", "a,b", "-n", "2", "--ssh", HERE, "--listen", "127.0.0.1", "--bind", "true", env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)  # each has a host to itself
        done = run("--hosts", "a:2", "--ssh", HERE, "--listen", "127.0.0.1", "--bind", "sleep", "1000", env=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\[1\] nexar: cannot bind it to cores 1024-2047: ")
        self.assertIn("nexar run: rank 1 on a ", done.stderr)

    def test_programs_that_cannot_be_run_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "plain"
            script.write_text("not a program")
            garbage = Path(folder) / "garbage"
            garbage.write_bytes(b"\x00\x01\x02")
            garbage.chmod(0o755)
            for program, status in (("nexar-nonesuch", 127), (f"{folder}/nonesuch", 127), (str(script), 126), (folder, 126), (str(garbage), 126)):
                done = run("-n", "2", program)
                self.assertEqual(done.returncode, status, program)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(program, done.stderr)

    def test_bad_command_lines_are_refused_in_one_line(self):
        for arguments, named in ((["-n", "0", "true"], "-n"), (["-n", "x", "true"], "-n"), (["true"], "-n"), (["-n", "2"], "program"),
                                 (["--hosts", "a:0", "true"], "a:0"), (["--hosts", "a,,b", "true"], "--hosts"),
                                 (["-n", "4", "--hosts", "a,b:2", "true"], "3 slots"), (["--ssh", "'", "--hosts", "a", "true"], "--ssh"),
                                 (["--timeout", "soon", "-n", "1", "true"], "soon"), (["--nexar", "a b", "--hosts", "a", "true"], "a b")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(named, done.stderr)


class Interrupted(unittest.TestCase):
    """However and whenever a launcher is ended, no process is left."""

    ROUNDS = int(os.environ.get("NEXAR_TEST_ROUNDS", "12"))
    # Ranks with children of their own, which do not hear of anything.
    SCRIPT = "sh -c 'trap \"\" INT TERM HUP; sleep 1000; :' & sleep 1000"

    def interrupt(self, how, *options, limit=0.06):
        seed = random.randrange(1 << 30)
        moments = random.Random(seed)
        for _ in range(self.ROUNDS):
            with Launched("--grace", "100ms", "-n", "4", *options, "sh", "-c", self.SCRIPT) as world:
                time.sleep(moments.uniform(0, limit))  # not for synchronisation: any moment is right
                world.process.send_signal(how)
                world.process.wait(timeout=LIMIT)
                if how != signal.SIGKILL:
                    self.assertEqual(world.left(), {}, f"seed {seed}")
                wait_until("no process is left", lambda: world.left() == {})

    def test_by_sigint(self):
        self.interrupt(signal.SIGINT)

    def test_by_sigterm(self):
        self.interrupt(signal.SIGTERM)

    def test_by_sigkill(self):
        self.interrupt(signal.SIGKILL)

    def test_by_sigint_with_hosts(self):
        self.interrupt(signal.SIGINT, "--hosts", "a:2,b:2", "--ssh", HERE, "--listen", "127.0.0.1")

    def test_by_sigkill_with_hosts(self):
        self.interrupt(signal.SIGKILL, "--hosts", "a:2,b:2", "--ssh", HERE, "--listen", "127.0.0.1")

    def test_by_the_death_of_its_keeper(self):
        with Launched("-n", "2", "sh", "-c", "echo ready; sleep 1000") as world:
            world.lines_until(2, "ready")
            # It names itself when it first runs, which may be after the ranks have.
            wait_until("the keeper has its name", lambda: len(world.named("nexar-keeper")) == 1)
            os.kill(world.named("nexar-keeper")[0], signal.SIGKILL)
            status, _, err = world.end()
            self.assertEqual(status, 1)
            self.assertIn("keeper", err)
            self.assertEqual(world.left(), {})


class Hosts(unittest.TestCase):
    OPTIONS = ("--ssh", HERE, "--listen", "127.0.0.1")

    def test_ranks_fill_the_hosts_in_order(self):
        done = run("--hosts", "a,b:2", *self.OPTIONS, "sh", "-c", "echo $NEXAR_RANK $NEXAR_WORLD_SIZE $NEXAR_LOCAL_RANK $NEXAR_LOCAL_SIZE $PWD")
        here = os.getcwd()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[0] 0 3 0 1 {here}", f"[1] 1 3 0 2 {here}", f"[2] 2 3 1 2 {here}"])

    def test_arguments_arrive_as_they_are(self):
        odd = ["a b", "$HOME", "'\"\\", "new\nline", "*", ""]
        done = run("--no-prefix", "--hosts", "a", *self.OPTIONS, "printf", "<%s>", *odd)
        self.assertEqual(done.stdout, "".join(f"<{word}>" for word in odd), done.stderr)

    def test_standard_input_and_its_end_reach_rank_0(self):
        done = run("--no-prefix", "--hosts", "a,b", *self.OPTIONS, "wc", "-c", stdin=None, input="x" * 1000000)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split()), ["0", "1000000"])

    def test_signals_travel(self):
        with Launched("--hosts", "a,b", *self.OPTIONS, "sh", "-c", "trap 'echo got it; exit 4' TERM; echo ready; while :; do sleep 0.01; done") as world:
            world.lines_until(2, "ready")
            world.process.send_signal(signal.SIGTERM)
            status, out, _ = world.end()
            self.assertEqual((status, out.count("got it")), (4, 2))
            self.assertEqual(world.left(), {})

    def test_the_token_is_on_no_command_line(self):
        for options in ((), ("--hosts", "a,b", *self.OPTIONS)):
            with Launched("-n", "2", *options, "sh", "-c", "echo token $NEXAR_TOKEN; exec sleep 1000") as world:
                token = world.line().split()[-1]
                self.assertRegex(token, r"^nxr1-[a-z0-9]{128}$")
                for folder in Path("/proc").iterdir():
                    if folder.name.isdigit():
                        try:
                            self.assertNotIn(token, (folder / "cmdline").read_bytes().decode(errors="replace"))
                        except OSError:
                            pass  # it ended while we looked

    def test_failures_name_the_host(self):
        done = run("--hosts", "a,b", *self.OPTIONS, "sh", "-c", "[ $NEXAR_RANK = 1 ] && kill -9 $$; sleep 1000")
        self.assertEqual(done.returncode, 137)
        self.assertIn("nexar run: rank 1 on b was killed by signal 9 (Killed); stopping the others", done.stderr)
        done = run("--hosts", "a", *self.OPTIONS, "nexar-nonesuch")
        self.assertEqual(done.returncode, 127)
        self.assertIn("nexar-nonesuch", done.stderr)
        done = run("--hosts", "far-away", "--ssh", "sh -c 'exit 255'", "--listen", "127.0.0.1", "true")
        self.assertEqual(done.returncode, 255)
        self.assertIn("far-away", done.stderr)

    def test_a_far_end_refuses_what_is_no_request(self):
        for text in ("", "\n", "{}\n", "[1]\n", "x" * 5000000):
            done = subprocess.run([NEXAR, "_rank"], input=text, capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
