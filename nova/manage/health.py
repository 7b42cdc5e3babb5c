"""``nova-status health``: the health that a service on this machine reports, for container supervisors."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

from nova.conf._options import Options
from nova.conf.monitoring import PORTS

READY, LIVE = "/health/ready", "/health/live"
WAIT_S = 12.0  # the service's own checks end within ten seconds
LONGEST = 1 << 16  # maximum bytes of a response
FIRST = Path("/proc/1/cmdline")
SERVING = "serving"
#: Command-line options that name the configuration of a service.
FILES = ("--config-file", "--config-dir")
#: Listen addresses that clients cannot connect to -> the address to connect to.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing listens here


class _Check(TypedDict, total=False):
    ok: bool
    error: str


class _Worker(TypedDict):
    worker: int
    state: str


class HealthPage(TypedDict, total=False):
    """The page that a service serves (:mod:`nova.monitoring.health`)."""

    daemon: str
    checks: dict[str, _Check]
    workers: list[_Worker]


class Daemon(NamedTuple):
    """A service. ``files``: the arguments of its command line that name its configuration."""

    binary: str
    files: Sequence[str] = ()


def of_container(cmdline: Path = FIRST) -> Daemon | None:
    """Return the service that is the container's first process, also behind an init such as catatonit; None if that
    process is not a service of nova."""
    words = cmdline.read_bytes().decode(errors="replace").split("\0")
    for index, word in enumerate(words):
        if (name := os.path.basename(word)) in PORTS:
            return Daemon(name, list(_files(words[index + 1:])))
    return None


def _files(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in FILES:
            yield from (word, following)
        elif word.startswith(tuple(f"{option}=" for option in FILES)):
            yield word


def fault(options: Options, binary: str, page: str) -> str:
    """Return the fault that the service reports, or why it does not answer; empty if it is healthy."""
    group = options.monitoring
    if not group.enabled:
        return "[monitoring]enabled is false, so its health cannot be queried"
    host, port = EVERYWHERE.get(group.listen, group.listen), group.port or PORTS[binary]
    at = f"{host}:{port} ([monitoring]listen, port)"
    try:
        status, said = _ask(host, port, page)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{at} does not answer: {error or type(error).__name__}"
    if said.get("daemon", binary) != binary:
        return f"{said['daemon']} answers at {at}: set another port for one of the two"
    return "" if status == HTTPStatus.OK else _worded(said)


def _ask(host: str, port: int, page: str) -> tuple[int, HealthPage]:
    """Return the HTTP status and the JSON body. Raises ValueError if the response is not JSON."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=WAIT_S)) as connection:
        connection.request("GET", page)
        answer = connection.getresponse()
        return answer.status, cast(HealthPage, dict(json.loads(answer.read(LONGEST))))


def _worded(said: HealthPage) -> str:
    failed = [f"{name}: {one.get('error', 'failed')}" for name, one in said.get("checks", {}).items() if not one["ok"]]
    idle = [f"worker {one['worker']} is {one['state']}" for one in said.get("workers", ())
            if one["state"] != SERVING]
    return "; ".join([*failed, *idle]) or "it has not started yet"
