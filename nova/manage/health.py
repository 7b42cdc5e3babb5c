"""``nova-status health``: what a daemon of this machine says of its own health, for supervisors of containers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from nova.conf.base import Options
from nova.conf.monitoring import PORTS
from nova.model.base import Json

READY, LIVE = "/health/ready", "/health/live"
WAIT_S = 12.0  # the daemon's own checks end within ten
LONGEST = 1 << 16  # bytes of an answer
FIRST = Path("/proc/1/cmdline")
SERVING = "serving"
#: Options of a command line that name what a daemon reads.
FILES = ("--config-file", "--config-dir")
#: Addresses to listen on that are none to connect to.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing listens here


class Daemon(NamedTuple):
    """``files``: words of its command line that name its configuration."""

    binary: str
    files: Sequence[str] = ()


def of_container(cmdline: Path = FIRST) -> Daemon | None:
    """The daemon that is the container's first process, also behind an init such as catatonit; None: no daemon is."""
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
    """What the daemon says is wrong with it, or why it does not say; empty: it is well."""
    group = options.monitoring
    if not group.enabled:
        return "[monitoring]enabled is false, so nobody can ask it"
    host, port = EVERYWHERE.get(group.listen, group.listen), group.port or PORTS[binary]
    at = f"{host}:{port} ([monitoring]listen, port)"
    try:
        status, said = _ask(host, port, page)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{at} does not answer: {error or type(error).__name__}"
    if said.get("daemon", binary) != binary:
        return f"{said['daemon']} answers at {at}: set another port for one of the two"
    return "" if status == HTTPStatus.OK else _worded(said)


def _ask(host: str, port: int, page: str) -> tuple[int, dict[str, Json]]:
    """ValueError: the answer is not JSON."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=WAIT_S)) as connection:
        connection.request("GET", page)
        answer = connection.getresponse()
        return answer.status, dict(json.loads(answer.read(LONGEST)))


def _worded(said: dict[str, Json]) -> str:
    failed = [f"{name}: {one.get('error', 'failed')}" for name, one in said.get("checks", {}).items() if not one["ok"]]
    idle = [f"worker {one['worker']} is {one['state']}" for one in said.get("workers", ())
            if one["state"] != SERVING]
    return "; ".join([*failed, *idle]) or "it has not started yet"
