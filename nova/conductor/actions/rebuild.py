"""Rebuild a server: create new disks from an image, on its own host and with its addresses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from nova import context, errors
from nova.conductor.actions import checks
from nova.conductor.actions.checks import check_fits, check_items, keypair, usable_image, wants_drive
from nova.conductor.actions.endings import powered
from nova.conductor.actions.volume import rebuild_root
from nova.conductor.actions.volume.rebuild_root import RootRebuild, RootReimage, overwritten
from nova.conductor.engine.begin import row_of, start_operation_on_host
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.quota import quota
from nova.conductor.steps.guests import GuestStep, build_order, fence
from nova.conductor.steps.placement import no_valid_host, plain_request_of
from nova.conductor.steps.volumes import connected
from nova.db.host import services
from nova.db.quota import ledger
from nova.db.server import servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection
from nova.db.sql.types import utc_now
from nova.model.base import Value
from nova.model.guest.orders import RebuildOrder
from nova.model.image.images import Image
from nova.model.placement.providers import ResourceRequest
from nova.model.quota.counting import classes
from nova.model.scheduling.decisions import HostRequirements, PlacementRequest, Resources
from nova.model.server.server_orders import RebuildServer
from nova.model.server.servers import ServerDetail, ServerFacts, ServerQuery
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import as_large_as_root, local
from nova.rpc.contracts.compute import ComputeRPC

#: Fields of the order that are copied to columns of the same name.
PLAIN = ("name", "description", "hostname", "user_data", "access_ip_v4", "access_ip_v6", "disk_config",
         "trusted_certs")


class OfImage(Value):
    """Columns of a server's row that describe its image."""

    image: Image | None
    image_id: str
    kernel_id: str
    ramdisk_id: str


class Rebuild(RootReimage):
    """Arguments of a rebuild. ``old``: the image columns before it."""

    old: OfImage
    other_image: bool = False
    keep_ephemeral: bool = False
    was_off: bool = False


class Rebuilds:
    """The rebuild call of ConductorRPC. ``detail`` returns the server after its row is written."""

    def __init__(self, deps: Deps, detail: Callable[[ServerQuery], ServerDetail]) -> None:
        self.deps, self._detail = deps, detail

    def rebuild_server(self, order: RebuildServer) -> ServerDetail:
        """Start to rebuild a server and return it as it will be after the rebuild: its row is already written.

        Raises server.NotFound, server.WrongState; server.BadImage, server.BadImageProperty, server.FlavorTooSmall,
        server.ImageAndFlavor, server.RebuildOtherTopology, server.DiskConfigDisabled; server.BadKeypair, OverQuota; and
        the errors of rebuild_root.check for a server that boots from a volume.
        """
        row = row_of(self.deps, order.uuid)
        image = usable_image(self.deps, order.image_id)
        root = rebuild_root.check(self.deps, row, order, image)
        check_fits(as_large_as_root(row.flavor, row.volumes or ()), image)
        checks.check_same_place(self.deps, row.flavor, row.image, image)
        if "disk_config" in order.fields:
            checks.check_disk_config(order.disk_config, image)
        if root is not None:  # the volume's contents are no longer an image's data
            image = msgspec.structs.replace(image, id="")
        checks.check_disk_of(image)
        changes = {**_of_image(image, row), **{name: getattr(order, name) for name in PLAIN if name in order.fields},
                   **self._checked(order)}
        entry = self.deps.cell.transact(lambda tx: self._begin(tx, order, changes, root))
        answer = self._detail(ServerQuery(uuid=order.uuid))
        self.deps.runner.start([entry], secrets={"admin_password": order.admin_password})
        return answer

    def _checked(self, order: RebuildServer) -> Mapping[str, object]:
        """Return the row changes that need a lookup or a quota check."""
        who = context.current()
        whose = quota.owner(self.deps, who.project_id, who.user_id)
        with self.deps.api.reading() as tx:
            key = keypair(tx, who.user_id or "", order.key_name)
            _project, limits = quota.effective(self.deps, tx, whose)
        check_items(order.metadata, order.files, limits)
        changes: dict[str, Any] = {}
        if "files" in order.fields:
            changes["files"] = order.files or None
        if "key_name" in order.fields:
            changes |= {"key_name": order.key_name, "public_key": key.public_key if key else None,
                        "key_type": key.type if key else "ssh"}
        return changes

    def _begin(self, tx: Connection, order: RebuildServer, changes: Mapping[str, object], root: RootRebuild | None
               ) -> states.Entry:
        """Write the changed fields in the same transaction as the journal's row, so that any conductor that runs it has
        them."""
        def arguments(row: ServerRow) -> Rebuild:
            old = OfImage(**{name: getattr(row, name) for name in OfImage.__struct_fields__})
            return Rebuild(old=old, other_image=root.other_image if root else order.image_id != row.image_id,
                           keep_ephemeral=order.preserve_ephemeral, was_off=row.vm_state == VmState.STOPPED.value,
                           metadata=_change_metadata(tx, order), **(root.arguments if root else {}))
        entry = start_operation_on_host(self.deps, tx, "rebuild", order.uuid, arguments)
        servers.update(tx, order.uuid, changes)
        return entry


