"""Images of servers that boot from volumes: snapshots of all volumes, and an image without data that lists them.

The image is complete when the call returns. The user's own token is used, so that the user owns the image and the
snapshots. A failure half way is undone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.db.server.server_row import ServerRow
from nova.model.base import Json
from nova.model.image.images import NewImage
from nova.model.server.states import VmState
from nova.model.volumes import SNAPSHOT, VOLUME, BlockDevice, NewVolumeSnapshot, VolumeSnapshot

LOG = logging.getLogger(__name__)

MAPPING = "block_device_mapping"
STATES = (VmState.ACTIVE.value, VmState.STOPPED.value, VmState.PAUSED.value, VmState.SUSPENDED.value)


def make(deps: Deps, row: ServerRow, image: NewImage) -> None:
    """Create the snapshots and the image. Raises server.WrongState; volume.SnapshotsFull; errors of the volume and
    image services."""
    check(deps, row)
    made: list[tuple[BlockDevice, VolumeSnapshot]] = []
    with failures.on_failure(lambda: _take_back(deps, [snapshot.id for _device, snapshot in made]),
                             on=errors.NovaError):
        for device in row.volumes or ():
            name = f"snapshot for {image.name}"[:255]
            new = NewVolumeSnapshot(volume_id=device.volume_id, name=name, force=True)
            made.append((device, deps.volumes.create_snapshot(new, as_user=True)))
        whole = without_data(row, image)
        properties = {**whole.properties, MAPPING: mapping(made)}
        deps.images.create(msgspec.structs.replace(whole, properties=properties), as_user=True)
        deps.images.send(image.id, ())  # data of length 0: else it would stay queued


def without_data(row: ServerRow, image: NewImage) -> NewImage:
    """Return the image's record, as far as it is known before there are snapshots."""
    properties = {**image.properties, "bdm_v2": "True", "root_device_name": row.root_device_name or "/dev/vda"}
    return msgspec.structs.replace(image, properties=properties, disk_format="raw", container_format="bare",
                                   min_disk_gb=0)


def mapping(made: Sequence[tuple[BlockDevice, VolumeSnapshot]]) -> str:
    """Return the value of the image's property MAPPING: JSON, an entry for each device."""
    return json.dumps([_entry(device, snapshot) for device, snapshot in made])


def check(deps: Deps, row: ServerRow) -> None:
    """Check the server's state and the snapshot quota. Raises server.WrongState; volume.SnapshotsFull; errors of the
    volume service."""
    for attribute, value, right in (("vm_state", row.vm_state, row.vm_state in STATES),
                                    ("task_state", row.task_state, row.task_state is None)):
        if not right:
            raise errors.server.WrongState(action="createImage", server=row.uuid, attribute=attribute, value=value)
    limits = deps.volumes.limits(as_user=True)
    if limits.snapshots_most is not None and limits.snapshots_used + len(row.volumes or ()) > limits.snapshots_most:
        raise errors.volume.SnapshotsFull(used=limits.snapshots_used, most=limits.snapshots_most)


def _entry(device: BlockDevice, snapshot: VolumeSnapshot) -> dict[str, Json]:
    """Return an entry of an image's ``block_device_mapping`` (Compute API guide, block device mapping).

    The size is the volume service's: the volume may have grown without nova's knowledge, and a volume made from its
    snapshot cannot be smaller.
    """
    return {"source_type": SNAPSHOT, "destination_type": VOLUME, "snapshot_id": snapshot.id,
            "boot_index": device.boot_index, "device_name": device.device_name,
            "volume_size": snapshot.size_gb or device.size_gb,
            "delete_on_termination": device.delete_on_termination, "disk_bus": device.bus,
            "device_type": device.device_type, "tag": device.tag}


def _take_back(deps: Deps, snapshots: Sequence[str]) -> None:
    for snapshot in snapshots:
        with failures.best_effort(LOG, "image creation failed and its snapshot %s could not be deleted: %s", snapshot):
            deps.volumes.delete_snapshot(snapshot, as_user=True)
