"""A connection into a guest that goes on, or doesn't."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import threading
import time
from collections.abc import Iterator

from tests.functional.backends import wait_until
from tests.machine.stack import SSH, TOP, Sandbox

COUNT = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.1; done"


@contextlib.contextmanager
def talk(sandbox: Sandbox, address: str) -> Iterator[list[tuple[float, str]]]:
    """The guest counts, ten times a second, while the block runs; when each number was heard."""
    options = [word for option in SSH for word in ("-o", option)]
    argv = [str(TOP / "bin" / "stack"), "--state", str(sandbox.state), "exec", "--", "ssh", "-q", "-F", "none",
            "-i", str(sandbox.key), *options, f"root@{address}", COUNT]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    heard: list[tuple[float, str]] = []

    def listen() -> None:
        assert process.stdout
        for line in process.stdout:
            heard.append((time.monotonic(), line.strip()))

    threading.Thread(target=listen, daemon=True).start()
    try:
        wait_until("the guest counts", lambda: len(heard) > 3, 30)
        yield heard
    finally:
        process.terminate()
        process.wait(20)


def longest_silence_s(heard: list[tuple[float, str]]) -> float:
    """Beyond the tenth of a second that it always is."""
    return max(after[0] - before[0] for before, after in itertools.pairwise(heard)) - 0.1
