"""Where programs are measured side by side: a loopback of their own, or two network namespaces joined by a cable. Both are gone when the block ends; both need root.

TCP runs under cubic there, or under reno where a namespace may not have it: some machines default to bbr, which halves it on loopback.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

WIRE_BURST = {"1gbit": "64k"}  # of the token bucket; 128k at other rates
LOSS_STEPS = 10000
LONG_WIRE_MTU = 9000
LONG_WIRE_QUEUE = 20000  # packets: the relay is slower than who sends, and nothing is to be lost


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def inside(name, *command):
    return ["ip", "netns", "exec", name, *command]


def add_namespace(name):
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "set", "lo", "up")
    for control in ("cubic", "reno"):
        if subprocess.run(inside(name, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={control}"), capture_output=True).returncode == 0:
            return


def wait_until_up(name):
    """A cable carries nothing for a moment after its ends were set up, and who looks for a way then finds none."""
    for _ in range(500):
        if json.loads(run("ip", "-n", name, "-j", "link", "show", "eth0"))[0]["operstate"] == "UP":
            return
        time.sleep(0.01)
    raise SystemExit(f"the cable in the namespace {name} was not up after 5 s")


class Namespaces:
    """Namespaces that exist while the block runs."""

    def __init__(self, count):
        self.names = [f"nexar-beside-{os.getpid()}-{i}" for i in range(count)]

    def __enter__(self):
        try:
            for name in self.names:
                add_namespace(name)
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            self.end_processes(name)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    @staticmethod
    def end_processes(name):
        """What a launcher that was given up has left in there."""
        for pid in subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def connect(self):
        pass


class Loopback(Namespaces):
    """One namespace with nothing but a loopback; where there can be none, the machine's own."""

    interface = "lo"
    label = "loopback"

    def __init__(self):
        super().__init__(1 if os.geteuid() == 0 and shutil.which("ip") else 0)

    def __enter__(self):
        try:
            return super().__enter__()
        except SystemExit:
            self.names = []
            return self

    def hosts(self):
        """[(namespace or None, address)]"""
        return [(self.names[0] if self.names else None, "127.0.0.1")]


class Wire(Namespaces):
    """Two namespaces joined by a cable, with its rate, MTU and share of packets lost."""

    interface = "eth0"

    def __init__(self, mtu=1500, rate=None, burst=None, loss=0):
        super().__init__(2)
        self.mtu, self.rate, self.loss = mtu, rate, loss
        self.burst = burst or WIRE_BURST.get(rate, "128k")
        self.label = f"wire mtu {mtu}" + (f" {rate}" if rate else "") + (f" loss {loss} %" if loss else "")

    def connect(self):
        one, other = self.names
        run("ip", "link", "add", "eth0", "mtu", self.mtu, "netns", one, "type", "veth", "peer", "name", "eth0", "mtu", self.mtu, "netns", other)
        for name, address in self.hosts():
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            if self.rate:
                run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", self.rate, "burst", self.burst, "latency", "5ms")
        self.lose()
        for name in self.names:
            wait_until_up(name)

    def lose(self):
        share = round(self.loss / 100 * LOSS_STEPS)
        for name in self.names if share else []:
            run(*inside(name, "nft", "table inet loss { chain input { type filter hook input priority 0; iifname eth0 "
                                     f"numgen random mod {LOSS_STEPS} < {share} drop; }}; }}"))

    def hosts(self):
        return list(zip(self.names, ("10.78.0.1", "10.78.0.2")))

    def nexar(self):
        """Options of `nexar bench p2p`."""
        return ["--netns", ",".join(self.names), "--address", "10.78.0.1,10.78.0.2"]

    def tcp(self):
        """Options of tcp_exchange."""
        return ["--netns-server", self.names[0], "--netns-client", self.names[1], "--address", "10.78.0.1"]


class LongWire(Wire):
    """A cable with a round trip of so many milliseconds and without a limit but the relay's own, some hundred megabytes a second."""

    def __init__(self, round_trip, loss=0):
        super().__init__(mtu=LONG_WIRE_MTU, loss=loss)
        self.round_trip = round_trip
        self.label = f"wire of {round_trip} ms" + (f" loss {loss} %" if loss else "")
        self.relay = None

    def connect(self):
        relay = Path(__file__).with_name("delay.py")
        self.relay = subprocess.Popen([sys.executable, relay, *self.names, "--round-trip", str(self.round_trip)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
        if self.relay.stdout.readline() != b"ready\n":
            raise SystemExit("the relay of the long cable did not start")
        for name, address in self.hosts():
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "mtu", self.mtu, "txqueuelen", LONG_WIRE_QUEUE, "up")
        self.lose()

    def __exit__(self, *what):
        if self.relay:
            self.relay.kill()
            self.relay.wait()
        super().__exit__(*what)


def wire_of(place):
    """The cables that have names."""
    return {"veth9000": Wire(mtu=9000), "veth1500": Wire(), "10gbit": Wire(rate="10gbit"), "10gbit9000": Wire(mtu=9000, rate="10gbit"),
            "1gbit": Wire(rate="1gbit"), "20ms": LongWire(20), "20ms-lossy": LongWire(20, loss=0.1)}[place]
