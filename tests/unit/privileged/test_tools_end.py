"""Tools that work on guests' disks end with the process that started them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STARTER = """\
import subprocess
from nova.privileged.qemu_img import ToolLimits
subprocess.run([*ToolLimits().argv(), "sleep", "61"])
"""


@pytest.mark.skipif(not shutil.which("setpriv") or not shutil.which("prlimit"), reason="needs setpriv and prlimit")
def test_tool_whose_starter_is_killed_ends_too():
    starter = subprocess.Popen([sys.executable, "-c", STARTER], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        tool = awaited(lambda: sleeping_child(starter.pid))
        assert tool
    finally:
        starter.send_signal(signal.SIGKILL)
        starter.wait()
    assert awaited(lambda: not Path(f"/proc/{tool}/exe").exists())


def sleeping_child(pid: int) -> int:
    """The child that has become the tool itself; 0 when there is none yet."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"sleep"):
            return int(child)
    return 0


def awaited(condition):
    deadline = time.monotonic() + 20
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
