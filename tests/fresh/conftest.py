"""`bin/stack`'s library beside the tests, and the table at the end of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bin"))

#: name of a case, its seconds, how it ended
ROWS: list[tuple[str, float, str]] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, seconds, ended in ROWS:
        terminalreporter.write_line(f"{name:22} {seconds:5.0f} s  {ended}")
