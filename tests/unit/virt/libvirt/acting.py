"""A driver on a fake hypervisor with real files, for the tests of what is done to guests."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest

from nova.model.guest.orders import BuildOrder, Fence
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from tests.contract.driver_conformance import IMAGE_ID, build, make_order

tools = pytest.mark.skipif(not shutil.which("qemu-img") or not shutil.which("xorrisofs"),
                           reason="needs qemu-img and xorrisofs")

RUNNING, PAUSED, SHUTDOWN = PowerState.RUNNING, PowerState.PAUSED, PowerState.SHUTDOWN
RESCUE_ID, KERNEL_ID = "0d7f7c1e-51d3-4fb6-8a1e-2b7b7a0f9c01", "0d7f7c1e-51d3-4fb6-8a1e-2b7b7a0f9c02"
SNAPSHOT_ID = "1d0c2b9e-6a1f-4d55-8f2b-0c7e3f1a5b66"
FENCE = Fence(operation_id=7, epoch=3)
AGENT = {"hw_qemu_guest_agent": "yes"}


def tool_of(argv: Sequence[str]) -> list[str]:
    """A command without its sandbox and limits."""
    last = len(argv) - 1 - list(reversed(argv)).index("--") if "--" in argv else -1
    return list(argv[last + 1:])


def with_properties(rig, **properties: str) -> BuildOrder:
    made = make_order(rig.bridge, image=Image(id=IMAGE_ID, disk_format="raw", properties=properties))
    build(rig, made)
    return made


def folder(rig, order: BuildOrder) -> Path:
    return rig.root / order.server_uuid


def disks_of(rig, order: BuildOrder) -> list[tuple[str, str, str, str | None]]:
    """(file, target, device, boot order) as the hypervisor was told."""
    found = []
    for disk in ET.fromstring(rig.hypervisor.xml[order.server_uuid]).iterfind("devices/disk"):
        boot = disk.find("boot")
        found.append((Path(disk.find("source").get("file")).name, disk.find("target").get("dev"), disk.get("device"),
                      boot.get("order") if boot is not None else None))
    return found
