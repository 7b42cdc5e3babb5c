"""Volumes on a walk: servers that boot from volumes, attaches and detaches, a volume service that is away, refuses, or
whose answers are lost; and the invariants of its attachments when the cloud is idle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from nova import errors
from nova.conductor import volume_cleanups
from nova.db.models import cell as tables
from nova.model.server.server_orders import CreateImage
from nova.model.volumes import AVAILABLE, BLANK, IN_USE, RESERVED, AttachVolume, BlockDevice, snapshot_name
from tests.fakes.volumes import FakeVolumes
from tests.fakes.walking_networks import WalkingNetworks

VOLUMES = 8
#: Calls that change resources; and calls that only read.
CALLS = ("reserve", "attach", "connect", "complete", "delete_attachment", "begin_detaching", "roll_detaching", "create",
         "delete", "get", "list_attachments", "get_attachment", "reimage", "create_snapshot", "find_snapshots",
         "get_snapshot", "delete_snapshot")
ROUNDS = 5  # of the periodic job, which handles due cleanups in batches


class WalkingVolumes(WalkingNetworks):
    weights = {"attach_volume": 6, "detach_volume": 5, "create_image_stopped": 5}
    recorded = frozenset({"attach_volume", "detach_volume"})
    faults = ("volumes", "volumes", "volumes")
    meanwhile = ("attach_volume", "detach_volume")

    def __init__(self, cloud: Any, rng: random.Random) -> None:
        super().__init__(cloud, rng)
        self.service: FakeVolumes = cloud.volume_service
        self.volumes = [self.service.add(bootable=True) for _ in range(VOLUMES)]
        self.actions = {"attach_volume": self._attach, "detach_volume": self._detach,
                        "create_image_stopped": self._image}

    # -- actions

    def requested(self) -> dict[str, Any]:
        """Return the volumes of a new server: a boot volume, a data volume, or none."""
        free = [one for one in self.volumes if self.service.status(one) == AVAILABLE]
        kind = self.rng.choice(("none", "root", "data", "blank"))
        if kind == "none" or not free:
            return {}
        if kind == "blank":
            return {"volumes": (BlockDevice(source=BLANK, size_gb=1, delete_on_termination=self.rng.random() < 0.5),)}
        volume = self.rng.choice(free)
        device = BlockDevice(source_id=volume, volume_id=volume, boot_index=0 if kind == "root" else None)
        return {"volumes": (device,), **({"image_id": ""} if kind == "root" else {})}

    def _attach(self, uuid: str) -> None:
        self.cloud.control.attach_volume(uuid, AttachVolume(volume_id=self.rng.choice(self.volumes)), False)

    def _detach(self, uuid: str) -> None:
        self.cloud.control.detach_volume(uuid, self.one_of(self.cloud.server(uuid).volumes or ()).volume_id)

    def _image(self, uuid: str) -> None:
        self.cloud.control.create_image(CreateImage(uuid=uuid, name="kept", stopped=True))

    # -- failures

    @property
    def troubled(self) -> bool:  # type: ignore[override]
        return bool(self.service.fails or self.service.lost)

    def arm(self, kind: str) -> str:
        call, how = self.rng.choice((*CALLS, "all")), self.rng.choice(("away", "lost", "refused"))
        error = errors.volume.Refused(reason="it says no") if how == "refused" else errors.Unavailable(
            "the volume service did not answer")
        place = self.service.lost if how == "lost" else self.service.fails
        place.update(dict.fromkeys(CALLS if call == "all" else (call,), error))
        return f"the volume service: {call} {how}"

    def revive(self) -> None:
        self.service.fails.clear()
        self.service.lost.clear()

    def rest(self) -> None:
        """Make all cleanups due, and run them."""
        for _ in range(ROUNDS):
            self.cloud.write("cell", sa.update(tables.volume_cleanups).values(due_at=sa.text("'2020-01-01 00:00:00'")))
            for part in self.cloud.parts:
                volume_cleanups.run(part.deps)

    # -- invariants

    def wrong(self) -> Iterator[str]:
        live = self.live()
        yield from self._recorded(live)
        yield from self._statuses(live)
        yield from self._guests(live)
        yield from self._snapshots()

    def _recorded(self, live: list[Any]) -> Iterator[str]:
        """Check that the service has exactly the attachments of the records, and that a volume has one server."""
        ours = {one.attachment_id: (row.uuid, one.volume_id) for row in live for one in row.volumes or ()}
        theirs = {one.id: (one.server_id, one.volume_id) for one in self.service.attachments.values()}
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                yield f"attachment {name}: {ours.get(name)} in the record, {theirs.get(name)} at the volume service"
        rows = self.cloud.rows("cell", sa.select(tables.volume_holders))
        holders = {(one.volume_id, one.server_uuid) for one in rows}
        if holders != {(volume, server) for server, volume in ours.values()}:
            yield f"volumes are held as {sorted(holders)}, and servers have {sorted(ours.values())}"
        yield from (f"server {row.uuid} is between two hosts with {one}" for row in live for one in row.volumes or ()
                    if one.next_attachment_id)

    def _statuses(self, live: list[Any]) -> Iterator[str]:
        held = {one.volume_id: row for row in live for one in row.volumes or ()}
        for volume in self.service.volumes.values():
            row = held.get(volume.id)
            should = {AVAILABLE} if row is None else {IN_USE} if row.host and row.vm_state != "error" else {
                IN_USE, RESERVED}
            if volume.status not in should:
                yield f"volume {volume.id} is {volume.status}" + (
                    f", of server {row.uuid} ({row.vm_state}) on {row.host}" if row else ", and no server's")

    def _guests(self, live: list[Any]) -> Iterator[str]:
        """Check that guests have the volumes of the records, and that only the server's host uses a volume."""
        guests = self.cloud.guests()
        for row in live:
            guest = guests.get((row.host, row.uuid))
            if guest is None or not guest.defined or row.vm_state == "error":
                continue
            has, should = sorted(guest.volumes), sorted(one.volume_id for one in row.volumes or ())
            if has != should:
                yield f"the guest of {row.uuid} ({row.vm_state}) on {row.host} has volumes {has}, its server {should}"
            for volume in should:
                if self.service.hosts(volume) != [row.host]:
                    yield f"volume {volume} of {row.uuid} on {row.host} may be used by {self.service.hosts(volume)}"

    def _snapshots(self) -> Iterator[str]:
        """Check that all snapshots, made for images of stopped servers, belong to a complete image."""
        named = [image.properties.get("block_device_mapping", "") for image in self.cloud.image_service.images.values()
                 if image.status == "active"]
        yield from (f"snapshot {one.id} ({one.name}) is of no image" for one in self.service.snapshots.values()
                    if one.name.startswith(snapshot_name("")) and not any(one.id in mapping for mapping in named))

    def left(self) -> Iterator[str]:
        yield from (f"attachment {one}" for one in self.service.attachments)
        yield from (f"holder {one}" for one in self.cloud.rows("cell", sa.select(tables.volume_holders)))


__all__ = ["WalkingVolumes"]
