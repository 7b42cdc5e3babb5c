"""The oldest and the newest versions of libraries that setup.cfg allows: what leans on them works with either."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import sampling
from tests.functional.daemons import environment

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bin"))  # bin/ is not a package

from stacklib.layout import PLAIN_STATE, Choices, Layout  # noqa: E402
from stacklib.venvs import Builder  # noqa: E402

TIMEOUT_S = 1200
#: Where the libraries are used: brokers, databases, HTTP, XML, Keystone, configuration, helpers.
UNIT = ("rpc", "db", "configuration", "web", "wsgi", "clients", "monitoring", "notifications", "privileged",
        "legacy/xml")
#: The tables of options without effect are those of the newest libraries: older ones have read some of them.
OF_THE_NEWEST = ("tests/unit/configuration/test_deployed_files.py",)
TESTS = (*(f"tests/unit/{folder}" for folder in UNIT),
         "tests/unit/test_http_server.py", "tests/unit/test_http_streams.py",
         *(f"tests/functional/test_{name}.py" for name in ("control_driver", "hosts_driver", "wsgi_servers")))


@pytest.mark.parametrize("bound", [pytest.param("oldest", marks=pytest.mark.in_turn(4, 10)),
                                   pytest.param("newest", marks=pytest.mark.in_turn(9, 10))])
def test_suite_when_libraries_are_of_either_end_of_their_bounds_then_it_passes(bound: str, tmp_path: Path) -> None:
    layout = Layout(PLAIN_STATE, Choices())
    getattr(Builder(layout, tmp_path / "installation"), bound)()
    inner = Path(tempfile.mkdtemp(dir="/tmp"), "of", "tests")  # short, for sockets; tests open folders above theirs
    inner.mkdir(parents=True)
    inner.parents[1].chmod(0o755)
    left_out = [f"--ignore={file}" for file in OF_THE_NEWEST if bound == "oldest"]
    command = [str(layout.program(bound, "python")), "-m", "pytest", "-q", "-n", "0", f"--nova-seed={sampling.SEED}",
               "--in-turn", "-p", "no:cacheprovider", "--basetemp", str(inner), *left_out, *TESTS]
    try:
        done = subprocess.run(command, cwd=TOP, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S,
                              check=False)
    finally:
        shutil.rmtree(inner.parents[1], ignore_errors=True)
    assert done.returncode == 0, done.stdout[-6000:]
