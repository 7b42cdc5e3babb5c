"""nova-all: what grows while servers come and go: memory, files, threads, the databases, the log.

    python -m tests.bench.growth [--servers N] [--clients N] [--retention TIME]

Each client boots a server, waits until it is active, lists its project's servers, deletes the server, and waits until
it is gone. A line of the curve is what the process and its folder have after so many servers. The retention of deleted
rows is shorter than nova-all's own, so that rows go as fast as they come from an early line on.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from keystoneauth1 import adapter

from nova.devel.running import RunningCloud

SERVERS, CLIENTS, LINES = 20_000, 8, 40
RETENTION = "60s"
CONF = "[DEFAULT]\ndeleted_retention = {retention}\n[quota]\ninstances = -1\ncores = -1\nram = -1\n"
POLL_S, GONE_S, LISTINGS = 0.02, 300.0, 5
MB = 2 ** 20


class Line(NamedTuple):
    """One line of the curve. ``state_mb``: all files of the cloud's folder; ``state_files``: how many they are."""

    servers: int
    seconds: float
    rss_mb: float
    open_files: int
    threads: int
    database_mb: float
    log_mb: float
    state_mb: float
    state_files: int
    list_ms: float

    def __str__(self) -> str:
        return (f"{self.servers:8} {self.seconds:8.0f} {self.rss_mb:8.1f} {self.open_files:6} {self.threads:8} "
                f"{self.database_mb:8.2f} {self.log_mb:8.2f} {self.state_mb:9.2f} {self.state_files:6} "
                f"{self.list_ms:8.1f}")


HEADER = (f"{'servers':>8} {'seconds':>8} {'RSS MB':>8} {'files':>6} {'threads':>8} {'db MB':>8} {'log MB':>8} "
          f"{'state MB':>9} {'files':>6} {'list ms':>8}")


class Client:
    """One user of the compute API, on one connection. ``NotDone``: a server did not do as it was told."""

    def __init__(self, cloud: RunningCloud) -> None:
        session = cloud.session()
        self._headers = {"X-Auth-Token": str(session.get_token()), "Content-Type": "application/json",
                         "X-OpenStack-Nova-API-Version": "2.90"}
        self._address = urlsplit(str(session.get_endpoint(service_type="compute")))
        images = adapter.Adapter(session, service_type="image")
        self._image = images.get("/v2/images").json()["images"][0]["id"]
        self._connection = http.client.HTTPConnection(str(self._address.hostname), self._address.port, timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status, and the document if there is one."""
        self._connection.request(method, self._address.path + path, json.dumps(body) if body else None, self._headers)
        answer = self._connection.getresponse()
        document = answer.read()
        return answer.status, json.loads(document) if document else None

    def come_and_go(self, name: str) -> None:
        """A server's whole life."""
        status, made = self.ask("POST", "/servers", {"server": {
            "name": name, "imageRef": self._image, "flavorRef": "1", "networks": "auto"}})
        assert status == 202, made
        path = f"/servers/{made['server']['id']}"
        self._until(f"{name} is active", lambda: self._status(path) == "ACTIVE")
        self.ask("GET", "/servers")
        self.ask("DELETE", path)
        self._until(f"{name} is gone", lambda: self._status(path) is None)

    def list_ms(self) -> float:
        """How long a list of servers takes: the median of a few."""
        taken = []
        for _ in range(LISTINGS):
            began = time.monotonic()
            self.ask("GET", "/servers/detail")
            taken.append(1000 * (time.monotonic() - began))
        return statistics.median(taken)

    def _status(self, path: str) -> str | None:
        status, found = self.ask("GET", path)
        return None if status == 404 else str(found["server"]["status"])

    @staticmethod
    def _until(what: str, look: Callable[[], bool]) -> None:
        until = time.monotonic() + GONE_S
        while not look():
            assert time.monotonic() < until, f"not so after {GONE_S:.0f} s: {what}"
            time.sleep(POLL_S)


class Meter:
    """Measures a running cloud whose folder is ``state``."""

    def __init__(self, cloud: RunningCloud, state: Path) -> None:
        self._pid, self._state, self._client, self._began = cloud.pid, state, Client(cloud), time.monotonic()

    def line(self, servers: int) -> Line:
        """What it has now, after so many servers."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        sizes = dict(self._sizes())
        return Line(servers, time.monotonic() - self._began, _field(status, "VmRSS") / 1024,
                    len(os.listdir(f"/proc/{self._pid}/fd")), _field(status, "Threads"),
                    _total(sizes, r"nova(_api)?\.db(-\w+)?$"), _total(sizes, r"nova-all\.log(\.\d+)?$"),
                    _total(sizes, ""), len(sizes), self._client.list_ms())

    def _sizes(self) -> Iterator[tuple[Path, int]]:
        """Each file that lives long enough to be measured, and its blocks on disk."""
        for folder, _, names in os.walk(self._state):
            for name in names:
                try:
                    yield Path(folder, name), os.lstat(Path(folder, name)).st_blocks * 512
                except FileNotFoundError:
                    continue


def _field(status: str, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)
    assert match, name
    return int(match[1])


def _total(sizes: dict[Path, int], pattern: str) -> float:
    return sum(size for path, size in sizes.items() if re.match(pattern, path.name)) / MB


def curve(cloud: RunningCloud, state: Path, servers: int, clients: int = CLIENTS, lines: int = LINES) -> Iterator[Line]:
    """The curve while so many servers come and go, a line as soon as it is known; the first is of the idle cloud."""
    meter, numbers = Meter(cloud, state), itertools.count()
    done, failures, wake = itertools.count(1), [], threading.Condition()
    reached = 0

    def work(client: Client) -> None:
        nonlocal reached
        try:
            while not failures and (number := next(numbers)) < servers:
                client.come_and_go(f"ci-{number}")
                with wake:
                    reached = next(done)
                    wake.notify()
        except BaseException as error:
            with wake:
                failures.append(error)
                wake.notify()

    yield meter.line(0)
    workers = [threading.Thread(target=work, args=(Client(cloud),), daemon=True) for _ in range(clients)]
    for worker in workers:
        worker.start()
    for line in range(1, lines + 1):
        with wake:
            wake.wait_for(lambda line=line: failures or reached >= servers * line // lines)  # type: ignore[misc]
        if failures:
            raise failures[0]
        yield meter.line(reached)
    for worker in workers:
        worker.join()


def slope(lines: Sequence[Line]) -> float:
    """MB by which RSS grows in 10,000 servers: the line through the second half of the curve that fits best."""
    half = [line for line in lines if line.servers >= lines[-1].servers / 2]
    return 10_000 * statistics.linear_regression([line.servers for line in half], [line.rss_mb for line in half]).slope


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=SERVERS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--retention", default=RETENTION, help="of deleted rows, as in nova.conf")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="nova-growth-") as folder:
        conf, state = Path(folder, "bench.conf"), Path(folder, "state")
        conf.write_text(CONF.format(retention=given.retention))
        with RunningCloud(more=("--state", str(state), "--config-file", str(conf))) as cloud:
            print(HEADER, flush=True)
            lines = []
            for line in curve(cloud, state, given.servers, given.clients):
                print(line, flush=True)
                lines.append(line)
    print(f"RSS grows by {slope(lines):.1f} MB in 10,000 servers, in the second half")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
