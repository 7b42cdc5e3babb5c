"""bin/stack installs what the rest needs, so it runs before anything of that is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]


def test_stack_when_there_is_no_library_at_all_then_it_loads(tmp_path):
    """Without site-packages; what it takes of nova may need no library either."""
    program = f"import sys; sys.path.insert(0, {str(TOP / 'bin')!r}); from stacklib.cli import main; print('there')"
    argv = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr
