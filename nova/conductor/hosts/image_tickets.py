"""Image tickets for hosts: each order that may need an image gets them when it is sent, for its host alone.

They are in no journal: a resumed operation, and a repeated call, gets new ones.
"""

from __future__ import annotations

import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from nova import errors
from nova.model.base import HostName, Json, Library
from nova.model.guest.orders import BuildOrder, GuestOrder, MoveOrder, RebuildOrder, RescueOrder, SnapshotOrder
from nova.model.image.image_tickets import READ, WRITE, ImageTicket, TicketFacts, host_key, key_id
from nova.model.image.images import Image
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.interface import Contract, Method
from nova.rpc.ticket_encryption import TicketCipher

LOG = logging.getLogger(__name__)

HostSecretOf = Callable[[HostName], str]  # raises host.NoSecret, which is Unavailable

#: Calls whose hosts may need an image: to create a disk, or to restore a disk's backing file.
READERS = frozenset(call.__name__ for call in (
    ComputeRPC.build_guests, ComputeRPC.start_guests, ComputeRPC.reboot_guests, ComputeRPC.resume_guests,
    ComputeRPC.rescue_guests, ComputeRPC.unrescue_guests, ComputeRPC.rebuild_guests, ComputeRPC.fetch_guests,
    ComputeRPC.finish_guests, ComputeRPC.return_guests, ComputeRPC.prepare_arrivals, ComputeRPC.land_guests))
WRITERS = frozenset({ComputeRPC.upload_snapshots.__name__})
CACHERS = frozenset({ComputeRPC.cache_images.__name__})


class TicketSettings(NamedTuple):
    """Settings of image tickets. ``servers``: addresses of the image proxies."""

    servers: tuple[str, ...]
    lifetime_s: int = 3600


class TicketMaker:
    """Maker of image tickets. ``host_secret``: the secret that authenticates a host."""

    def __init__(self, encrypt: TicketCipher, settings: TicketSettings, host_secret: HostSecretOf,
                 clock: Callable[[], float] = time.time) -> None:
        self._seal, self._settings, self._host_secret, self._clock = encrypt, settings, host_secret, clock

    def for_call(self, host: HostName, server: str = "") -> CallTickets:
        """Return the tickets for one call. ``server``: the server that they are for, if it is only one. Raises
        host.NoSecret, or the error of reading the secret."""
        return CallTickets(functools.partial(self._make, host, self._host_secret(host), server))

    def _make(self, host: HostName, secret: str, server: str, image_id: str, direction: str) -> ImageTicket:
        ticket_id, until = secrets.token_hex(16), int(self._clock()) + self._settings.lifetime_s
        key = host_key(secret, ticket_id)
        sealed = self._seal.encrypt(TicketFacts(id=ticket_id, image_id=image_id, direction=direction, host=host,
                                                until=until, host_key=key, server=server))
        return ImageTicket(id=ticket_id, image_id=image_id, direction=direction, until=until, sealed=sealed,
                           key_id=key_id(key), servers=self._settings.servers)


class CallTickets:
    """Tickets of one call: one for each image and direction, shared by all orders of the call."""

    def __init__(self, make: Callable[[str, str], ImageTicket]) -> None:
        self._make = functools.cache(make)

    def read(self, *images: Image | None) -> tuple[ImageTicket, ...]:
        """Return read tickets for the images that are given and have IDs."""
        return self._of((image.id for image in images if image is not None and image.id), READ)

    def read_parts(self, image: Image) -> tuple[ImageTicket, ...]:
        """Return read tickets for an image and for its kernel and ramdisk."""
        return self._of((one for one in (image.id, image.kernel_id, image.ramdisk_id) if one), READ)

    def write(self, image_id: str) -> tuple[ImageTicket, ...]:
        """Return a write ticket for an image whose data is uploaded."""
        return self._of((image_id,), WRITE)

    def _of(self, image_ids: Iterable[str], direction: str) -> tuple[ImageTicket, ...]:
        return tuple(self._make(image_id, direction) for image_id in dict.fromkeys(image_ids))


def _build(order: BuildOrder, tickets: CallTickets) -> BuildOrder:
    return msgspec.structs.replace(order, image_tickets=tickets.read(order.image, order.kernel, order.ramdisk))


def _around_build(order: GuestOrder | RebuildOrder | MoveOrder, tickets: CallTickets) -> Library:
    return order if order.build is None else msgspec.structs.replace(order, build=_build(order.build, tickets))


def _rescue(order: RescueOrder, tickets: CallTickets) -> RescueOrder:
    return msgspec.structs.replace(order, build=_build(order.build, tickets),
                                   image_tickets=tickets.read_parts(order.image))


def _upload(order: SnapshotOrder, tickets: CallTickets) -> SnapshotOrder:
    return msgspec.structs.replace(order, image_tickets=tickets.write(order.image_id))


#: Kind of an order -> function that returns the order with its tickets.
FILL: Mapping[type, Callable[..., object]] = {
    BuildOrder: _build, GuestOrder: _around_build, RebuildOrder: _around_build, MoveOrder: _around_build,
    RescueOrder: _rescue, SnapshotOrder: _upload}


class TicketedCalls:
    """Client with the methods of ``contract`` that adds image tickets to the calls that may need them."""

    def __init__(self, contract: type[Contract], client: object, maker: TicketMaker) -> None:
        self._maker = maker
        for name, method in contract.methods.items():
            ask = getattr(client, name)
            with_tickets = name in READERS | WRITERS | CACHERS
            setattr(self, name, functools.partial(self._call, method, ask) if with_tickets else ask)

    def _call(self, method: Method, ask: Callable[..., object], *args: object, **kwargs: object) -> object:
        arguments = dict(list(method.signature.bind(None, *args, **kwargs).arguments.items())[1:])
        return ask(**self._ticketed(arguments))

    def _ticketed(self, arguments: dict[str, Json]) -> dict[str, Json]:
        """Return the arguments with tickets; without them if no secret of the host is known. The host may not need the
        image, and otherwise reports the missing ticket."""
        orders, images = arguments.get("orders"), arguments.get("images")
        server = orders[0].server_uuid if orders and len(orders) == 1 else ""
        try:
            tickets = self._maker.for_call(arguments["host"], server)
        except errors.Unavailable as error:
            LOG.warning("host %s gets no image tickets: %s", arguments["host"], error.message)
            return arguments
        if images is not None:
            return {**arguments, "tickets": tickets.read(*images)}
        return {**arguments, "orders": tuple(FILL[type(order)](order, tickets) for order in orders or ())}


def first_secret(secrets_of: Callable[[HostName], Iterable[str]]) -> HostSecretOf:
    """Return a function that reads a host's secret; while the host changes it, the first of the valid ones."""
    def secret(host: HostName) -> str:
        found = next(iter(secrets_of(host)), "")
        if not found:
            raise errors.host.NoSecret(host=host)
        return found
    return secret
