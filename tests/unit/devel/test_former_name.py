"""``nova.testing``, the former name of ``nova.devel``, in a conftest.py that was written for the release before."""

from __future__ import annotations

import subprocess
import sys

IMPORTS = """
from nova.testing import cloud, session_cloud
from nova.testing.running import RunningCloud
from nova import devel
from nova.devel import running
assert cloud is devel.cloud and session_cloud is devel.session_cloud and RunningCloud is running.RunningCloud
"""


def test_import_when_it_is_by_the_former_name_then_it_is_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
