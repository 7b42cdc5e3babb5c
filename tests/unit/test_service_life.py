"""Daemons as processes, beside a systemd that is played: its watchdog, and workers that wait, are deaf, or stuck."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

SCRIPT = """
import logging, os, signal, sys, time
from types import SimpleNamespace
from nova import concurrency, errors, service, systemd
from nova.monitoring import counting, health, workers

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
mode, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
concurrency.patch(mode)
service.LOOK_S, systemd.WAITING_S, workers.STUCK_S = 0.2, 0.1, 1.5
if kind == "refused":
    service.RESPAWN_S = 0.05
if kind == "waits long":
    systemd.TIMEOUT_S = 0.5
counting.make_folder("nova-test")
conf = SimpleNamespace(host="ctl", graceful_shutdown_timeout=1, monitoring=SimpleNamespace(enabled=False),
                       tracing=SimpleNamespace(otlp_endpoint=None))
marker = sys.argv[4]

class Daemon:
    def __init__(self, index):
        self.refused = kind == "refused" and index == 0

    def start(self):
        if self.refused:
            raise errors.service.CannotStart(reason="it is refused")
        while kind.startswith("waits") and not os.path.exists(marker):
            time.sleep(0.05)

    def health_checks(self):
        first = not os.path.exists(marker)
        if kind == "deaf" and first:
            open(marker, "w").close()
            return health.HealthChecks(why_not_receiving=lambda: "nothing came in for 200 s")
        if kind == "stuck" and first:
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGSTOP)
        return health.HealthChecks()

    def stop(self, seconds):
        if kind == "refused":
            time.sleep(0.5)
            open(marker, "w").close()

sys.exit(service.run(conf, "nova-test", Daemon, count))
"""


class Running:
    """The process, what it told systemd, and what it logged."""

    def __init__(self, folder: Path, *words: str, watchdog_s: float = 0.0) -> None:
        self.marker, self.log = folder / "marker", folder / "log"
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.systemd.bind(str(folder / "notify"))
        self.systemd.settimeout(0.05)
        env = {**os.environ, "NOTIFY_SOCKET": str(folder / "notify"), "PYTHONWARNINGS": "ignore"}
        if watchdog_s:
            env["WATCHDOG_USEC"] = str(int(1e6 * watchdog_s))
        self.said: list[str] = []
        self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, *words, str(self.marker)], env=env,
                                        stderr=self.log.open("wb"))

    def hears(self, word: str, times: int = 1, seconds: float = 20.0) -> bool:
        """Whether systemd is told something that begins so, so often."""
        until = time.monotonic() + seconds
        while sum(one.startswith(word) for one in self.said) < times and time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                self.said += self.systemd.recv(4096).decode().split("\n")
        return sum(one.startswith(word) for one in self.said) >= times

    def logs(self, words: str, times: int = 1, seconds: float = 20.0) -> bool:
        until = time.monotonic() + seconds
        while self.log.read_text().count(words) < times and time.monotonic() < until:
            time.sleep(0.05)
        return self.log.read_text().count(words) >= times

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@pytest.fixture(params=["eventlet", "threads"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.contextmanager
def running(folder: Path, *words: str, watchdog_s: float = 0.0) -> Iterator[Running]:
    found = Running(folder, *words, watchdog_s=watchdog_s)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait()
        found.systemd.close()


@pytest.mark.parametrize("count", ["1", "2"])
def test_watchdog_when_systemd_wants_it_then_it_is_fed_while_all_is_well(tmp_path: Path, mode: str, count: str) -> None:
    with running(tmp_path, mode, "well", count, watchdog_s=0.6) as daemon:
        assert daemon.hears("READY=1") and daemon.hears("WATCHDOG=1", 3)
        assert daemon.end() == 0
        assert daemon.hears("STOPPING=1")


def test_start_when_it_waits_then_systemd_is_told_to_wait_too(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode, "waits", "1") as daemon:
        assert daemon.hears("EXTEND_TIMEOUT_USEC=", 2) and "READY=1" not in daemon.said
        daemon.marker.touch()
        assert daemon.hears("READY=1") and daemon.end() == 0


@pytest.mark.parametrize("count", ["1", "2"])
def test_start_when_it_waits_for_long_then_systemd_is_told_that_it_runs_so_that_what_it_waits_for_can_be_started(
        tmp_path: Path, mode: str, count: str) -> None:
    with running(tmp_path, mode, "waits long", count, watchdog_s=0.6) as daemon:
        assert daemon.hears("READY=1") and daemon.hears("WATCHDOG=1", 3) and daemon.logs("still waits after")
        assert daemon.hears("STATUS=still waits") and "nova-test is ready" not in daemon.log.read_text()
        daemon.marker.touch()
        assert daemon.hears("READY=1", 2) and daemon.said[-1] == "STATUS="
        assert daemon.logs("nova-test is ready", int(count)) and daemon.end() == 0


def test_daemon_when_it_is_deaf_then_it_ends_with_1_to_be_started_again(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode, "deaf", "1") as daemon:
        assert daemon.process.wait(20) == 1
        assert daemon.logs("exits to be restarted: nothing came in for 200 s")


def test_worker_when_it_is_deaf_then_another_takes_its_place(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode, "deaf", "2") as daemon:
        assert daemon.logs("exits to be restarted") and daemon.logs("nova-test is ready", 3)
        assert daemon.process.poll() is None and daemon.end() == 0


def test_worker_when_its_main_loop_stands_still_then_it_is_killed_and_replaced(tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode, "stuck", "2") as daemon:
        assert daemon.logs("was stuck for") and daemon.logs("nova-test is ready", 2)
        assert daemon.process.poll() is None and daemon.end() == 0


def test_daemon_when_a_worker_is_refused_again_and_again_then_it_ends_after_all_other_workers(
        tmp_path: Path, mode: str) -> None:
    with running(tmp_path, mode, "refused", "2") as daemon:
        assert daemon.process.wait(20) == 1
        assert daemon.marker.exists()
