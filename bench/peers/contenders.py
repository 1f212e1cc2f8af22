"""Who is measured: nexar and the peers, each as something that runs an operation in a place and gives rows as `nexar bench --json` does."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from places import inside

# Open MPI and MPICH start ranks elsewhere by a remote shell. This one takes addresses for namespaces: AGENT ADDRESS COMMAND...
AGENT = """#!/bin/bash
while [[ "$1" == -* ]]; do case "$1" in -l|-p|-o) shift 2;; *) shift;; esac; done
case "$1" in {cases} *) echo "no namespace has the address $1" >&2; exit 1;; esac
shift
exec ip netns exec "$namespace" unshare --uts bash -c "hostname $namespace; $*"
"""


class Failed(Exception):
    """A run that ended wrongly or not at all."""


class Asked:
    """What is measured: the same for all contenders."""

    def __init__(self, op, sizes, ranks, time, iterations, check):
        self.op, self.sizes, self.ranks, self.time, self.iterations, self.check = op, sizes, ranks, time, iterations, check

    def words(self):
        """Options that nexar and the peers have in common. Only operations with one buffer are in place: elsewhere the peers differ in where they want it."""
        words = ["--bytes", ",".join(self.sizes), "--time", self.time, "--iters", str(self.iterations), "--json", "-"]
        words += [] if self.op in ("all_reduce", "reduce", "broadcast", "barrier") else ["--out-of-place"]
        return words + (["--check"] if self.check else [])


def finish(processes, limit, rows_suffice=False):
    """What the first process writes, when all have ended well; or, where that is enough, when it has written all its rows."""
    try:
        outputs = [process.communicate(timeout=limit) for process in processes]
    except subprocess.TimeoutExpired as late:
        raise Failed(f"not done after {limit} s") from late
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    for process, (out, err) in zip(processes, outputs):
        if process.returncode != 0 and not (rows_suffice and is_complete(out)):
            raise Failed(f"status {process.returncode}: {(err or out).strip()[-400:]}")
    return outputs[0][0]


def start(words, **variables):
    return subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env={**os.environ, **variables})


def rows_of(output):
    return json.loads(output[output.index("["):output.rindex("]") + 1])


def is_complete(output):
    try:
        return bool(rows_of(output))
    except ValueError:
        return False


def spread(ranks, hosts):
    """How many ranks each host has: the first ones one more."""
    return [ranks // hosts + (i < ranks % hosts) for i in range(hosts)]


def here(place, words):
    """A command in a place with one host."""
    name = place.hosts()[0][0]
    return inside(name, *words) if name else list(words)


class Contender:
    """`name` is what tables call it; `program` the file that must have been built."""

    only_when_asked = False

    def __init__(self, name, program, limit):
        self.name, self.program, self.limit = name, Path(program), limit

    def missing(self):
        """Why it cannot be measured; nothing when it can."""
        return None if self.program.is_file() else f"{self.program.name} was not built"

    def can(self, place, asked):
        return True

    def run(self, place, asked):
        raise NotImplementedError


class Nexar(Contender):
    def __init__(self, programs, transport, plain, shared, algorithm, limit):
        super().__init__("nexar", programs / "nexar", limit)
        self.transport, self.plain, self.shared, self.algorithm = transport, plain, shared, algorithm

    def run(self, place, asked):
        words = [self.program, "bench", asked.op, "--transport", self.transport, *asked.words()]
        words += ["--algorithm", self.algorithm] if self.algorithm else []
        words += ["--shared"] if self.shared else []
        hosts = place.hosts()
        if len(hosts) == 1:
            words += ["-n", asked.ranks]
        else:
            slots = ",".join(f"{name}:{ranks}" for (name, _), ranks in zip(hosts, spread(asked.ranks, len(hosts))) if ranks)
            words += ["--hosts", slots, "--ssh", "ip netns exec", "--listen", hosts[0][1]]
        variables = {"NEXAR_ENCRYPT_BULK": "false", "NEXAR_LOG": "error"} if self.plain else {}
        return rows_of(finish([start(here(place, words), **variables)], self.limit))


class Mpi(Contender):
    """Open MPI or MPICH: subclasses say how to start it."""

    rows_suffice = False

    def __init__(self, name, implementation, transport, programs, limit):
        super().__init__(name, programs / f"peer_{implementation}", limit)
        self.launcher, self.transport = f"mpirun.{implementation}", transport

    def missing(self):
        return super().missing() or (None if shutil.which(self.launcher) else f"there is no {self.launcher}")

    def can(self, place, asked):
        return self.transport == "tcp" or len(place.hosts()) == 1

    def run(self, place, asked):
        program = [self.program, "--op", asked.op, "--transport", self.transport, *asked.words()]
        with tempfile.TemporaryDirectory() as folder:
            words = [*self.command(place, asked.ranks, Path(folder)), *program]
            if len(place.hosts()) > 1:
                quoted = " ".join(f"'{word}'" for word in words)
                name = place.hosts()[0][0]
                words = ["unshare", "--uts", "bash", "-c", f"hostname {name}; exec {quoted}"]
            return rows_of(finish([start(here(place, words), **self.variables(place))], self.limit, self.rows_suffice))

    def agent(self, place, folder):
        file = folder / "agent"
        file.write_text(AGENT.format(cases=" ".join(f"{address}|{name}) namespace={name};;" for name, address in place.hosts())))
        file.chmod(0o755)
        return file

    def variables(self, place):
        return {}

    def command(self, place, ranks, folder):
        raise NotImplementedError


class OpenMpi(Mpi):
    def command(self, place, ranks, folder):
        words = [self.launcher, "--allow-run-as-root", "-np", ranks]
        if self.transport == "tcp":
            words += ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", place.interface]
        if len(place.hosts()) == 1:
            return [*words, "--oversubscribe"]
        slots = ",".join(f"{address}:{count}" for (_, address), count in zip(place.hosts(), spread(ranks, len(place.hosts()))))
        # Open MPI 5 counts no slots of a host that it finds to be its own.
        words += ["--map-by", "node:OVERSUBSCRIBE"]
        return [*words, "--host", slots, "--bind-to", "none", "--mca", "plm_rsh_agent", self.agent(place, folder), "--mca", "oob_tcp_if_include", place.interface]


class TunedOpenMpi(OpenMpi):
    """With a malloc that keeps what is freed: by default Open MPI has large temporary memory from the kernel anew in each call."""

    only_when_asked = True

    def variables(self, place):
        return {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 31)}


class Mpich(Mpi):
    rows_suffice = True  # over UCX it does not always end well

    def command(self, place, ranks, folder):
        if len(place.hosts()) == 1:
            return [self.launcher, "-np", ranks]
        slots = ",".join(f"{address}:{count}" for (_, address), count in zip(place.hosts(), spread(ranks, len(place.hosts()))))
        return [self.launcher, "-np", ranks, "-hosts", slots, "-launcher", "rsh", "-launcher-exec", self.agent(place, folder), "-iface", place.interface]

    def variables(self, place):
        return {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": place.interface} if self.transport == "tcp" else {}


class Gloo(Contender):
    def __init__(self, programs, limit):
        super().__init__("gloo", programs / "peer_gloo", limit)

    def run(self, place, asked):
        names = [name for (name, _), ranks in zip(place.hosts(), spread(asked.ranks, len(place.hosts()))) for _ in range(ranks)]
        with tempfile.TemporaryDirectory() as folder:
            processes = []
            for rank, name in enumerate(names):
                words = [self.program, "--rank", rank, "--ranks", asked.ranks, "--store", folder, "--interface", place.interface, "--op", asked.op, "--transport", "tcp",
                         *asked.words()]
                processes.append(start(inside(name, *words) if name else words))
            return rows_of(finish(processes, self.limit))


class PlainTcp(Contender):
    """tcp_exchange: what an all_reduce of two ranks moves, both ways at once, without reducing or encrypting anything."""

    def __init__(self, programs, limit):
        super().__init__("plain-tcp", programs / "tcp_exchange", limit)

    def can(self, place, asked):
        return asked.op == "all_reduce" and asked.ranks == 2

    def run(self, place, asked):
        rows = []
        for size in asked.sizes:
            words = [self.program, "--mode", "exchange", "--bytes", size, "--repeat", 1, "--json", "-"]
            words += ["--iters", asked.iterations] if asked.iterations else []
            words = [*words, *place.tcp()] if len(place.hosts()) > 1 else here(place, words)
            rows += [{**row, "op": asked.op} for row in rows_of(finish([start(words)], self.limit))]
        return rows


def peers_of(programs, limit):
    """All peers by name, in the order in which tables show them."""
    everyone = [OpenMpi("openmpi-tcp", "openmpi", "tcp", programs, limit), OpenMpi("openmpi-shm", "openmpi", "shm", programs, limit),
                TunedOpenMpi("openmpi-shm-tuned", "openmpi", "shm", programs, limit),
                Mpich("mpich-tcp", "mpich", "tcp", programs, limit), Mpich("mpich-shm", "mpich", "shm", programs, limit), Gloo(programs, limit), PlainTcp(programs, limit)]
    return {peer.name: peer for peer in everyone}
