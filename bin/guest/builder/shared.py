"""Shared code of build-guest: running a command, printing progress, and its error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SECTOR = 512


class BuildError(Exception):
    """A failed build; the message has the reason."""


def run(command: Sequence[str | Path], **options: object) -> str:
    """Run a command and return its output. Raises BuildError, with the output, if it fails."""
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
