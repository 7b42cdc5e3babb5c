"""The cloud that is judged: nova-all, started for one judge alone; or one that is up already."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from keystoneauth1 import loading, session

TOP = Path(__file__).resolve().parents[2]
#: A clouds.yaml with the two entries of a cloud that is up: it is used and left as it is. For those who write tests.
GIVEN = "NOVA_CLIENTS_CLOUDS"
USER, ADMIN = "nova-all", "nova-all-admin"
HOSTS = 4
READY_S, END_S, STEP_S = 90, 10, 0.1


class Cloud(NamedTuple):
    """``entries``: of its clouds.yaml, by name: USER and ADMIN."""

    entries: Mapping[str, Any]

    def login(self, name: str) -> Mapping[str, str]:
        """``auth`` of an entry: auth_url, username, password, project_name and domains."""
        return self.entries[name]["auth"]

    @property
    def region(self) -> str:
        return self.entries[USER].get("region_name", "RegionOne")

    def session(self, name: str) -> session.Session:
        plugin = loading.get_plugin_loader("password").load_from_options(**self.login(name))
        return session.Session(auth=plugin)

    def endpoint(self, service: str) -> str:
        """Its address in the catalogue, without a slash at its end."""
        found = self.session(ADMIN).get_endpoint(service_type=service, interface="public", region_name=self.region)
        assert found, f"the catalogue has no {service}"
        return found.rstrip("/")


@contextmanager
def running(folder: Path, speed: float) -> Iterator[Cloud]:
    """A cloud of HOSTS fake hosts, whose guests take as long for a boot or a reboot as ``speed`` says (1: as real
    ones). Its state, and its log, are in the folder. AssertionError: it did not get ready."""
    if given := os.environ.get(GIVEN):
        yield Cloud(yaml.safe_load(Path(given).read_text())["clouds"])
        return
    file, log = folder / "nova-all.yaml", folder / "nova-all.out"
    command = [sys.executable, str(TOP / "bin" / "nova-all"), "--port", "0", "--hosts", str(HOSTS),
               "--speed", str(speed), "--state", str(folder / "nova-all"), "--clouds-file", str(file)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield Cloud(_entries(process, file, log))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _entries(process: subprocess.Popen[bytes], file: Path, log: Path) -> Mapping[str, Any]:
    """Once it is ready."""
    deadline = time.monotonic() + READY_S
    while process.poll() is None and time.monotonic() < deadline:
        if file.exists() and b"ready" in log.read_bytes():
            return yaml.safe_load(file.read_text())["clouds"]
        time.sleep(STEP_S)
    raise AssertionError(f"nova-all is not ready, exit status {process.poll()}:\n{log.read_text()[-2000:]}")
