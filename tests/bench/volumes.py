"""What the cloud adds to an attach: from the request to its answer, beside Cinder's own calls and virsh doing the
same; and what each of many attaches takes that come at once, to one server and to many.

    python -m tests.bench.volumes --state DIR [--rounds N]

All is measured in turn, in one run, on one host of a sandbox with volumes (``bin/stack up --sandbox --volumes nfs``).
Needs root.
"""

from __future__ import annotations

import concurrent.futures
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench import sandboxed
from tests.bench.__main__ import Report, say
from tests.bench.libvirt_actions import END_S, HOST, Guest
from tests.functional.backends import wait_until
from tests.machine.stack import Sandbox

GOAL_S, GOAL_RATIO, MANY = 0.3, 2.0, 20
SERVERS = 12  # as many as two hosts of one processor each have room for
WAITS = 89  # minor version: its answer comes when the guest has the volume

# Timed where it is asked. sys.argv: Cinder's address, a token, the volume, the server, the connector.
CINDER = """\
import json, sys, time, urllib.request
url, token, volume, server, connector = sys.argv[1:]
def ask(method, path, body=None):
    request = urllib.request.Request(url + path, json.dumps(body).encode() if body else None, {
        "X-Auth-Token": token, "Content-Type": "application/json", "OpenStack-API-Version": "volume 3.44"},
        method=method)
    answer = urllib.request.urlopen(request).read()
    return json.loads(answer) if answer else None
started = time.monotonic()
ask("GET", "/volumes/" + volume)
made = ask("POST", "/attachments", {"attachment": {"volume_uuid": volume, "instance_uuid": server}})["attachment"]
ask("PUT", "/attachments/" + made["id"], {"attachment": {"connector": json.loads(connector)}})
ask("POST", "/attachments/" + made["id"] + "/action", {"os-complete": {}})
print(time.monotonic() - started)
ask("DELETE", "/attachments/" + made["id"])
"""
# sys.argv: the domain, the file, the name of the disk.
VIRSH = """\
import subprocess, sys, time
domain, path, name = sys.argv[1:]
started = time.monotonic()
subprocess.run(["virsh", "-q", "attach-disk", domain, path, name, "--cache", "none", "--targetbus", "virtio"],
               check=True, capture_output=True)
print(time.monotonic() - started)
subprocess.run(["virsh", "-q", "detach-disk", domain, name], check=True, capture_output=True)
"""


class Volumes(Guest):
    """A server, and volumes for it."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        project = self.api.show(self.uuid)["tenant_id"]
        self.api.call("PUT", f"/os-quota-sets/{project}", {"quota_set": {"instances": -1, "cores": -1}})
        more = [str(self.api.create(f"measured{number}")["id"]) for number in range(1, SERVERS)]
        self.servers = [self.uuid, *more]
        for uuid in more:
            self.api.settled(uuid, "ACTIVE", seconds=END_S)
        for uuid in more:
            self.sandbox.ready(self.api, uuid)
        self.volumes = sandbox.layout.url("cinder", "/v3/volumes")
        body = {"volume": {"size": 1, "name": "measured"}}
        self.all = [str(self.api.session.post(self.volumes, json=body).json()["volume"]["id"]) for _ in range(MANY)]
        for volume in self.all:
            self.becomes(volume, "available")

    def becomes(self, volume: str, status: str) -> None:
        wait_until(f"volume {volume} is {status}", lambda: self._volume(volume)["status"] == status, END_S, 0.2)

    def _volume(self, volume: str) -> Any:
        return self.api.session.get(f"{self.volumes}/{volume}").json()["volume"]

    def remove(self) -> None:
        self.api.remove(*self.servers)
        for volume in self.all:
            self.api.session.delete(f"{self.volumes}/{volume}")

    def attach(self, volume: str, server: str = "") -> float:
        started = time.monotonic()
        answer = self.api.ask("POST", self._path(server), WAITS, {"volumeAttachment": {"volumeId": volume}})
        assert answer.status_code == 200, answer.text
        return time.monotonic() - started

    def detach(self, volume: str, server: str = "") -> None:
        self.api.call("DELETE", f"{self._path(server)}/{volume}")
        self.becomes(volume, "available")

    def _path(self, server: str) -> str:
        """``server``: empty for the first."""
        return f"/servers/{server or self.uuid}/os-volume_attachments"

    def cinder(self, volume: str) -> float:
        """Cinder's part, by itself."""
        address = self.sandbox.layout.url("cinder", "/v3")
        connector = json.dumps({"host": "measured", "ip": "127.0.0.1", "platform": "x86_64", "os_type": "linux"})
        return float(self.sandbox.run("python3", "-c", CINDER, address, self.sandbox.token("admin"), volume, self.uuid,
                                      connector, user="admin"))

    def libvirt(self, volume: str) -> float:
        """Libvirt's part, by itself."""
        file = self.sandbox.layout.data / "cinder" / "volumes" / f"volume-{volume}"
        took = float(self.sandbox.run("python3", "-c", VIRSH, self.domain, str(file), "vdq", host=HOST))
        time.sleep(2)  # the guest gives it up
        return took

    def many(self, servers: Sequence[str]) -> float:
        """Seconds for each of a volume a server at once: how long all take, by their number."""
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(self.attach, self.all, servers))
            took = (time.monotonic() - started) / len(servers)
            list(pool.map(self.detach, self.all, servers))
        return took


def measure(sandbox: Sandbox, rounds: int) -> None:
    guest = Volumes(sandbox)
    ones, plain, many, apart = [], [], [], []
    try:
        for _ in range(rounds):
            one = guest.all[0]
            ones.append(guest.attach(one))
            guest.detach(one)
            plain.append((guest.cinder(one), guest.libvirt(one)))
            guest.becomes(one, "available")
            many.append(guest.many([guest.uuid] * MANY))
            apart.append(guest.many(guest.servers))
    finally:
        guest.remove()
    show(statistics.median(ones), [statistics.median(part) for part in zip(*plain, strict=True)],
         {f"one server ({MANY})": statistics.median(many), f"{SERVERS} servers": statistics.median(apart)}, rounds)


def show(one: float, plain: list[float], many: Mapping[str, float], rounds: int) -> None:
    report = Report(f"Attaches of volumes, medians of {rounds}", "what", "s", "beside", "wanted")
    report.row("Cinder's own calls", f"{plain[0]:.2f}", "", "")
    report.row("virsh attach-disk", f"{plain[1]:.2f}", "", "")
    added = one - sum(plain)
    report.row("one attach", f"{one:.2f}", f"added {added:.2f} s",
               f"added <= {GOAL_S}: {'yes' if added <= GOAL_S else 'NO'}")
    for where, took in many.items():
        report.row(f"each of many at once, to {where}", f"{took:.2f}", f"ratio {took / one:.2f}",
                   f"ratio <= {GOAL_RATIO}: {'yes' if took <= GOAL_RATIO * one else 'NO'}")
    say("virsh's time has that of its own process in it")


if __name__ == "__main__":
    raise SystemExit(sandboxed.main("tests.bench.volumes", __doc__, measure, 3))
