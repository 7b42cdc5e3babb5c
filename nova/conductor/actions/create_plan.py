"""The decisions of a create: the columns of its servers, from the objects that its names resolve to.

Nothing here reads or writes: the same inputs give the same plan, and an invalid request is an error that names the
field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from nova import errors
from nova.conductor.actions import checks
from nova.conductor.actions.volume import create_volumes
from nova.conductor.actions.volume.create_volumes import FoundDevice
from nova.conductor.engine.deps import ConductorSettings
from nova.conductor.networking.back_end import Admitted
from nova.model.block_device import block_devices
from nova.model.flavor.flavors import Flavor
from nova.model.guest.orders import Disk
from nova.model.image.images import Image
from nova.model.quota.counting import classes
from nova.model.server.keypairs import Keypair
from nova.model.server.servers import STOP, LocalDisk, NewServer, ServerFacts, ServerMemo
from nova.model.server.states import TaskState, VmState
from nova.model.volumes import BlockDevice, as_large_as_root, local

ROOT_NAME = "/dev/vda"
MAX_HOSTNAME = 63
MAX_NAME = 255


class CreateLimits(NamedTuple):
    """Limits in force, and ``each``: what one server of the request counts against them. All by resource."""

    each: Mapping[str, int]
    project: Mapping[str, int]
    user: Mapping[str, int]


class CreateInputs(NamedTuple):
    """The objects that a request names. ``image``: of imageRef. ``described``: the image that describes the server's
    root disk, see :func:`described`. ``volumes``: its block devices, as the volume service has them."""

    flavor: Flavor
    image: Image | None
    described: Image | None
    keypair: Keypair | None
    disks: tuple[LocalDisk, ...]
    volumes: tuple[FoundDevice, ...]
    limits: CreateLimits
    network: Admitted


class CreatePlan(NamedTuple):
    """Contents of a create's servers. ``columns``: of each server's row, the same for all. ``devices``: its
    volumes, to be reserved or created in ``zone``. ``counted``: by resource class, for quota."""

    facts: ServerFacts
    counted: Mapping[str, int]
    limits: CreateLimits
    devices: tuple[BlockDevice, ...]
    zone: str | None
    network: Admitted
    columns: Mapping[str, object]


def described(image: Image | None, volumes: Sequence[FoundDevice]) -> Image | None:
    """Return the image that describes the root disk: the request's image, or without an id the boot volume's. The
    volume's contents are no longer an image's data."""
    root = next((one for one in volumes if one.device.boot_index == 0), None)
    return image if root is None else msgspec.structs.replace(root.image or image or Image(id=""), id="")


def plan_of(order: NewServer, found: CreateInputs, settings: ConductorSettings) -> CreatePlan:
    """Return the plan of a create. Raises errors of the kinds Invalid, Forbidden and OverQuota if no server can be
    created from the request."""
    if order.hostname and order.max_count > 1:
        raise errors.server.OneHostname(hostname=order.hostname, count=order.max_count)
    flavor, image = found.flavor, found.described
    devices = tuple(one.device for one in found.volumes)
    count = block_devices.count_local(found.disks, devices, flavor)
    if 0 <= settings.max_local_block_devices < count:
        raise errors.server.TooManyLocalDisks(count=count, most=settings.max_local_block_devices)
    checks.check_disk_of(image)
    checks.check_flavor(as_large_as_root(flavor, devices), image, order)
    checks.check_needs(settings, flavor, image)
    checks.check_items(order.metadata, order.files, found.limits.user)
    zone = create_volumes.zone_of(found.volumes, order.availability_zone or settings.default_schedule_zone, settings)
    kept = msgspec.structs.replace(flavor, projects=())  # independent of later changes to the flavor
    return CreatePlan(
        facts=ServerFacts(flavor=kept, image_id=image.id if image else "", availability_zone=zone),
        counted=classes(local(flavor, devices), image.properties if image else {}), limits=found.limits,
        devices=create_volumes.named(devices, ROOT_NAME, count), zone=zone, network=found.network,
        columns={**_of_request(order), **_of_image(order, image, settings), "flavor": kept,
                 "flavorid": kept.flavorid, "disks": _disks(found.disks, kept), "pinned_availability_zone": zone,
                 "disk_config": checks.disk_config(order, found.image),
                 "requested_networks": found.network.networks, "port_demands": found.network.demands or None,
                 "security_groups": found.network.security_groups,
                 "public_key": found.keypair.public_key if found.keypair else None,
                 "key_type": found.keypair.type if found.keypair else "ssh"})


def _of_request(order: NewServer) -> dict[str, object]:
    """Return the columns whose values are the request's own."""
    has_memo = order.client_token is not None or order.shutdown_behavior != STOP
    return {
        "description": order.description, "vm_state": VmState.BUILDING.value, "task_state": TaskState.SCHEDULING.value,
        "memo": ServerMemo(client_token=order.client_token, shutdown_behavior=order.shutdown_behavior)
        if has_memo else None,
        "root_device_name": ROOT_NAME, "key_name": order.key_name, "user_data": order.user_data,
        "files": order.files or None, "scheduler_hints": order.scheduler_hints or None,
        "trusted_certs": order.trusted_certs, "access_ip_v4": order.access_ip_v4, "access_ip_v6": order.access_ip_v6}


