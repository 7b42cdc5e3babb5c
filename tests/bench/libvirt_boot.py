"""What the cloud adds to a boot: POST to ACTIVE on libvirt, against `virsh create` of the same domain XML.

    python -m tests.bench.libvirt_boot [--rounds N] [--state DIR]

Both are measured in turn, in one run, on one host of a sandbox, with the image cached. Needs root. ``--state`` is that
of a sandbox which is up and stays; without it one is made and removed.
"""

from __future__ import annotations

import statistics
import time

from tests.bench import sandboxed
from tests.bench.__main__ import Report, say
from tests.functional.backends import wait_until
from tests.machine.stack import Live, Sandbox

GOAL_S = 0.5
HOST = "host1"
# Timed beside libvirt, so that what it takes to get there is not counted.
TIMED = """\
import subprocess, sys, time
started = time.monotonic()
subprocess.run(["virsh", "-q", "create", sys.argv[1]], check=True, stdout=subprocess.DEVNULL)
print(time.monotonic() - started)
"""


def post_to_active(api: Live) -> tuple[str, float]:
    """(uuid, seconds); asked for every 10 ms, which is counted."""
    started = time.monotonic()
    uuid = api.create("bench", host=HOST)["id"]
    wait_until("it is ACTIVE", lambda: api.show(uuid)["status"] in ("ACTIVE", "ERROR"), 60, 0.01)
    took = time.monotonic() - started
    status = api.show(uuid)["status"]
    assert status == "ACTIVE", f"{uuid} is {status}"
    return uuid, took


def virsh_create(sandbox: Sandbox, uuid: str) -> float:
    """Seconds that libvirt alone takes to start the guest anew, its disks and tap being there."""
    xml = sandbox.instances(HOST) / uuid / "bench.xml"
    xml.write_text(sandbox.virsh(HOST, "dumpxml", "--inactive", uuid))
    sandbox.virsh(HOST, "destroy", uuid)
    time.sleep(1)  # the cloud takes notice
    return float(sandbox.run("python3", "-c", TIMED, str(xml), host=HOST))


def one_round(sandbox: Sandbox, api: Live) -> tuple[float, float]:
    """(cloud, virsh) seconds; the guest is stopped at once, so that it does not slow the next."""
    uuid, cloud = post_to_active(api)
    try:
        return cloud, virsh_create(sandbox, uuid)
    finally:
        api.remove(uuid)
        time.sleep(0.5)


def measure(sandbox: Sandbox, rounds: int) -> None:
    api = sandbox.api("admin")
    api.remove(post_to_active(api)[0])  # the image is cached from here on
    report = Report("Boots on libvirt, image cached", "round", "POST to ACTIVE s", "virsh create s", "difference s")
    found = []
    for number in range(1, rounds + 1):
        found.append(one_round(sandbox, api))
        report.row(number, *(f"{seconds:.2f}" for seconds in (*found[-1], found[-1][0] - found[-1][1])))
    medians = [statistics.median(times) for times in zip(*found, strict=True)]
    difference = medians[0] - medians[1]
    report.row("median", *(f"{seconds:.2f}" for seconds in (*medians, difference)))
    say(f"the cloud adds {difference:.2f} s to libvirt's own time (at most {GOAL_S} wanted)")


if __name__ == "__main__":
    raise SystemExit(sandboxed.main("tests.bench.libvirt_boot", __doc__, measure, 10))
