"""EC2's API beside the compute API: what a list of all instances costs, and one of them, in the same cloud.

    bin/test bench-ec2 [--servers 1000] [--turns N]

nova-all serves both. Calls are made in turns, so that what the machine does beside this meets both; ratios of medians
compare within a run. A request to EC2's API has its signature checked by Keystone, and a token of the compute API is
remembered: that is in the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from keystoneauth1 import adapter

from nova.devel.running import RunningCloud
from tests.bench.whole import UNLIMITED, timed

VERSION, WANTED = "2016-11-15", 1.5
AT_ONCE = 100  # servers of one request
ROOM = "[fake]\nvcpus = 1000\nmemory_mb = 1000000\nlocal_gb = 10000\n"


class Both:
    """A user of both APIs."""

    def __init__(self, cloud: RunningCloud) -> None:
        session = cloud.session()
        self.compute = adapter.Adapter(session, service_type="compute", default_microversion="2.96")
        images = adapter.Adapter(session, service_type="image")
        self.image = images.get("/v2/images").json()["images"][0]["id"]
        made = session.post(f"{cloud.auth_url}/users/{session.get_user_id()}/credentials/OS-EC2",
                            json={"tenant_id": session.get_project_id()}).json()["credential"]
        self.keys = Credentials(made["access"], made["secret"])
        self.root = cloud.auth_url.removesuffix("/identity/v3")
        self.address = f"{self.root}/services/Cloud"
        self.http = requests.Session()
        self.headers = {"X-Auth-Token": str(session.get_token()), "OpenStack-API-Version": "compute 2.96"}

    def boot(self, count: int) -> None:
        self.compute.post("/servers", json={"server": {
            "name": "many", "imageRef": self.image, "flavorRef": "1", "networks": "auto", "min_count": count,
            "max_count": count}})

    def wait(self, count: int) -> None:
        def running() -> int:
            found = self.compute.get("/servers/detail?limit=1000").json()["servers"]
            return sum(one["status"] == "ACTIVE" for one in found)
        until = time.monotonic() + 120
        while running() < count:
            if time.monotonic() > until:
                raise SystemExit(f"not {count} servers after two minutes")
            time.sleep(0.5)

    def rest(self, path: str) -> bytes:
        found = self.http.get(f"{self.root}/v2.1{path}", headers=self.headers, timeout=60)
        assert found.status_code == 200, found.text
        return found.content

    def ec2(self, action: str, **params: str) -> bytes:
        body = "&".join(f"{name.replace('__', '.')}={value}" for name, value in {
            "Action": action, "Version": VERSION, **params}.items())
        request = AWSRequest("POST", self.address, {"Content-Type": "application/x-www-form-urlencoded"}, body)
        SigV4Auth(self.keys, "ec2", "RegionOne").add_auth(request)
        found = self.http.post(self.address, body, headers=dict(request.headers.items()), timeout=60)
        assert found.status_code == 200, found.text
        return found.content

    def boto3(self) -> Any:
        return boto3.client("ec2", endpoint_url=self.address, region_name="RegionOne",
                            aws_access_key_id=self.keys.access_key, aws_secret_access_key=self.keys.secret_key)


def medians(turns: int, *calls: Callable[[], object]) -> list[float]:
    """Milliseconds of each, taken in turns; the first turn warms up."""
    times = [[1000 * timed(call) for call in calls] for _ in range(turns + 1)][1:]
    return [statistics.median(of_one) for of_one in zip(*times, strict=True)]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bin/test bench-ec2", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="nova-bench-ec2-") as folder:
        more = Path(folder, "bench.conf")
        more.write_text(UNLIMITED + ROOM)
        with RunningCloud(more=("--config-file", str(more))) as cloud:
            both = Both(cloud)
            for first in range(0, given.servers, AT_ONCE):
                both.boot(min(AT_ONCE, given.servers - first))
            both.wait(given.servers)
            return report(both, given.servers, given.turns)


def report(both: Both, servers: int, turns: int) -> int:
    """What was measured, printed; 1 where the list costs more than is wanted."""
    rest, ec2 = medians(turns, lambda: both.rest("/servers/detail?limit=1000"),
                        lambda: both.ec2("DescribeInstances"))
    shown = both.ec2("DescribeInstances").count(b"<instanceId>")
    print(f"a list of {shown} instances: DescribeInstances {ec2:.0f} ms, GET /servers/detail {rest:.0f} ms: "
          f"{ec2 / rest:.2f} times (at most {WANTED} wanted)")
    page, filtered, cheap, none = medians(
        turns, lambda: both.ec2("DescribeInstances", MaxResults="5"),
        lambda: both.ec2("DescribeInstances", Filter__1__Name="instance-state-name", Filter__1__Value__1="running"),
        lambda: both.ec2("DescribeRegions"), lambda: both.rest("/servers?limit=1"))
    print(f"a page of 5 {page:.1f} ms; all by a filter {filtered:.0f} ms; DescribeRegions, which is the signature's "
          f"check {cheap:.1f} ms; GET /servers of one {none:.1f} ms")
    client = both.boto3()
    whole, = medians(max(3, turns // 5), client.describe_instances)
    print(f"boto3's describe_instances, with its own reading of the answer, {whole:.0f} ms")
    return 0 if shown == servers and ec2 <= WANTED * rest else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
