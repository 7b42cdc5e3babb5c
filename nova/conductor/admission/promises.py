"""Actions that some servers are refused, for what their image and flavor promise them."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.db import servers
from nova.db.engine import Connection
from nova.model import demands
from nova.model.flavors import Flavor
from nova.model.images import Image


class NotForThisServer(errors.Conflict):
    code, message = "server.not_for_it", "Cannot '{action}' instance {server}: it {has}."


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
