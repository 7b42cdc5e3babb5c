"""Users of a cloud who never rest, and what they saw of it while something was killed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import requests

from stacklib import kernel
from tests.functional.client import NEWEST, Client, Refused

READ, BOOT, DELETE = "read", "boot", "delete"
LOOKERS, BOOTERS, PAUSE_S = 4, 3, 0.4
WAIT_S = 100.0  # for an answer: longer than the proxy's own
SETTLED_S = 240.0  # a server that is neither there nor refused by then is stuck
TASK = "OS-EXT-STS:task_state"
REFUSALS = (502, 503, 504)  # the cloud says that it cannot do it now


class Seen(NamedTuple):
    """One try: when it began and ended (``time.monotonic``), and why it failed; empty: it did not."""

    kind: str
    began: float
    ended: float
    failure: str


class Gap(NamedTuple):
    """``read_s``, ``boot_s``: the longest time in which no read succeeded, and no server became ACTIVE. ``slowest_s``:
    of the reads that succeeded. ``failed``: reads and boots that did not."""

    read_s: float
    boot_s: float
    slowest_s: float
    failed: int


class Users:
    """``with Users(url, pid):`` they read, boot and delete until the block ends, in the network of the process ``pid``.

    ``findings``: what must not happen whatever is killed."""

    def __init__(self, url: str, network_of: int) -> None:
        self.url, self._network_of = url, network_of
        self.seen: list[Seen] = []
        self.findings: list[str] = []
        self._end = threading.Event()
        lives = [self._look] * LOOKERS + [self._boot] * BOOTERS
        self._threads = [threading.Thread(target=self._live, args=(life, number), daemon=True)
                         for number, life in enumerate(lives)]

    def __enter__(self) -> Users:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(SETTLED_S + WAIT_S)

    def wait_served(self, seconds: float) -> None:
        """Until a read that begins now has succeeded, and a boot."""
        began, until = time.monotonic(), time.monotonic() + seconds
        wanted = {READ, BOOT}
        while wanted - {one.kind for one in tuple(self.seen) if one.began > began and not one.failure}:
            assert time.monotonic() < until, f"not served again within {seconds:.0f} s: {self.failures(began)}"
            time.sleep(0.2)

    def gap(self, since: float, until: float) -> Gap:
        """What they saw between the two times."""
        seen = [one for one in tuple(self.seen) if since <= one.ended <= until]
        longest = {}
        for kind in (READ, BOOT):
            ends = [since, *sorted(one.ended for one in seen if one.kind == kind and not one.failure), until]
            longest[kind] = max(after - before for before, after in zip(ends, ends[1:], strict=False))
        slowest = max((one.ended - one.began for one in seen if one.kind == READ and not one.failure), default=0.0)
        return Gap(longest[READ], longest[BOOT], slowest, sum(bool(one.failure) for one in seen))

    def failures(self, since: float = 0.0) -> Counter[str]:
        return Counter(f"{one.kind}: {one.failure}" for one in tuple(self.seen) if one.failure and one.ended > since)

    def _live(self, life: Callable[[Client, str], None], number: int) -> None:
        kernel.enter(self._network_of, ("net",))
        name = f"user{number}"
        turn = 0
        while not self._end.wait(PAUSE_S):
            turn += 1
            life(Client(self.url, name, name, NEWEST), f"{name}-{turn}")

    @contextlib.contextmanager
    def _trying(self, kind: str) -> Iterator[None]:
        """What ends it is noted; what is neither a refusal nor a broken line is a finding, too."""
        began, failure = time.monotonic(), ""
        try:
            yield
        except Exception as error:
            failure = said(error)
            if not passing(error):
                self.findings.append(f"{kind}: {failure}")
        self.seen.append(Seen(kind, began, time.monotonic(), failure))

    def _look(self, api: Client, _name: str) -> None:
        with self._trying(READ):
            api.call("GET", "/servers/detail", timeout=WAIT_S)

    def _boot(self, api: Client, name: str) -> None:
        """A server comes. Then all that the user has goes: also one whose making was never answered."""
        with self._trying(BOOT):
            uuid = str(api.create(name)["id"])
            server = until_true(f"{uuid} is made", lambda: made(api, uuid))
            if server["status"] != "ACTIVE":
                raise Ended(f"{server['status']}: {(server.get('fault') or {}).get('message')}")
        with self._trying(DELETE):
            until_true(f"all of {api.project} is gone", lambda: removed(api))


class Ended(Exception):
    """A server that ended otherwise than ACTIVE; the message has its fault."""


class Stuck(Exception):
    """What should have come to an end and did not."""


def said(error: Exception) -> str:
    if isinstance(error, Refused):
        return f"{error.status} {' '.join(error.message.split())}"[:200]
    return str(error) if isinstance(error, Ended | Stuck) else f"{type(error).__name__} {error}"[:200]


def passing(error: Exception) -> bool:
    """Whether it is what a user may see while something is being replaced: a refusal in words, a line that broke."""
    if isinstance(error, Refused):
        return error.status in REFUSALS and bool(error.message)
    if isinstance(error, Ended):
        return not str(error).endswith("None")
    return isinstance(error, requests.RequestException)


def until_true(what: str, look: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    """The first answer that is not None; who can't be asked is asked again. Stuck."""
    until, last = time.monotonic() + SETTLED_S, ""
    while time.monotonic() < until:
        try:
            if (found := look()) is not None:
                return found
        except (Refused, requests.RequestException) as error:
            last = said(error)
            if not passing(error):
                raise
        time.sleep(0.2)
    raise Stuck(f"{what}: not within {SETTLED_S:.0f} s {last}")


def made(api: Client, uuid: str) -> dict[str, Any] | None:
    """The server, once no task runs. A part of it (UNKNOWN) is what can be said while its database is away."""
    server = api.show(uuid)
    return None if server.get(TASK) is not None or server["status"] in ("BUILD", "UNKNOWN") else server


def removed(api: Client) -> dict[str, Any] | None:
    """Delete each that is there, again and again; an empty answer once none is."""
    servers = api.servers()
    for server in servers:
        if server.get(TASK) != "deleting":
            try:
                api.delete(server["id"])
            except Refused as refused:
                if refused.status not in (404, 409):  # it went meanwhile, or something works on it
                    raise
    return None if servers else {}