def _of_image(image: Image, row: ServerRow) -> Mapping[str, object]:
    return {"image": image, "image_id": image.id, "kernel_id": image.kernel_id or "",
            "ramdisk_id": image.ramdisk_id or "", "config_drive": row.config_drive or wants_drive(image)}


def _change_metadata(tx: Connection, order: RebuildServer) -> Mapping[str, str]:
    """Return all of the server's metadata after the rebuild: requested metadata replaces the old."""
    now = servers.children(tx, [order.uuid])[0].get(order.uuid, {})
    if "metadata" not in order.fields:
        return now
    servers.change_metadata(tx, order.uuid, order.metadata, [key for key in now if key not in order.metadata])
    return dict(order.metadata)


NOTHING = Resources(vcpus=0, memory_mb=0, disk_gb=0)  # the server already has its resources


class RebuildScheduled(Step):
    """Ask the scheduler's filters whether the server's own host suits its new image. Undo: restore the old image in the
    row, unless the guest has already changed."""

    uses = ("cell", "cells", "scheduler", "settings")
    event = "rebuild_server"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        with deps.cell.reading() as tx:
            enabled = services.enabled_hosts(tx)
        return [self._asked(deps, op) if op.asked(Rebuild).other_image and op.server.host in enabled else {}
                for op in ops]

    @staticmethod
    def _asked(deps: Deps, op: Op) -> Result:
        """Ask the scheduler. (Hosts that accept no new servers are not checked: a rebuild is not a new server.)"""
        [selection] = deps.scheduler.select_hosts(_request(deps, op))
        if selection.hosts:
            return {}
        return no_valid_host(op, selection)

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        if any(overwritten(op) or any(event.step == "RebuildGuests" for event in op.entry.history) for op in ops):
            return {}
        [op] = ops
        columns = msgspec.structs.asdict(op.asked(Rebuild).old)
        op.see(**columns)
        return columns


def _request(deps: Deps, op: Op) -> PlacementRequest:
    asked = plain_request_of(deps, [op])
    return msgspec.structs.replace(
        asked, resources=NOTHING, requirements=_traits_alone(asked.requirements), host=op.server.host,
        node=op.server.node, force=False, exclude=(), availability_zone=None, alternates=0, rebuild=True)


def _traits_alone(requirements: HostRequirements | None) -> HostRequirements | None:
    """Return only the traits that the new image or the flavor requires of the node: the server holds its resources
    already."""
    unnamed = [msgspec.structs.replace(group, resources={}) for group in requirements.request.groups if not group.suffix
               ] if requirements else []
    if not any(group.required or group.forbidden for group in unnamed):
        return None
    return HostRequirements(request=ResourceRequest(groups=tuple(unnamed)))


class CountAsRebuilt(Step):
    """Record the server's new image in the quota ledger, outside its cell."""

    uses = ("api",)
    pure = True

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        for op in ops:
            facts = ServerFacts(flavor=op.server.flavor, image_id=op.server.image_id,
                                availability_zone=op.server.pinned_availability_zone)
            needed = classes(local(op.server.flavor, op.server.volumes),
                             op.server.image.properties if op.server.image else {})
            deps.api.transact(functools.partial(ledger.count_as, server_uuid=op.uuid, epoch=op.entry.epoch,
                                                counted={"facts": facts, "classes": needed}))
        return [{} for _ in ops]


class RebuildGuests(GuestStep):
    """Order the host to rebuild the guest; a server that was off stays off."""

    call, event, plugs = ComputeRPC.rebuild_guests, "compute_rebuild_instance", True

    def order(self, deps: Deps, op: Op) -> RebuildOrder:
        asked = op.asked(Rebuild)
        return RebuildOrder(
            server_uuid=op.uuid, fence=fence(op),
            build=connected(deps, op, build_order(deps, op.server, op, fence(op))),
            keep_ephemeral=asked.keep_ephemeral, start=not asked.was_off)


def rebuilt(ops: Sequence[Op]) -> Mapping[str, object]:
    """Keep a stopped server stopped, make any other active, and clear an earlier fault."""
    after = {op.uuid: VmState.STOPPED if op.asked(Rebuild).was_off else VmState.ACTIVE for op in ops}
    return {**powered(ops), "vm_state": PerServer({uuid: state.value for uuid, state in after.items()}),
            "launched_at": utc_now(), "fault": None}


REBUILD_SERVER = Workflow(
    "rebuild",                                                # the request already wrote the server's new fields
    RebuildScheduled(),                                       # does the host suit the image? undo: the old image
    CountAsRebuilt(),                                         # the ledger's facts
    *rebuild_root.steps(),                                    # write the image to the root volume; undo: until it is
    RebuildGuests(task=TaskState.REBUILD_SPAWNING),           # ComputeRPC.rebuild_guests: cannot be undone
    again_on=(errors.Unavailable,),
    ending=rebuilt,
    asks=Rebuild,
)
