"""What the cloud adds to an action: from the request to its end on libvirt, against virsh doing the same; a snapshot
of an idle guest against `qemu-img convert` of its disk and an upload.

    python -m tests.bench.libvirt_actions [--rounds N] [--state DIR]

Both are measured in turn, in one run, on one host of a sandbox. Needs root. ``--state`` is that of a sandbox which is
up and stays; without it one is made and removed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from tests.bench import sandboxed
from tests.bench.__main__ import Report, say
from tests.functional.backends import wait_until
from tests.machine.stack import Sandbox

GOAL_S, GOAL_RATIO = 0.3, 1.5
HOST = "host1"
END_S = 120.0

# Timed beside libvirt, so that what it takes to get there is not counted. sys.argv: the domain, then virsh's commands,
# and last a state to wait for ("-" for none).
VIRSH = """\
import subprocess, sys, time
def virsh(*words):
    return subprocess.run(["virsh", "-q", *words], check=True, capture_output=True, text=True).stdout.strip()
domain, *commands, state = sys.argv[1:]
started = time.monotonic()
for command in commands:
    virsh(command, domain)
while state != "-" and virsh("domstate", domain) != state:
    time.sleep(0.01)
    if time.monotonic() > started + 100:
        sys.exit(f"{domain} is not {state}")
print(time.monotonic() - started)
"""
# sys.argv: the disk, the image service's URL, a token
SNAPSHOT = """\
import json, os, subprocess, sys, tempfile, time, urllib.request
disk, url, token = sys.argv[1:]
def ask(method, path, data, kind, size=None):
    headers = {"X-Auth-Token": token, "Content-Type": kind, **({"Content-Length": str(size)} if size else {})}
    asked = urllib.request.Request(url + path, data=data, method=method, headers=headers)
    return urllib.request.urlopen(asked, timeout=100).read()
with tempfile.TemporaryDirectory(dir=os.path.dirname(disk)) as folder:
    started = time.monotonic()
    out = os.path.join(folder, "copy")
    subprocess.run(["qemu-img", "convert", "-U", "-O", "qcow2", disk, out], check=True)
    image = json.loads(ask("POST", "/v2/images", json.dumps(
        {"name": "compared", "disk_format": "qcow2", "container_format": "bare"}).encode(), "application/json"))["id"]
    with open(out, "rb") as file:
        ask("PUT", f"/v2/images/{image}/file", file, "application/octet-stream", os.path.getsize(out))
    print(time.monotonic() - started)
ask("DELETE", f"/v2/images/{image}", None, "application/json")
"""


class Guest:
    """One server that really runs, as the cloud and as virsh see it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.api = sandbox, sandbox.api("admin")
        self.uuid: str = self.api.create("measured", host=HOST)["id"]
        wait_until("it is ACTIVE", lambda: self.api.show(self.uuid)["status"] == "ACTIVE", END_S, 0.1)
        self.domain = self.api.show(self.uuid)["OS-EXT-SRV-ATTR:instance_name"]
        self.sandbox.ready(self.api, self.uuid)

    def cloud(self, action: str, argument: Any, status: str) -> float:
        """Seconds from the request until the server shows the status and nothing is done with it."""
        started = time.monotonic()
        self.api.act(self.uuid, action, argument)
        wait_until(f"it is {status}", lambda: self._is(status), END_S, 0.01)
        return time.monotonic() - started

    def _is(self, status: str) -> bool:
        shown = self.api.show(self.uuid)
        assert shown["status"] != "ERROR", shown.get("fault")
        return bool(shown["status"] == status and shown["OS-EXT-STS:task_state"] is None)

    def virsh(self, *commands: str, state: str = "-") -> float:
        took = float(self.sandbox.run("python3", "-c", VIRSH, self.domain, *commands, state, host=HOST))
        time.sleep(1)  # the cloud takes notice
        return took

    def runs_again(self) -> None:
        """After whatever virsh did: ACTIVE for the cloud, and booted."""
        time.sleep(2)
        wait_until("nothing is done with it", lambda: self.api.show(self.uuid)["OS-EXT-STS:task_state"] is None, END_S)
        if self.api.show(self.uuid)["status"] == "SHUTOFF":
            self.cloud("os-start", None, "ACTIVE")
        else:
            self.cloud("reboot", {"type": "HARD"}, "ACTIVE")
        self.sandbox.ready(self.api, self.uuid)

    # -- the same twice: (cloud, virsh) seconds

    def pause(self) -> dict[str, tuple[float, float]]:
        pause, unpause = self.cloud("pause", None, "PAUSED"), self.cloud("unpause", None, "ACTIVE")
        return {"pause": (pause, self.virsh("suspend", state="paused")),
                "unpause": (unpause, self.virsh("resume", state="running"))}

    def stop(self) -> dict[str, tuple[float, float]]:
        cloud = self.cloud("os-stop", None, "SHUTOFF")
        self.runs_again()
        virsh = self.virsh("shutdown", state="shut off")
        self.runs_again()
        return {"stop": (cloud, virsh)}

    def hard_reboot(self) -> dict[str, tuple[float, float]]:
        cloud = self.cloud("reboot", {"type": "HARD"}, "ACTIVE")
        self.sandbox.ready(self.api, self.uuid)
        virsh = self.virsh("destroy", "start", state="running")
        self.runs_again()
        return {"hard reboot": (cloud, virsh)}

    def snapshot(self) -> dict[str, tuple[float, float]]:
        """Live, of a guest that does nothing."""
        answer = self.api.call("POST", f"/servers/{self.uuid}/action", {"createImage": {"name": "measured"}})
        started = time.monotonic()
        wait_until("it is made", lambda: self._is("ACTIVE"), END_S, 0.01)
        cloud = time.monotonic() - started + answer.elapsed.total_seconds()
        disk = self.sandbox.instances(HOST) / self.uuid / "disk"
        plain = float(self.sandbox.run("python3", "-c", SNAPSHOT, str(disk), self.sandbox.layout.url("glance"),
                                       self.sandbox.token("admin"), host=HOST))
        self.sandbox.run("openstack", "image", "delete", answer.json()["image_id"], user="admin")
        return {"snapshot": (cloud, plain)}


def measure(sandbox: Sandbox, rounds: int) -> None:
    guest = Guest(sandbox)
    parts: tuple[Callable[[], dict[str, tuple[float, float]]], ...] = (
        guest.pause, guest.stop, guest.hard_reboot, guest.snapshot)
    found: dict[str, list[tuple[float, float]]] = {}
    try:
        for _ in range(rounds):
            for part in parts:
                for name, pair in part().items():
                    found.setdefault(name, []).append(pair)
    finally:
        guest.api.remove(guest.uuid)
    show(found, rounds)


def show(found: dict[str, list[tuple[float, float]]], rounds: int) -> None:
    report = Report(f"Actions on libvirt, medians of {rounds}", "action", "cloud s", "virsh or qemu-img s", "added s",
                    "ratio", "wanted")
    for name, pairs in found.items():
        cloud, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
        added, ratio = cloud - plain, cloud / plain
        good = ratio <= GOAL_RATIO if name == "snapshot" else added <= GOAL_S
        goal = f"ratio <= {GOAL_RATIO}" if name == "snapshot" else f"added <= {GOAL_S}"
        report.row(name, f"{cloud:.2f}", f"{plain:.2f}", f"{added:.2f}", f"{ratio:.2f}",
                   f"{goal}: {'yes' if good else 'NO'}")
    say("virsh's times have those of its own processes in them")


if __name__ == "__main__":
    raise SystemExit(sandboxed.main("tests.bench.libvirt_actions", __doc__, measure, 5))
