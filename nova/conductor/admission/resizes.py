"""What a resize may ask for."""

from __future__ import annotations

from typing import Any

import msgspec

from nova import errors
from nova.conductor.admission.servers import BadFlavor, check_flavor
from nova.conductor.engine.deps import World
from nova.db import flavors
from nova.model.base import Scope
from nova.model.flavors import Flavor
from nova.model.orders import Disk
from nova.model.server_orders import ResizeServer


class SameFlavor(errors.Invalid):
    code, message = "resize.same_flavor", "When resizing, instances must change flavor!"


class DiskWouldShrink(errors.Invalid):
    code = "resize.disk_would_shrink"
    message = "Server disk was unable to be resized because: {reason}"


def wanted(world: World, row: Any, order: ResizeServer) -> Flavor:
    """The flavor, as the server's project sees it. Invalid: it does not, or the flavor is disabled."""
    with world.api.reading() as tx:
        try:
            found = flavors.get(tx, order.flavor_id, Scope(project_id=row.project_id))
        except errors.NotFound:
            raise BadFlavor(flavor_id=order.flavor_id) from None
    return msgspec.structs.replace(found, projects=())


def check(row: Any, flavor: Flavor, order: ResizeServer) -> None:
    """SameFlavor; DiskWouldShrink; FlavorTooSmall for the server's image; Forbidden: a zero disk."""
    old = row.flavor
    if flavor.flavorid == old.flavorid:
        raise SameFlavor()
    if old.root_gb and not flavor.root_gb:
        raise DiskWouldShrink(reason="Resize to zero disk flavor is not allowed.")
    if flavor.root_gb < old.root_gb:
        raise DiskWouldShrink(reason=f"Resize to a smaller disk is not allowed ({old.root_gb} GB to "
                                     f"{flavor.root_gb} GB).")
    ephemeral, swap = _asked(row.disks or (), "ephemeral", "size_gb"), _asked(row.disks or (), "swap", "size_mb")
    if flavor.ephemeral_gb < max(old.ephemeral_gb, ephemeral):
        raise DiskWouldShrink(reason=f"Resize to a smaller ephemeral disk is not allowed ({old.ephemeral_gb} GB to "
                                     f"{flavor.ephemeral_gb} GB).")
    if flavor.swap_mb < swap:
        raise DiskWouldShrink(reason=f"The server was asked for with {swap} MB of swap, the flavor has "
                                     f"{flavor.swap_mb} MB.")
    check_flavor(flavor, row.image, order)


def _asked(disks: tuple[Disk, ...], kind: str, size: str) -> int:
    """How much of a kind the server's own request named."""
    return sum(getattr(disk, size) for disk in disks if disk.kind == kind)


__all__ = ["DiskWouldShrink", "SameFlavor", "check", "wanted"]
