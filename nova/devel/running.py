"""A cloud for tests: ``RunningCloud`` starts nova-all, provides credentials for clients, and injects faults.

    with RunningCloud(hosts=3) as cloud:
        compute = openstack.connect(cloud="nova-all").compute      # OS_CLIENT_CONFIG_FILE=cloud.clouds_file
        cloud.fail("boot", name="web-*")
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from keystoneauth1 import session
from keystoneauth1.identity import v3

from nova import failures

READY_S, STOP_S = 60.0, 5.0
_EXPORTED = re.compile(r"^  export (OS_\w+)=(.*)$")
#: Top of a checkout, which contains the package ``nova``.
TOP = Path(__file__).resolve().parents[2]
CLOUDS_FILE = "--clouds-file"


class NotReady(Exception):
    """Error of a cloud that did not start, with its output."""


class RunningCloud:
    """A cloud in a process of its own, on a free port. It ends with ``stop``, with the block, or with this process.

    ``hosts``, ``demo``, ``seed`` and ``speed`` are options of nova-all; ``more``: further arguments, possibly
    ``--clouds-file`` (the default is in a directory that only this user can access). ``program``: the command to run,
    such as ``("nova-all",)``; by default this Python's own nova.
    """

    def __init__(self, hosts: int = 2, demo: bool = False, seed: int | None = None, speed: float = 0.0,
                 more: Sequence[str] = (), program: Sequence[str] = (sys.executable, "-m", "nova.cmd.all")) -> None:
        """Start the cloud. Raises NotReady."""
        self._folder = tempfile.TemporaryDirectory(prefix="nova-cloud-")
        if CLOUDS_FILE not in more:
            more = (CLOUDS_FILE, f"{self._folder.name}/clouds.yaml", *more)
        self.clouds_file = Path(more[[*more].index(CLOUDS_FILE) + 1])
        words = ["--port", "0", "--end-with-stdin", "--hosts", str(hosts),
                 "--speed", str(speed), *(["--demo"] if demo else []), *(["--seed", str(seed)] if seed is not None
                                                                         else []), *more]
        path = os.pathsep.join(filter(None, (str(TOP), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen([*program, *words], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                         env={**os.environ, "PYTHONPATH": path})
        self._said: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.environment: Mapping[str, str] = {}
        self.said = ""  # its output until it was ready
        with failures.on_failure(self.stop, on=BaseException):
            self._wait()

    def __enter__(self) -> RunningCloud:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()

    @property
    def auth_url(self) -> str:
        """Keystone's URL, with /v3."""
        return self.environment["OS_AUTH_URL"]

    @property
    def password(self) -> str:
        """Password of the users demo and admin."""
        return self.environment["OS_PASSWORD"]

    def credentials(self, user: str = "demo", project: str | None = None) -> dict[str, str]:
        """Return the OS_* variables of a user, by default in the project of the same name."""
        return {**self.environment, "OS_USERNAME": user, "OS_PROJECT_NAME": project or user}

    def session(self, user: str = "demo", project: str | None = None) -> session.Session:
        """Return a keystoneauth session, for use by clients."""
        return session.Session(v3.Password(self.auth_url, username=user, password=self.password,
                                           project_name=project or user, user_domain_name="Default",
                                           project_domain_name="Default"))

    def fail(self, kind: str, **more: str | int) -> None:
        """Inject a fault: ``boot`` (``name``, ``times``), ``quota`` or ``rpc`` (``times``), ``host`` (``host``). Raises
        keystoneauth1's BadRequest or NotFound."""
        self._faults("POST", {"fault": {"kind": kind, **more}})

    def heal(self) -> None:
        """Remove all faults, and restart dead hosts."""
        self._faults("DELETE", None)

    @property
    def pid(self) -> int:
        """Process id of the cloud."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process with SIGKILL. The directory of ``--state`` keeps the state of that moment."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop the cloud, and remove its files. May be called twice."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                assert self._process.stdin
                self._process.stdin.close()
            until = time.monotonic() + STOP_S
            while self._process.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            self.kill()
        self._folder.cleanup()

    def _faults(self, method: str, body: object) -> None:
        address = self.auth_url.removesuffix("/identity/v3") + "/nova-all/faults"
        self.session("admin").request(address, method, json=body, endpoint_filter=None)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._said.put(line.rstrip("\n"))
        self._said.put(None)

    def _wait(self) -> None:
        """Read the output until the last line of the summary."""
        said: list[str] = []
        found: dict[str, str] = {}
        while not (said and said[-1].endswith("ends the cloud.")):
            line = None
            with contextlib.suppress(queue.Empty):
                line = self._said.get(timeout=READY_S)
            if line is None:
                raise NotReady("\n".join(said[-20:]) or "no output")
            said.append(line)
            if match := _EXPORTED.match(line):
                found[match[1]] = match[2]
        self.environment, self.said = found, "\n".join(said)
