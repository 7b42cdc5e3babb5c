"""A scheduler that starts: how long until it is ready, how large its first answer is, and what it takes of memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from nova.conductor.hosts.feed import MOST_BYTES, fitting
from nova.model.host.hosts import HostStates
from nova.model.numa.topology import HostCell, HostTopology, Pages, PciDevice
from nova.rpc import codec
from tests.bench.scheduler.clouds import Cloud
from tests.bench.scheduler.report import Report

MOST_MB, READY_S, MESSAGE_MB = 300, 5, 16
FUNCTIONS = 16
CPU_INFO = json.dumps({"arch": "x86_64", "model": "EPYC-Rome", "vendor": "AMD",
                       "topology": {"cells": 2, "sockets": 1, "cores": 16, "threads": 2},
                       "features": [f"feature-{number}" for number in range(60)]})


def measure(databases: Any, hosts: int, report: Report) -> None:
    cloud = Cloud(databases)
    with cloud.counted() as cost:
        started, cpu = time.perf_counter(), time.process_time()
        cloud.start()
        ready, cpu = time.perf_counter() - started, time.process_time() - cpu
    states = cloud.deps.feed.states()
    memory, rich = _memory(states), _rich(states)
    report.table(f"a scheduler that starts, {hosts:,} hosts", "ready s", "CPU s", "message MB", "unpacked MB",
                 "statements", "RSS MB", "PSS MB", "empty RSS", "hosts with")
    report.row(ready, cpu, cloud.source.size / 2**20, len(codec.pack(states)) / 2**20, cost.statements, memory["rss"],
               memory["pss"], memory["empty"], "plain")
    more = _memory(rich)
    report.row("", "", len(codec.to_text(codec.pack(rich))) / 2**20, len(codec.pack(rich)) / 2**20, "", more["rss"],
               more["pss"], more["empty"], f"two cells of 32, {FUNCTIONS} VFs")
    report.judge(f"seconds until a scheduler knows {hosts:,} hosts", ready, READY_S)
    report.judge("MB of the first answer on the wire", cloud.source.size / 2**20, MESSAGE_MB)
    report.judge(f"MB of a scheduler that knows {hosts:,} hosts and 18 kinds of requests", memory["rss"], MOST_MB)


def _rich(states: HostStates) -> HostStates:
    """The same hosts with two NUMA cells and a card whose functions are to be given away."""
    cells = tuple(HostCell(id=at, shared=tuple(range(32 * at, 32 * at + 8)), memory_mb=262_144,
                           dedicated=tuple(range(32 * at + 8, 32 * at + 32)), socket=at,
                           siblings=tuple((one, one + 1) for one in range(32 * at, 32 * at + 32, 2)),
                           pages=(Pages(size_kb=4, total=1 << 26), Pages(size_kb=1 << 20, total=128)),
                           distances={0: 10, 1: 21}) for at in range(2))
    devices = tuple(PciDevice(address=f"0000:81:{at // 8:02x}.{at % 8}", vendor_id="15b3", product_id="101e",
                              kind="type-VF", cell=1, parent="0000:81:00.0", tags={"physical_network": "datacentre"})
                    for at in range(FUNCTIONS))
    topology = HostTopology(cells=cells, devices=devices)
    return msgspec.structs.replace(states, states=tuple(
        msgspec.structs.replace(one, topology=topology, capabilities={**one.capabilities, "cpu_info": CPU_INFO})
        for one in states.states))


def _pages(states: HostStates) -> list[HostStates]:
    """As the feed's answers come, one after the other."""
    left, pages = list(states.states), []
    while left:
        part = fitting(left, MOST_BYTES)
        left = left[len(part):]
        pages.append(msgspec.structs.replace(states, states=tuple(part), more=bool(left), complete=False))
    return pages


def _memory(states: HostStates) -> dict[str, float]:
    """Of a process that is a scheduler but for its broker, fed with these states."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, page in enumerate(_pages(states)):
            files.append(Path(folder, f"page{number}"))
            files[-1].write_bytes(codec.pack(page))
        done = subprocess.run([sys.executable, "-m", "tests.bench.scheduler.fed", *map(str, files)], check=True,
                              text=True, capture_output=True, env={**os.environ, "PYTHONPATH": os.getcwd()},
                              timeout=300)
    return {name: float(number) for name, number in (line.split() for line in done.stdout.splitlines())}
