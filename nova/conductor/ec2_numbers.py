"""Numbers in EC2 IDs, allocated when a resource is first named by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nova.conductor.engine.deps import Deps
from nova.db.server import ec2_ids
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.ec2 import IMAGE, INSTANCE, may_be_id


def numbers(deps: Deps, kind: str, ids: Sequence[str]) -> Mapping[str, int]:
    """Return id -> number for all IDs. One statement if all have numbers, three otherwise."""
    if not ids:
        return {}
    with deps.api.reading() as tx:
        found = ec2_ids.numbers(tx, kind, ids)
    missing = [one for one in dict.fromkeys(ids) if one not in found]
    if not missing:
        return found

    def write(tx: Connection) -> Mapping[str, int]:
        ec2_ids.give(tx, kind, missing)
        return ec2_ids.numbers(tx, kind, ids)
    return deps.api.transact(write)


def of_guest(deps: Deps, row: ServerRow) -> Mapping[str, int]:
    """Return the EC2 numbers of a guest and its images, for the guest's metadata."""
    images = [one for one in (row.image_id, row.kernel_id, row.ramdisk_id) if may_be_id(one)]
    return {**numbers(deps, INSTANCE, [row.uuid]), **numbers(deps, IMAGE, images)}
