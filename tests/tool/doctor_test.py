#!/usr/bin/env python3
"""Usage: doctor_test.py NEXAR SHIFT_CLOCK: `nexar doctor` finds faults that are really there, and names what mends them."""
import fcntl
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

NEXAR, SHIFT_CLOCK = sys.argv[1:3]
LIMIT = 60  # seconds; far more than anything here takes
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("NEXAR_")}


def shell(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


def no_namespaces():
    """Why there can be none here; empty when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "nft"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
    for name, owner in re.findall(r"^(nxd(\d+)-\d)\b", listed.stdout, re.MULTILINE):
        if not Path(f"/proc/{owner}").exists():
            shell("ip", "netns", "del", name)  # left by a test that was killed
    name = f"nxd{os.getpid()}-9"
    tried = [subprocess.run(["ip", "netns", verb, name], capture_output=True).returncode for verb in ("add", "del")]
    return "" if tried == [0, 0] else "network namespaces cannot be made here"


class Report:
    def __init__(self, process):
        out, err = process.communicate(timeout=LIMIT)
        if err or process.returncode not in (0, 1):
            raise AssertionError(f"status {process.returncode}: {err}")
        self.status = process.returncode
        self.json = json.loads(out)

    def of(self, check):
        return next((one for one in self.json["findings"] if one["check"] == check), None)


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, words, **options):
        variables = options.pop("variables", {})
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**CLEAN, **variables}, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def doctor(self, *arguments, before=(), **options):
        return Report(self.start([*before, NEXAR, "doctor", "--json", *arguments], **options))

    def start_seed(self, listen="127.0.0.1:0", world=1, before=(), variables=None):
        """The address of a new seed, and the file of its token."""
        token = self.folder / f"token{len(list(self.folder.iterdir()))}"
        seed = self.start([*before, NEXAR, "seed", "--listen", listen, "--world", str(world), "--token-file", str(token)], variables=variables or {})
        line = seed.stdout.readline()
        match = re.match(r"seed listening on (\S+)\n", line)
        self.assertTrue(match, line or seed.communicate(timeout=LIMIT)[1])
        return match.group(1), {"NEXAR_TOKEN_FILE": str(token)}

    def assertFinds(self, report, check, seen, remedy, verdict="wrong"):
        finding = report.of(check)
        self.assertIsNotNone(finding, report.json)
        self.assertEqual(finding["verdict"], verdict, finding)
        self.assertRegex(finding["seen"], seen)
        self.assertRegex(finding["remedy"], remedy)
        if verdict == "wrong":
            self.assertEqual(report.status, 1)

    def assertFine(self, report, *checks):
        for check in checks:
            self.assertEqual((report.of(check) or {}).get("verdict"), "ok", f"{check}: {report.json}")


class OneHost(Doctor):
    def test_reports_the_same_in_text_and_json_and_ends_with_whether_something_is_wrong(self):
        report = self.doctor()
        done = subprocess.run([NEXAR, "doctor"], capture_output=True, text=True, env=CLEAN, timeout=LIMIT)
        self.assertEqual(done.returncode, report.status)
        self.assertEqual(report.status, 1 if report.json["wrong"] else 0)
        for finding in report.json["findings"]:
            self.assertRegex(done.stdout, rf"(?m)^{finding['verdict']} +{finding['check']}  ")
            self.assertEqual(finding["remedy"] == "", finding["verdict"] == "ok", finding)
        self.assertFine(report, "udp ports", "tcp ports", "clock", "shared memory")

    def test_strict_makes_a_warning_the_status(self):
        def low_lock():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        report = self.doctor(preexec_fn=low_lock)
        self.assertFinds(report, "locked memory", "64 KiB", "ulimit -l", verdict="warning")
        self.assertEqual(report.status, 1 if report.json["wrong"] else 0)
        self.assertEqual(self.doctor("--strict", preexec_fn=low_lock).status, 1)

    def test_finds_a_low_limit_on_open_files(self):
        for hard, remedy in ((64, "limits.conf"), (4096, r"ulimit -n \d+")):
            report = self.doctor(preexec_fn=lambda hard=hard: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
            self.assertFinds(report, "open files", r"^64 may be open .* 16 ranks", remedy)

    def test_finds_a_tiny_socket_buffer_limit_of_an_ordinary_user(self):
        limit = Path("/proc/sys/net/core/rmem_max")
        before = []
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                self.skipTest("setpriv, to become an ordinary user, is not installed")
            before = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
            if subprocess.run([*before, NEXAR, "--version"], capture_output=True).returncode != 0:
                self.skipTest("an ordinary user may not run the tool where it lies")
        lock = open(Path(tempfile.gettempdir()) / "nexar-doctor-test.lock", "w")  # the limit is the machine's: one test at a time changes it
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        was = limit.read_text()
        if int(was) >= 262144:
            try:
                limit.write_text("131072")
            except OSError as error:
                self.skipTest(f"the limit is {was.strip()} and cannot be changed: {error}")
            self.addCleanup(limit.write_text, was)
        self.assertFinds(self.doctor(before=before), "udp receive buffer", r"KiB granted of 4MiB|^\d+B granted", r"sysctl -w net\.core\.rmem_max=4194304")

    def test_finds_a_memory_limit_of_a_control_group(self):
        name = f"nxdoctor-{os.getpid()}"
        for parent, file in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
            group = parent / name
            try:
                group.mkdir()
            except OSError:
                continue
            if (group / file).exists():
                break
            group.rmdir()
        else:
            self.skipTest("no control group with a memory limit can be made here")
        self.addCleanup(group.rmdir)
        (group / file).write_text(str(96 << 20))
        report = self.doctor(preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
        self.assertFinds(report, "memory limit", rf"{name} leaves \d+ MiB of 96 MiB; shared memory of 16 ranks takes 128 MiB", r"MemoryMax=.*NEXAR_SHM_BUDGET=\d+MiB")
        self.assertFine(self.doctor("--world", "1", preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())), variables={"NEXAR_SHM_BUDGET": "16MiB"}), "memory limit", "shared memory")

    def test_finds_an_interface_that_is_not_there(self):
        for report in (self.doctor("--interfaces", "nonesuch0"), self.doctor(variables={"NEXAR_INTERFACES": "nonesuch0"})):
            self.assertFinds(report, "interfaces", "nonesuch0.*this host has: lo", "NEXAR_INTERFACES")


class Seeds(Doctor):
    def test_fine_ones_are_joined(self):
        seed, token = self.start_seed()
        report = self.doctor("--seed", seed, variables=token)
        self.assertFine(report, "name of the seed", "udp to the seed", "path mtu to the seed", "world")

    def test_finds_a_seed_that_is_not_there(self):
        free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        # Somebody who says nothing.
        self.assertFinds(self.doctor("--seed", f"127.0.0.1:{port}"), "udp to the seed", "silent to UDP port", f"let UDP port {port} pass")
        free.close()
        self.assertFinds(self.doctor("--seed", f"127.0.0.1:{port}"), "udp to the seed", f"nobody listens at UDP port {port}", "start `nexar seed")
        self.assertFinds(self.doctor("--seed", "nobody.invalid:7070"), "name of the seed", "nobody.invalid", "correct the name")
        self.assertFinds(self.doctor("--seed", "nobody"), "name of the seed", "nobody", "HOST:PORT")

    def test_finds_a_bad_token(self):
        seed, _ = self.start_seed()
        _, other = self.start_seed()
        self.assertFinds(self.doctor("--seed", seed, variables=other), "token", "the token names", "copy the token file")
        self.assertFinds(self.doctor("--seed", seed), "token", "no token", "NEXAR_TOKEN_FILE")
        self.assertFinds(self.doctor("--seed", seed, variables={"NEXAR_TOKEN": "nxr1-x"}), "token", "token", "NEXAR_TOKEN")

    def test_finds_a_certificate_from_the_future(self):
        seed, token = self.start_seed(variables={"LD_PRELOAD": SHIFT_CLOCK, "NEXAR_TEST_SHIFT": "3600", "ASAN_OPTIONS": "verify_asan_link_order=0"})
        self.assertFinds(self.doctor("--seed", seed, variables=token), "clock of the seed", "is not valid before", "the seed's clock is ahead .* NTP")


class SeedsLong(Doctor):
    def test_warns_when_nobody_else_comes(self):
        seed, token = self.start_seed(world=2)
        report = self.doctor("--seed", seed, "--timeout", "1s", variables=token)
        self.assertFinds(report, "world", "waits for other nodes|nodes have come", "on the other hosts too", verdict="warning")


NO_NAMESPACES = no_namespaces()


@unittest.skipIf(NO_NAMESPACES, NO_NAMESPACES)
class Network(Doctor):
    """Two namespaces and a cable; the seed is in the first."""

    def setUp(self):
        super().setUp()
        self.hosts = [f"nxd{os.getpid()}-{i}" for i in range(2)]
        for host in self.hosts:
            shell("ip", "netns", "add", host)
            self.addCleanup(shell, "ip", "netns", "del", host)
        shell("ip", "link", "add", "eth0", "netns", self.hosts[0], "type", "veth", "peer", "name", "eth0", "netns", self.hosts[1])
        for i, host in enumerate(self.hosts):
            shell("ip", "-n", host, "link", "set", "lo", "up")
            shell("ip", "-n", host, "addr", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
            shell("ip", "-n", host, "link", "set", "eth0", "up")

    def add_other_network(self):
        """A network that only the second host has."""
        shell("ip", "-n", self.hosts[1], "link", "add", "other0", "type", "veth", "peer", "name", "other1")
        shell("ip", "-n", self.hosts[1], "addr", "add", "10.79.0.1/24", "dev", "other0")
        for end in ("other0", "other1"):
            shell("ip", "-n", self.hosts[1], "link", "set", end, "up")

    def inside(self, i):
        return ["ip", "netns", "exec", self.hosts[i]]

    def seed(self, world=2):
        return self.start_seed("10.78.0.1:7070", world, self.inside(0))

    def drop(self, i, rule):
        subprocess.run([*self.inside(i), "nft", "-f", "-"], check=True, text=True, input=f"table inet doctor {{ chain arrivals {{ type filter hook input priority 0; {rule} drop; }}; }}\n")

    def both(self, seed, token, *arguments):
        started = [self.start([*self.inside(i), NEXAR, "doctor", "--json", "--seed", seed, *arguments], variables=token) for i in range(2)]
        return [Report(process) for process in started]


class TwoHosts(Network):
    def test_measure_the_way_between_them(self):
        reports = self.both(*self.seed())
        ranks = [int(re.search(r"rank (\d)", report.of("world")["seen"]).group(1)) for report in reports]
        for report, rank in zip(reports, ranks):
            peer = f"rank {1 - rank}"
            self.assertFine(report, "world", f"link to {peer}", f"udp to {peer}", f"path mtu to {peer}", f"tcp to {peer}", "interfaces")
        bandwidth = reports[ranks.index(0)].of("bandwidth to rank 1")
        self.assertRegex(bandwidth["seen"], r"^\d+\.\d+ GB/s each way at once; a core encrypts \d+\.\d GB/s here, \d+\.\d there")

    def test_find_blocked_udp(self):
        self.drop(1, "meta l4proto udp")
        report = self.doctor(before=self.inside(1))
        self.assertFinds(report, "udp ports", r"127\.0\.0\.1, 10\.78\.0\.2", "let UDP pass in the firewall")
        self.assertFine(report, "tcp ports")
        shell(*self.inside(1), "nft", "flush", "ruleset")
        seed, token = self.seed()
        self.drop(0, "meta l4proto udp")
        report = self.doctor("--seed", seed, before=self.inside(1), variables=token)
        self.assertFinds(report, "udp to the seed", "answers TCP and is silent to UDP port 7070", "let UDP port 7070 pass")

    def test_find_blocked_tcp(self):
        self.drop(0, 'iifname "eth0" meta l4proto tcp')
        reports = self.both(*self.seed())
        blocked = next(one for one in reports[1].json["findings"] if one["check"].startswith("tcp to rank"))
        self.assertFinds(reports[1], blocked["check"], "no connection to 10.78.0.1", "let TCP pass between the hosts")
        self.drop(1, "meta l4proto tcp")
        self.assertFinds(self.doctor(before=self.inside(1)), "tcp ports", r"127\.0\.0\.1", "let TCP pass in the firewall")

    def test_find_an_mtu_that_does_not_match(self):
        shell("ip", "-n", self.hosts[1], "link", "set", "eth0", "mtu", "9000")
        seed, token = self.seed(world=1)
        report = self.doctor("--seed", seed, before=self.inside(1), variables=token)
        self.assertFinds(report, "path mtu to the seed", "up to 9000 bytes, and of those above 1500 none", "ip link set dev eth0 mtu 1500")

    def test_find_losses(self):
        seed, token = self.seed(world=1)
        self.drop(0, "meta l4proto udp numgen random mod 100 < 40")
        report = self.doctor("--seed", seed, before=self.inside(1), variables=token)
        self.assertFinds(report, "udp to the seed", r"\d+ of 100 packets answered", "find where packets are lost")

    def test_find_the_wrong_interface(self):
        seed, token = self.seed(world=1)
        report = self.doctor("--seed", seed, "--interfaces", "lo", before=self.inside(1), variables=token)
        self.assertFinds(report, "interfaces", r"peers are told 127\.0\.0\.1 \(lo\).*the seed is on another host", "NEXAR_INTERFACES=eth0")
        self.add_other_network()
        report = self.doctor("--seed", seed, "--interfaces", "other0", before=self.inside(1), variables=token)
        self.assertFinds(report, "interfaces", "other0.*the way to the seed is eth0", "NEXAR_INTERFACES=eth0")

    def test_find_an_address_that_leads_nowhere(self):
        self.add_other_network()
        report, _ = self.both(*self.seed())
        peer = next(one["check"][-1] for one in report.json["findings"] if one["check"].startswith("link to rank"))
        self.assertFinds(report, f"addresses of rank {peer}", "10.79.0.1 cannot be reached", r"NEXAR_INTERFACES there to what is reached: 10\.78\.0\.2", verdict="warning")


class TwoHostsLong(Network):
    def test_find_udp_that_passes_to_the_seed_alone(self):
        for i in range(2):
            self.drop(i, 'udp dport 7070 accept; udp sport 7070 accept; iifname "eth0" meta l4proto udp')
        for report in self.both(*self.seed(), "--timeout", "2s"):
            self.assertFine(report, "udp to the seed")
            self.assertFinds(report, "world", "rank|node", "let UDP pass between all hosts, both ways")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
