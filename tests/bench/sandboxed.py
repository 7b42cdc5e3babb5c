"""The front of benches on a libvirt sandbox: one that is up and stays (``--state``), or one made and removed."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.machine.stack import Sandbox


def main(program: str, about: str | None, measure: Callable[[Sandbox, int], None], rounds: int) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--state", type=Path)
    given = parser.parse_args()
    if given.state:
        measure(Sandbox(given.state), given.rounds)
        return 0
    top = Path(tempfile.mkdtemp(prefix="nb", dir="/var/tmp"))
    top.chmod(0o755)
    sandbox = Sandbox(top / "s")
    try:
        sandbox.up()
        measure(sandbox, given.rounds)
    finally:
        sandbox.tool("clean", code=None)
        shutil.rmtree(top, ignore_errors=True)
    return 0
