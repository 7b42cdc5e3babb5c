"""Orders to hosts, written from a server's row: whole, so that a host looks nothing up behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments
from nova.db import claims, servers
from nova.db.server_row import ServerRow
from nova.db.servers import instance_name
from nova.model.images import Image
from nova.model.orders import BuildOrder, Disk, Fence, GuestOrder
from nova.model.port_requests import KINDS
from nova.model.requirements import may_hold
from nova.model.topology import Packing

if TYPE_CHECKING:
    from nova.conductor.engine.workflow import Op

ORDERS = ("api", "cell", "compute", "settings")  # members of Deps that an order is written from and sent by


def disks_of(server: ServerRow) -> tuple[Disk, ...]:
    """The local disks: those the request named, else the flavor's root, ephemeral and swap."""
    if server.disks:
        return tuple(server.disks)
    flavor = server.flavor
    disks = [Disk(kind="root", size_gb=flavor.root_gb)]
    if flavor.ephemeral_gb:
        disks.append(Disk(kind="ephemeral", size_gb=flavor.ephemeral_gb))
    if flavor.swap_mb:
        disks.append(Disk(kind="swap", size_mb=flavor.swap_mb))
    return tuple(disks)


def build_order(deps: Deps, server: ServerRow, op: Op, fence: Fence, host: str = "",
                leaving: bool = False) -> BuildOrder:
    """All a host (the server's, unless another is named) needs to build this guest. ``leaving``: a move is to end
    there, which holds the server's place."""
    settings, secrets = deps.settings, op.secrets
    return BuildOrder(
        server_uuid=server.uuid, id=server.id, name=server.name, hostname=server.hostname or "",
        instance_name=instance_name(settings.instance_name_template, server.id, server.uuid),
        project_id=server.project_id, user_id=server.user_id, fence=fence, flavor=server.flavor, image=server.image,
        kernel=_part(server.kernel_id, "aki"), ramdisk=_part(server.ramdisk_id, "ari"),
        node=op.progress.node or server.node or "", disks=disks_of(server), interfaces=server.interfaces or (),
        metadata=_metadata(deps, server, op), key_name=server.key_name, public_key=server.public_key,
        key_type=server.key_type, user_data=server.user_data,
        config_drive=server.config_drive,
        admin_password=secrets.get("admin_password"), availability_zone=server.availability_zone,
        launch_index=server.launch_index, reservation_id=server.reservation_id,
        security_groups=server.security_groups or (), files=server.files or {}, created_at=server.created_at,
        packing=packing_at(deps, server, host or op.progress.host or server.host or "", leaving))


def _metadata(deps: Deps, server: ServerRow, op: Op) -> Mapping[str, str]:
    """The user's own, for a config drive: an operation that begins with it has it, others read it for that alone."""
    told: Mapping[str, str] | None = op.asked(Arguments).metadata
    if told is not None or not server.config_drive:
        return told or {}
    with deps.cell.reading() as tx:
        return servers.children(tx, [server.uuid])[0].get(server.uuid, {})


def guarded(deps: Deps, orders: Sequence[BuildOrder], servers: Sequence[ServerRow]) -> tuple[BuildOrder, ...]:
    """The orders with what may reach the guests, for a host that does not know them yet. ``servers``: their rows."""
    filters = deps.networking.firewalls_of(servers)
    return tuple(msgspec.structs.replace(order, firewall=filters.get(order.server_uuid)) for order in orders)


def packing_at(deps: Deps, server: ServerRow, host: str, leaving: bool = False) -> Packing | None:
    """What the server holds of the host's cells and devices: asked for only where it can hold something."""
    direct = any(one.vnic_type in KINDS for one in server.port_demands or ())
    if not direct and not may_hold(server.flavor, server.image.properties if server.image else {}):
        return None
    with deps.api.reading() as tx:
        return claims.packing_at(tx, server.uuid, host, leaving)


def guest_order(deps: Deps, op: Op, fence: Fence, reboot: str = "soft", leaving: bool = False) -> GuestOrder:
    """An order for a guest that exists; with what it is made of, so that the host can define it again."""
    server, settings = op.server, deps.settings
    return GuestOrder(
        server_uuid=server.uuid, fence=fence, reboot=reboot, timeout_s=settings.shutdown_timeout,
        instance_name=instance_name(settings.instance_name_template, server.id, server.uuid),
        build=build_order(deps, server, op, fence, server.host, leaving) if server.host else None,
        interfaces=server.interfaces or ())


def _part(image_id: str, kind: str) -> Image | None:
    return Image(id=image_id, disk_format=kind, container_format=kind) if image_id else None
