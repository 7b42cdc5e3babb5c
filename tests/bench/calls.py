"""The requests that the benchmark sends: one table, by name. Servers are without networks, as ``speed.md`` counts."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterator, Sequence

import requests

from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.cloud import Cloud

CLIENTS = 8
VERSION = "2.96"
HEADERS = {"X-Auth-Token": "admin:bench", "X-OpenStack-Nova-API-Version": VERSION}
SERVER = {"name": "load", "flavorRef": "1", "imageRef": IMAGE, "networks": "none"}
WAIT_S, ASKED_S = 120.0, 0.1

Call = Callable[[requests.Session], object]


def getting(cloud: Cloud, path: str) -> Call:
    def call(session: requests.Session) -> None:
        answer = session.get(f"{cloud.url}{path}", headers=HEADERS, timeout=60)
        assert answer.status_code == 200, answer.text
    return call


def posting(cloud: Cloud) -> Call:
    """Create one server; the call's value is its UUID."""
    def call(session: requests.Session) -> str:
        answer = session.post(f"{cloud.url}/servers", json={"server": SERVER}, headers=HEADERS, timeout=60)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["server"]["id"])
    return call


def deleting(cloud: Cloud, uuids: Sequence[str]) -> Call:
    """Delete the next one of these servers."""
    left: Iterator[str] = iter(uuids)

    def call(session: requests.Session) -> None:
        answer = session.delete(f"{cloud.url}/servers/{next(left)}", headers=HEADERS, timeout=60)
        assert answer.status_code == 204, answer.text
    return call


def each(call: Call, count: int, clients: int = CLIENTS, pause_s: float = 0.0) -> tuple[list[object], list[float]]:
    """Return the values of ``count`` calls by clients side by side, and the milliseconds that each took."""
    def one(share: int) -> list[tuple[object, float]]:
        done = []
        with requests.Session() as session:
            for _ in range(share):
                started = time.monotonic()
                value = call(session)
                done.append((value, 1000 * (time.monotonic() - started)))
                time.sleep(pause_s)
        return done
    shares = [count // clients + (number < count % clients) for number in range(clients)]
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        found = [pair for part in pool.map(one, shares) for pair in part]
    return [value for value, _ in found], [ms for _, ms in found]


def for_a_while(call: Call, clients: int, seconds: float) -> tuple[list[float], float]:
    """Return the milliseconds of each call by clients side by side, and the seconds of all together."""
    until = time.monotonic() + seconds

    def one(_number: int) -> list[float]:
        times = []
        with requests.Session() as session:
            while (started := time.monotonic()) < until:
                call(session)
                times.append(1000 * (time.monotonic() - started))
        return times
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        times = [ms for part in pool.map(one, range(clients)) for ms in part]
    return times, time.monotonic() - started


def all_servers(cloud: Cloud) -> list[dict[str, str]]:
    """Return every server's id and status, page after page."""
    found: list[dict[str, str]] = []
    while True:
        marker = f"&marker={found[-1]['id']}" if found else ""
        answer = requests.get(f"{cloud.url}/servers/detail?limit=1000{marker}", headers=HEADERS, timeout=60)
        assert answer.status_code == 200, answer.text
        page = [{"id": one["id"], "status": one["status"]} for one in answer.json()["servers"]]
        if not page:
            return found
        found += page


def count_of(cloud: Cloud, status: str) -> int:
    """Return the number of servers of a status, by a light request."""
    answer = requests.get(f"{cloud.url}/servers?limit=1000&status={status}", headers=HEADERS, timeout=60)
    assert answer.status_code == 200, answer.text
    return len(answer.json()["servers"])


def all_up(cloud: Cloud, count: int) -> list[str]:
    """Wait until there are ``count`` servers (at most 1,000), all ACTIVE; return their UUIDs. Waiting costs the cloud
    little."""
    wait_until(f"{count} servers are ACTIVE", lambda: count_of(cloud, "ACTIVE") == count, WAIT_S, ASKED_S)
    return [one["id"] for one in all_servers(cloud)]


def none_left(cloud: Cloud) -> None:
    wait_until("all servers are gone", lambda: not requests.get(
        f"{cloud.url}/servers?limit=1", headers=HEADERS, timeout=60).json()["servers"], WAIT_S, ASKED_S)
