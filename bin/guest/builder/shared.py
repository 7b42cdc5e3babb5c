"""What the parts of build-guest share: running a command, saying what is done, its one error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SECTOR = 512


class BuildError(Exception):
    """The image cannot be built; the message says why."""


def run(command: Sequence[str | Path], **options: object) -> str:
    """Run a command and return its output; BuildError with what it printed when it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, check=False, **options)  # type: ignore[call-overload]
    except FileNotFoundError as error:
        raise BuildError(f"{command[0]}: not found") from error
    if done.returncode:
        printed = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise BuildError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{printed[-2000:]}")
    return done.stdout.decode(errors="replace")


def say(text: str) -> None:
    print(f"build-guest: {text}", file=sys.stderr, flush=True)
