#!/usr/bin/env python3
"""Joins two network namespaces by a cable that is long: its end in each is a TUN device, and what goes into one comes out of the other after a while.

Every packet is held for half of the round trip, in order, and none is lost, so that windows and buffers decide how fast a stream can be. Ends with
its standard input. Needs root.
"""
import argparse
import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
PACKET_MAX = 65536


def enter(namespace):
    with open(namespace) as its:
        if ctypes.CDLL(None, use_errno=True).setns(its.fileno(), CLONE_NEWNET) != 0:
            raise SystemExit(f"cannot enter {namespace}: {os.strerror(ctypes.get_errno())}")


def device_in(namespace, device_name):
    enter(f"/run/netns/{namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", device_name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def deliver(device, packet):
    try:
        os.write(device, packet)
    except OSError as failed:
        if failed.errno != errno.EIO:  # that end is not up, and a host that is down gets nothing
            raise


def relay(devices, one_way):
    held = {devices[0]: deque(), devices[1]: deque()}  # what is on its way to each
    other = {devices[0]: devices[1], devices[1]: devices[0]}
    while True:
        due = min((packets[0][0] for packets in held.values() if packets), default=None)
        wait = None if due is None else max(0.0, due - time.monotonic())
        for ready in select.select([*devices, sys.stdin], [], [], wait)[0]:
            if ready is sys.stdin:
                return
            for _ in range(64):
                try:
                    packet = os.read(ready, PACKET_MAX)
                except BlockingIOError:
                    break
                held[other[ready]].append((time.monotonic() + one_way, packet))
        now = time.monotonic()
        for device, packets in held.items():
            while packets and packets[0][0] <= now:
                deliver(device, packets.popleft()[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespaces", nargs=2)
    parser.add_argument("--round-trip", type=float, required=True, help="in milliseconds")
    parser.add_argument("--device", default="eth0", help="the name of both ends")
    arguments = parser.parse_args()
    devices = [device_in(name, arguments.device) for name in arguments.namespaces]
    print("ready", flush=True)
    relay(devices, arguments.round_trip / 2000)


if __name__ == "__main__":
    main()
