"""A console's session, TLS on both sides, in processes with green and with native threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("mode", ["eventlet", "threads"])
def test_session_over_tls_both_sides_works_in_mode(mode: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.fakes.console_in_mode", mode, str(tmp_path)], cwd=TOP,
                          capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "ok"), done.stdout + done.stderr
