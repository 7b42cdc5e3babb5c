"""apache-libcloud's driver of OpenStack: libcloud_steps.py beside this file; every step of it is a test."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.clients.cloud import ADMIN, Cloud
from tests.clients.place import Place
from tests.clients.sample_data import IMAGE, POOL
from tests.clients.verdict import Ran

STEPS = Path(__file__).with_name("libcloud_steps.py")
RUN_S = 300


def run(place: Place, cloud: Cloud) -> list[Ran]:
    """The steps print a line of JSON each. AssertionError when there is none."""
    given = {"login": dict(cloud.login(ADMIN)), "region": cloud.region, "image": IMAGE, "pool": POOL,
             "size": "cirros256", "larger": "m1.tiny"}
    done = subprocess.run([str(place.venv / "bin" / "python"), "-I", str(STEPS)], cwd=place.folder,
                          input=json.dumps(given),
                          env={"PATH": "/usr/bin:/bin", "HOME": str(place.folder), "LANG": "C.UTF-8"},
                          capture_output=True, text=True, timeout=RUN_S, check=False)
    found = [Ran(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found, f"libcloud's steps: {done.returncode} {(done.stdout + done.stderr)[-2000:]}"
    return found
