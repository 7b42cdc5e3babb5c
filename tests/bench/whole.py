"""nova-all: how long it takes to be ready and to end, what it needs, and what a client waits for.

    python -m tests.bench.whole [--turns N]

A start is compared with what its imports alone take in the same run: the rest is nova's own.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from keystoneauth1 import adapter

from nova.devel.running import RunningCloud

IMPORTS = ("import nova.api.app, nova.conductor.service, nova.conductor.registry, nova.devel.nova_all.cloud, "
           "alembic.command")
MANY, LISTED, TURNS = 20, 100, 5
UNLIMITED = "[quota]\ninstances = -1\ncores = -1\nram = -1\n"


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def imports() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", IMPORTS], check=True)


def memory_mb(pid: int) -> int:
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) // 1024 if match else 0


class Client:
    def __init__(self, cloud: RunningCloud) -> None:
        self.http = adapter.Adapter(cloud.session(), service_type="compute", default_microversion="2.90")
        images = adapter.Adapter(cloud.session(), service_type="image")
        self.image = images.get("/v2/images").json()["images"][0]["id"]

    def boot(self, name: str) -> None:
        made = self.http.post("/servers", json={"server": {
            "name": name, "imageRef": self.image, "flavorRef": "1", "networks": "auto"}}).json()["server"]["id"]
        while self.http.get(f"/servers/{made}").json()["server"]["status"] == "BUILD":
            time.sleep(0.005)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=TURNS)
    turns = parser.parse_args(argv).turns
    imports()  # files are in the page cache from here on
    ready, ending, importing = [], [], []
    for _ in range(turns):
        importing.append(timed(imports))
        began = time.monotonic()
        cloud = RunningCloud()
        ready.append(time.monotonic() - began)
        needed = memory_mb(cloud.pid)
        ending.append(timed(cloud.stop))
    start, alone = statistics.median(ready), statistics.median(importing)
    print(f"ready after {start:.2f} s, {start / alone:.2f} times its imports ({alone:.2f} s); {needed} MB; "
          f"ended after {statistics.median(ending):.2f} s (medians of {turns})")
    more = Path(cloud.clouds_file.parent)
    more.mkdir(exist_ok=True)
    (more / "bench.conf").write_text(UNLIMITED)
    with RunningCloud(more=("--config-file", str(more / "bench.conf"))) as large:
        client = Client(large)
        client.boot("first")
        one = statistics.median(timed(lambda: client.boot("one")) for _ in range(turns))
        with ThreadPoolExecutor(MANY) as pool:
            many = timed(lambda: list(pool.map(client.boot, [f"many{number}" for number in range(MANY)])))
            list(pool.map(client.boot, [f"more{number}" for number in range(LISTED - MANY)]))
        show = statistics.median(timed(lambda: client.http.get("/servers?limit=1")) for _ in range(turns))
        listing = statistics.median(timed(lambda: client.http.get(f"/servers/detail?limit={LISTED}"))
                                    for _ in range(turns))
    print(f"a boot {1000 * one:.0f} ms; {MANY} at once {1000 * many / MANY:.0f} ms each; a list of {LISTED} servers in "
          f"detail {1000 * listing:.0f} ms, {listing / show:.1f} times a list of one ({1000 * show:.1f} ms)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
