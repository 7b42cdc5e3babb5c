"""Inspection of an image by a process that can access only that file (``nova.imageinspector``)."""

from __future__ import annotations

import sys
from pathlib import Path

import nova
from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner, Completed
from nova.privileged.sandbox import ToolFiles, sandboxed

LIMITS = ("prlimit", "--cpu=120", f"--as={2 << 30}", "--core=0", "--nofile=64", "--")
LONGEST_S = 600.0  # for a whole file, on slow storage


@forwarded("inspection.inspect", local=("runner",))
def inspect(runner: CommandRunner, path: str) -> Completed:
    """Return the output and exit code of the process. Raises host.CommandFailed if it cannot be started;
    host.CommandTooSlow."""
    package = Path(nova.__file__).parent
    argv = [*LIMITS, "env", f"PYTHONPATH={package.parent}", sys.executable, "-m", "nova.imageinspector", path]
    seen = ToolFiles(read=tuple(dict.fromkeys([sys.base_prefix, sys.prefix, str(package), path])))
    return runner.run(sandboxed(argv, seen), ok=range(-64, 256))


__all__ = ["LIMITS", "LONGEST_S", "inspect"]
