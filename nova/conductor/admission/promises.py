"""Actions that some servers are refused, for what their image and flavor promise them."""

from __future__ import annotations

from typing import Any

import msgspec

from nova import errors
from nova.conductor.engine.deps import World
from nova.db import servers
from nova.db.engine import Connection
from nova.model import demands
from nova.model.flavors import Flavor
from nova.model.images import Image
from nova.model.topology import GuestTopology
from nova.model.wishes import DEVICES, Needs, needs_of


class NotForThisServer(errors.Conflict):
    code, message = "server.not_for_it", "Cannot '{action}' instance {server}: it {has}."


class OtherTopology(errors.Invalid):
    code = "rebuild.other_topology"
    message = ("Image {image_id} can not be used: it asks for other NUMA nodes, dedicated processors or pages than the "
               "server has. A rebuild keeps them; resize the server, or use an image that asks for the same.")


class NoSuchGuest(errors.Invalid):
    code, message = "server.image_and_flavor", "{name}={value} is not possible: {reason}."


def check_kept(tx: Connection, action: str, uuid: str) -> None:
    """NotForThisServer. One statement, and none for most actions."""
    if action not in demands.BROKEN_BY:
        return
    row: Any = servers.rows_of(tx, [uuid])[uuid]
    broken = demands.broken(action, row.image.properties if row.image else {}, row.flavor.extra_specs)
    if broken is not None:
        raise NotForThisServer(action=action, server=uuid, has=broken)


def check_together(flavor: Flavor, image: Image) -> None:
    """NoSuchGuest: the flavor and the image contradict each other, so that no host could make the guest."""
    found = demands.conflict(image.properties, flavor.extra_specs)
    if found is not None:
        raise NoSuchGuest(**found._asdict())


def check_needs(world: World, flavor: Flavor, image: Image | None) -> Needs:
    """What they ask of a host. Invalid: no host could give it, or it is not defined (see nova.model.wishes)."""
    return needs_of(flavor, image.properties if image else {}, world.settings.pci_aliases)


def check_same_place(world: World, flavor: Flavor, old: Image | None, image: Image) -> None:
    """OtherTopology: with this image, the server would have to be packed anew on its host. Invalid: no host could give
    what it asks for. Its devices stay as they are, whatever their aliases mean by now."""
    specs = {name: value for name, value in flavor.extra_specs.items() if name != DEVICES}
    bare = msgspec.structs.replace(flavor, extra_specs=specs)
    now, then = (_guest(check_needs(world, bare, one)) for one in (old, image))
    if now != then:
        raise OtherTopology(image_id=image.id)


def _guest(needs: Needs) -> GuestTopology | None:
    return needs.wishes.topology.guest if needs.wishes else None
