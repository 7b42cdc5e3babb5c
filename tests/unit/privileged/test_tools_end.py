"""Tools that work on guests' disks end with the process that started them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STARTER = """\
import subprocess
from nova.privileged.sandbox import ToolFiles, sandboxed
subprocess.run(sandboxed(["sleep", "61"], ToolFiles()))
"""


@pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
def test_tool_whose_starter_is_killed_ends_too():
    starter = subprocess.Popen([sys.executable, "-c", STARTER], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        tool = awaited(lambda: next(iter(sleeping_below(starter.pid)), 0))
        assert tool
    finally:
        starter.send_signal(signal.SIGKILL)
        starter.wait()
    assert awaited(lambda: not Path(f"/proc/{tool}/exe").exists())


def sleeping_below(pid: int) -> Iterator[int]:
    """The descendant that has become the tool itself; none as long as there is none yet."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"sleep"):
            yield int(child)
        yield from sleeping_below(int(child))


def awaited(condition):
    deadline = time.monotonic() + 20
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
