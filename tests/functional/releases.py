"""The release before this one, out of the history, and tenants who never rest while daemons change their release."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import tarfile
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType

from nova.version import RELEASE
from tests.functional.client import NEWEST, Client
from tests.functional.daemons import TOP

NOTES = TOP / "doc" / "releases.rst"
ROW = re.compile(r"^(\d+\.\d+\.\d+) +`?([0-9a-f]{40})\b", re.MULTILINE)
LONGEST = 1500  # characters of a failure
STEP_S = 60.0  # in which a step of a tenant ends, while all daemons are restarted


class NotInHistory(Exception):
    """The checkout has no such commit."""


def previous() -> tuple[str, str]:
    """(release, commit) of the newest release before this one that the notes name."""
    rows = [(tuple(map(int, release.split("."))), release, commit) for release, commit in
            ROW.findall(NOTES.read_text()) if release != RELEASE]
    _numbers, release, commit = max(rows)
    return release, commit


def unpack(commit: str, folder: Path) -> Path:
    """The release's files in ``folder``. NotInHistory."""
    done = subprocess.run(["git", "archive", commit], cwd=TOP, capture_output=True, check=False)
    if done.returncode:
        raise NotInHistory(done.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)
    return folder


class Balanced(Client):
    """A client of whichever API is in rotation."""

    def __init__(self, urls: list[str], user: str = "demo") -> None:
        self.urls = urls
        super().__init__(urls[0], user, user, NEWEST)

    @property
    def url(self) -> str:
        return self.urls[0]

    @url.setter
    def url(self, _url: str) -> None:
        """The list says it."""


class Tenants:
    """So many tenants, each with servers that come, stop, start, move and go until the block ends."""

    def __init__(self, urls: list[str], count: int) -> None:
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self._urls, self._end = urls, threading.Event()
        self._threads = [threading.Thread(target=self._live, args=(number,), daemon=True) for number in range(count)]

    def __enter__(self) -> Tenants:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(10 * STEP_S)

    def _live(self, tenant: int) -> None:
        api, number = Balanced(self._urls), 0
        while not self._end.is_set():
            number += 1
            name = f"tenant{tenant}-{number}"
            try:
                self._life(api, name)
            except Exception as error:
                self.failures.append(f"{name}: {type(error).__name__}: {error}"[:LONGEST])

    def _life(self, api: Balanced, name: str) -> None:
        uuid = api.create(name)["id"]
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: api.remove(uuid, seconds=STEP_S))
            api.settled(uuid, "ACTIVE", seconds=STEP_S)
            self.done["create"] += 1
            self._step(api, uuid, "os-stop", None, "SHUTOFF")
            self._step(api, uuid, "os-start", None, "ACTIVE")
            self._step(Balanced(self._urls, "admin"), uuid, "os-migrateLive",
                       {"host": None, "block_migration": "auto"}, "ACTIVE")
            self._step(Balanced(self._urls, "admin"), uuid, "migrate", None, "VERIFY_RESIZE")
            self._step(api, uuid, "confirmResize", None, "ACTIVE")
            self.done["life"] += 1

    def _step(self, api: Balanced, uuid: str, action: str, argument: object, after: str) -> None:
        if self._end.is_set():
            return
        request = api.act(uuid, action, argument)
        try:
            server = api.settled(uuid, after, "ERROR", seconds=STEP_S)
        except AssertionError as error:
            raise AssertionError(f"{action}: {self._told(uuid, request)}; {error}") from None
        assert server["status"] == after, f"{action}: {server['status']}, {server.get('fault')}"
        self.done[action] += 1

    def _told(self, uuid: str, request: str) -> list[str | None]:
        """What the action's events say to administrators."""
        shown = Balanced(self._urls, "admin").get(f"/servers/{uuid}/os-instance-actions/{request}")
        return [event.get("details") for event in shown["instanceAction"]["events"]]

