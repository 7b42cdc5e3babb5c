"""One of our daemons as a real process: started, killed, restarted, asked to stop, and read."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.functional.backends import Process, wait_until

TOP = Path(__file__).resolve().parents[2]
READY_S, STOP_S = 90.0, 30.0  # three clouds may start at once on two slow cores


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what would make daemons read other files or choose another way to run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "NOVA_"))}
    return {**kept, "PYTHONPATH": str(TOP), "PYTHONWARNINGS": "ignore", **(extra or {})}


class Daemon:
    """``python -m nova.cmd.<module>``. Its log is a file, appended to at each start. ``tree``: of which release."""

    tree = TOP
    words: tuple[str, ...] = ()  # more of its command line

    def __init__(self, module: str, config: Path, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.module, self.config, self.log = module, config, log
        self.env = dict(env or {})
        self.process: Process | None = None
        self._read_from = 0

    def start(self, **env: str) -> Daemon:
        """Start it, with more in its environment if given; returns at once (see :meth:`ready`)."""
        self.log.touch()
        self._read_from = self.log.stat().st_size
        argv = [sys.executable, "-m", f"nova.cmd.{self.module}", "--config-file", str(self.config), *self.words]
        self.process = Process(argv, self.log, environment({"PYTHONPATH": str(self.tree), **self.env, **env}),
                               cwd=self.tree)
        return self

    def ready(self, count: int = 1) -> Daemon:
        """Wait until ``count`` of its processes said that they serve."""
        def said() -> bool:
            assert self.running, f"{self.module} ended with {self.code}:\n{self.text()[-3000:]}"
            return len(re.findall(r"is ready after", self.text())) >= count
        wait_until(f"{self.module} is ready", said, READY_S)
        return self

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.running

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.process.popen.poll() if self.process else None

    def text(self) -> str:
        """What it logged since its last start."""
        with self.log.open("rb") as file:
            file.seek(self._read_from)
            return file.read().decode(errors="replace")

    def wait_log(self, pattern: str, seconds: float = 15.0) -> str:
        """The first line since the last start that matches."""
        def found() -> str:
            for line in self.text().splitlines():
                if re.search(pattern, line):
                    return line
            return ""
        return wait_until(f"{self.module} logs /{pattern}/", found, seconds)

    def wait_end(self, seconds: float = STOP_S) -> int:
        """Its exit code, once it has ended."""
        wait_until(f"{self.module} ends", lambda: not self.running, seconds)
        assert self.process
        return self.process.popen.returncode

    def workers(self) -> list[int]:
        """Pids of its worker processes; of itself, where it has none."""
        assert self.process
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children] or [self.process.pid]

    def kill(self) -> None:
        """kill -9, all of it at once."""
        if self.process:
            self.process.kill()

    def hang(self) -> None:
        """Stop all its processes where they stand; :meth:`wake` lets them go on."""
        assert self.process
        self.process.signal(signal.SIGSTOP)

    def wake(self) -> None:
        assert self.process
        self.process.signal(signal.SIGCONT)

    def restart(self, **env: str) -> Daemon:
        self.kill()
        return self.start(**env).ready()

    def terminate(self) -> tuple[int, float]:
        """Stop it as an init system does; exit code and seconds it took."""
        assert self.process
        started = time.monotonic()
        code = self.process.end(STOP_S)
        return code, time.monotonic() - started

    def reload(self) -> None:
        assert self.process
        os.kill(self.process.pid, signal.SIGHUP)
