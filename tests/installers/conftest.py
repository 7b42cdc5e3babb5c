"""`bin/stack`'s library beside the tests, and the table at the end of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bin"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from tests.installers.scenarios import ROWS  # noqa: PLC0415 - what it needs is found only by now

    for name, seconds, ended in ROWS:
        terminalreporter.write_line(f"{name:22} {seconds:5.0f} s  {ended}")