def _of_image(order: NewServer, image: Image | None, settings: ConductorSettings) -> dict[str, object]:
    """Return the columns that the request or else the image defines."""
    return {
        "image": image, "image_id": image.id if image else "",
        "kernel_id": order.kernel_id or (image.kernel_id if image else None) or "",
        "ramdisk_id": order.ramdisk_id or (image.ramdisk_id if image else None) or "",
        "config_drive": order.config_drive or checks.wants_drive(image) or settings.force_config_drive}


def _disks(local_disks: Sequence[LocalDisk], flavor: Flavor) -> tuple[Disk, ...] | None:
    """Return the ephemeral and swap disks of the request or its image, within the flavor's limits; None: the
    flavor's."""
    if not local_disks:
        return None
    ephemeral = [disk for disk in local_disks if disk.kind == "ephemeral"]
    swap = [disk for disk in local_disks if disk.kind == "swap"]
    sizes = [disk.size or flavor.ephemeral_gb for disk in ephemeral]
    if sum(sizes) > flavor.ephemeral_gb:
        raise errors.Invalid(f"Ephemeral disks requested are larger than the instance type allows: {sum(sizes)} GB "
                             f"of {flavor.ephemeral_gb} GB.")
    if sum(disk.size or flavor.swap_mb for disk in swap) > flavor.swap_mb:
        raise errors.Invalid(f"Swap drive requested is larger than instance type allows ({flavor.swap_mb} MB).")
    made = [Disk(kind="root", size_gb=flavor.root_gb)]
    made += [Disk(kind="ephemeral", index=index, size_gb=size, format=disk.format)
             for index, (size, disk) in enumerate(zip(sizes, ephemeral, strict=True))]
    made += [Disk(kind="swap", size_mb=disk.size or flavor.swap_mb) for disk in swap]
    return tuple(made)


# -- names


def rows_of(order: NewServer, plan: CreatePlan, server_uuids: Sequence[str]) -> list[dict[str, object]]:
    """Return each server's row: its own columns and the common ones."""
    named = zip(server_uuids, _names(order, server_uuids), strict=True)
    return [{**plan.columns, "uuid": uuid, "name": name, "hostname": hostname, "launch_index": index}
            for index, (uuid, (name, hostname)) in enumerate(named)]


def sane_hostname(name: str, fallback: str) -> str:
    """Return a host name derived from a display name: lower case letters, digits and dashes (RFC 1123), at most 63.

    Dots become dashes too: ``web.1`` is not a host ``web`` in a domain ``1``.
    """
    ascii_name = name.encode("ascii", "ignore").decode()
    words = re.sub(r"[^\w-]+", "", re.sub(r"[ _.]", "-", ascii_name)).lower().strip("-")
    return words[:MAX_HOSTNAME].strip("-") or fallback


def _names(order: NewServer, server_uuids: Sequence[str]) -> list[tuple[str, str]]:
    """(name, host name) of each server: several get the suffix ``-1``, ``-2`` ... on both, and cannot set a host
    name."""
    if order.max_count == 1:
        return [(order.name, order.hostname or sane_hostname(order.name, f"Server-{server_uuids[0]}"))]
    base = sane_hostname(order.name, "")
    return [(_numbered(order.name, index, MAX_NAME),
             _numbered(base, index, MAX_HOSTNAME) if base else f"Server-{uuid}")
            for index, uuid in enumerate(server_uuids, 1)]


def _numbered(text: str, index: int, most: int) -> str:
    """Return ``text-index``, with the text cut so that the result is at most ``most`` characters long."""
    return f"{text[:most - len(str(index)) - 1]}-{index}"
