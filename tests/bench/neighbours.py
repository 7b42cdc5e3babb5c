"""One tenant's attacks, and what another tenant waits meanwhile: the fifteen of our last review of security.

    bin/test bench-neighbours [--seconds N] [ATTACK ...]

nova-all serves all APIs from one process, so that everything is shared that can be. The other tenant lists its servers
again and again, before and during each attack, which comes from a process of its own. Wanted: a median of at most 5
times the one before, and no request over 2 s. Ratios compare within a run.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from keystoneauth1 import adapter

from nova.devel.running import RunningCloud

CLIENTS = 20
SERVERS = 10  # that each tenant has
EVERY_S = 0.05
MOST_TIMES, MOST_S = 5.0, 2.0
CONF = "[quota]\ninstances = 50\ncores = -1\nram = -1\n[fake]\nvcpus = 1000\nmemory_mb = 1000000\nlocal_gb = 10000\n"


class Target(NamedTuple):
    """Where the attacker's requests go. ``host``, ``port``: of the APIs; ``console``, ``s3``: ports of their own.
    ``path``: of the compute API."""

    host: str
    port: int
    console: int
    s3: int
    path: str
    token: str
    image: str

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Auth-Token": self.token, "X-OpenStack-Nova-API-Version": "2.90", "Content-Type": "application/json"}


Attack = Callable[[Target, int], None]


def asking(method: str, path: str, body: object = None, headers: dict[str, str] | None = None, below: str | None = None
           ) -> Attack:
    """Requests one after another, on one connection a client."""
    def attack(target: Target, number: int) -> None:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=60)
        where = (target.path if below is None else below) + path
        said = json.dumps(body).replace("IMAGE", target.image) if body is not None else None
        while True:
            connection.request(method, where, said, {**target.headers, **(headers or {})})
            connection.getresponse().read()
    return attack


def holding(sent: str, count: int, then: bytes = b"", port: str = "port") -> Attack:
    """Connections that are opened, say this much, and a byte a second from then on; those that were closed are opened
    again each second."""
    def attack(target: Target, number: int) -> None:
        held: list[socket.socket] = []
        text = sent.replace("TOKEN", target.token).replace("PATH", target.path).encode()
        while True:
            with contextlib.suppress(OSError):
                while len(held) < count // CLIENTS:
                    held.append(socket.create_connection((target.host, getattr(target, port)), timeout=5))
                    held[-1].sendall(text)
            time.sleep(1)
            for sock in held:
                with contextlib.suppress(OSError):
                    sock.sendall(then)
            held = [sock for sock in held if _open(sock)]
    return attack


def _open(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return bool(sock.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


def guessing(target: Target, number: int) -> None:
    """Tokens of consoles."""
    while True:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection(target.host, target.console, timeout=20)
            connection.request("GET", f"/?token={uuid.uuid4()}", headers={
                "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "binary", "Origin": f"http://{target.host}"})
            connection.getresponse().read()
            connection.close()


def unsigned(target: Target, number: int) -> None:
    """Requests to S3 with a signature that is none."""
    connection = http.client.HTTPConnection(target.host, target.s3, timeout=60)
    while True:
        connection.request("GET", "/bucket/key", headers={
            "Authorization": f"AWS4-HMAC-SHA256 Credential=x{number}/20260101/RegionOne/s3/aws4_request, "
                             "SignedHeaders=host, Signature=" + "0" * 64, "x-amz-date": "20260101T000000Z"})
        connection.getresponse().read()


def reading_slowly(target: Target, number: int) -> None:
    """Lists of all there is, whose answers are taken byte by byte."""
    while True:
        with contextlib.suppress(OSError), socket.create_connection((target.host, target.port), timeout=20) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(f"GET {target.path}/servers/detail HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {target.token}\r\n\r\n"
                         .encode() * 20)
            while sock.recv(16):
                time.sleep(0.05)


TAGS = ",".join(f"tag{number}" for number in range(300))
SERVER = {"name": "x", "imageRef": "IMAGE", "flavorRef": "1", "networks": "none"}
SLOW_BODY = ("POST PATH/servers HTTP/1.1\r\nHost: a\r\nX-Auth-Token: TOKEN\r\nContent-Type: application/json\r\n"
             "Content-Length: 100000\r\n\r\n")
XML = ("<server xmlns='http://docs.openstack.org/compute/api/v1.1' name='x'>"
       + "<metadata>" + "<meta key='a'>b</meta>" * 9900 + "</metadata></server>")

ATTACKS: dict[str, Attack] = {
    "slow bodies": holding(SLOW_BODY, 2300, b"x"),
    "slow heads": holding("GET PATH/servers HTTP/1.1\r\nHost: a\r\nX-A: ", 1500, b"x"),
    "idle connections": holding("", 2500),
    "slow readers": reading_slowly,
    "slow heads at the console proxy": holding("GET / HTTP/1.1\r\nHost:", 1500, b"x", "console"),
    "lists with 300 tags": asking("GET", f"/servers?tags-any={TAGS}&not-tags={TAGS}"),
    "lists with a hard pattern": asking("GET", "/servers/detail?name=(a%2B)%2B%24"),
    "lists of nothing": asking("GET", "/servers/detail?status=ERROR"),
    "lists of everything": asking("GET", "/servers/detail?limit=1000"),
    "bodies with 400 metadata": asking("POST", "/servers", {"server": {
        **SERVER, "metadata": {f"key{number}": "x" * 200 for number in range(400)}}}),
    "boots beyond the quota": asking("POST", "/servers", {"server": {**SERVER, "min_count": 60}}),
    "boots and nothing else": asking("POST", "/servers", {"server": SERVER}),
    "tokens of consoles guessed": guessing,
    "requests to S3 that nobody signed": unsigned,
    "requests to EC2 that nobody signed": asking(
        "GET", "/services/Cloud?Action=DescribeInstances&Version=2016-11-15&AWSAccessKeyId=x&SignatureVersion=2"
        "&SignatureMethod=HmacSHA256&Timestamp=2026-01-01T00:00:00Z&Signature=x", below=""),
    "tokens that are none": asking("GET", "/servers", headers={"X-Auth-Token": "no-token"}),
    "XML of 9,900 elements": asking("GET", "/nowhere/" + "x" * 200, below="/v2"),
}


def attacks(target: Target, name: str) -> None:
    """What the attacking process does until it is ended."""
    threads = [threading.Thread(target=_again, args=(ATTACKS[name], target, number), daemon=True)
               for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    threads[0].join()


def _again(attack: Attack, target: Target, number: int) -> None:
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            attack(target, number)


class Tenant:
    """Who lists its servers, and waits."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def waits(self, seconds: float) -> list[float]:
        """Of each request within that time, the seconds until its answer was there. The first 2 s do not count: an
        attack has begun by then."""
        took, began = [], time.monotonic()
        while time.monotonic() - began < seconds + 2:
            asked = time.monotonic()
            try:
                connection = http.client.HTTPConnection(self._target.host, self._target.port, timeout=20)
                connection.request("GET", f"{self._target.path}/servers/detail", headers=self._target.headers)
                answer = connection.getresponse()
                answer.read()
                connection.close()
                waited = time.monotonic() - asked if answer.status == 200 else 20.0
            except OSError:
                waited = 20.0
            if time.monotonic() - began >= 2:
                took.append(waited)
            time.sleep(EVERY_S)
        return took


@contextlib.contextmanager
def attacked(target: Target, name: str) -> Iterator[None]:
    process = multiprocessing.get_context("fork").Process(target=attacks, args=(target, name), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def target_of(cloud: RunningCloud, user: str) -> Target:
    """The cloud for that user, who has its servers."""
    session = cloud.session(user)
    where = urlsplit(str(session.get_endpoint(service_type="compute")))
    image = adapter.Adapter(session, service_type="image").get("/v2/images").json()["images"][0]["id"]
    compute = adapter.Adapter(session, service_type="compute", default_microversion="2.90")
    compute.post("/servers", json={"server": {**SERVER, "imageRef": image, "min_count": SERVERS}})
    console = urlsplit(_console(compute))
    s3 = urlsplit(str(session.get_endpoint(service_type="s3") or ""))
    return Target(str(where.hostname), int(where.port or 80), int(console.port or 80), int(s3.port or 80),
                  where.path, str(session.get_token()), image)


def _console(compute: adapter.Adapter) -> str:
    until = time.monotonic() + 30
    while True:
        servers = compute.get("/servers/detail").json()["servers"]
        if len(servers) >= SERVERS and all(one["status"] == "ACTIVE" for one in servers):
            break
        assert time.monotonic() < until
        time.sleep(0.2)
    made = compute.post(f"/servers/{servers[0]['id']}/remote-consoles", json={
        "remote_console": {"protocol": "vnc", "type": "novnc"}})
    return str(made.json()["remote_console"]["url"])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each attack")
    parser.add_argument("attack", nargs="*", choices=[*ATTACKS, []], metavar="ATTACK", help="some of them only")
    given = parser.parse_args(argv)
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write(CONF)
        conf.flush()
        with RunningCloud(more=("--config-file", conf.name)) as cloud:
            failed = measured(cloud, given.attack or list(ATTACKS), given.seconds)
    return 1 if failed else 0


def measured(cloud: RunningCloud, names: Sequence[str], seconds: float) -> int:
    """Print a line for each attack; how many went beyond what is wanted."""
    failed = 0
    attacker, tenant = target_of(cloud, "demo"), Tenant(target_of(cloud, "admin"))
    print(f"{'attack':38} {'before ms':>9} {'during ms':>9} {'times':>6} {'worst s':>8}", flush=True)
    for name in names:
        before = statistics.median(tenant.waits(3.0))
        with attacked(attacker, name):
            during = tenant.waits(seconds)
        median, worst = statistics.median(during), max(during)
        bad = median > MOST_TIMES * before or worst > MOST_S
        failed += bad
        print(f"{name:38} {1000 * before:9.1f} {1000 * median:9.1f} {median / before:6.1f} {worst:8.2f}"
              f"{'  beyond what is wanted' if bad else ''}", flush=True)
        time.sleep(3)
    return failed


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(sys.argv[1:]))
