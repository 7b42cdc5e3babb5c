"""Queries to a host without an order: consoles and diagnostics of its guests, and data about the host itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from nova import errors
from nova.compute.abilities import able
from nova.compute.guests import precache
from nova.compute.guests.build import ImagesOnHost
from nova.compute.host import Host, checked_uuid
from nova.model.base import HostName, utcnow
from nova.model.guest.guests import DevicePlace
from nova.model.guest.orders import ConsoleOutput
from nova.model.guest.orphans import StoredGuest
from nova.model.host.aggregates import CachedImage
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.server.diagnostics import Diagnostics
from nova.model.volumes import Connector
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

CONSOLE_BYTES = 100 * 1024  # maximum size of console text in a message


class HostInfo:
    """Mixin for ``ComputeService`` that answers queries; the service sets the attributes."""

    _host: Host
    _driver: Driver
    _images: ImagesOnHost | None

    def _check_host(self, given: HostName) -> None:
        raise NotImplementedError

    def _hold(self, tickets: Sequence[ImageTicket]) -> None:
        raise NotImplementedError

    def get_console_output(self, host: HostName, server_uuid: str, length: int | None) -> ConsoleOutput:
        """Return the guest's console output (see the contract), at most the last 100 KiB. ``length`` in lines; None:
        all. Raises host.Misaddressed, guest.NotFound, guest.NoConsole."""
        self._check_host(host)
        if self._driver.lifecycle.power_state(checked_uuid(server_uuid)) is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        if self._driver.consoles is None:
            raise errors.guest.NoConsole(uuid=server_uuid)
        text = _tail(self._driver.consoles.console_output(server_uuid, length))
        # exactly so many lines, without an empty one after the last line end: clients split the text at line ends
        return ConsoleOutput(text=text if length is None else text.removesuffix("\n"))

    def get_diagnostics(self, host: HostName, server_uuid: str) -> Diagnostics:
        """Return the guest's diagnostics (see the contract). Raises host.Misaddressed, guest.NotFound,
        host.NoDiagnostics."""
        self._check_host(host)
        if self._driver.lifecycle.power_state(checked_uuid(server_uuid)) is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        if self._driver.diagnosis is None:
            raise errors.host.NoDiagnostics(host=self._host.name)
        return self._driver.diagnosis.diagnostics(server_uuid)

    def device_places(self, host: HostName, server_uuid: str) -> Mapping[str, DevicePlace]:
        self._check_host(host)
        if self._driver.lifecycle.power_state(checked_uuid(server_uuid)) is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        places = self._driver.device_places
        return places.device_places(server_uuid) if places is not None else {}

    def volume_connector(self, host: HostName) -> Connector:
        """Return the volume connector of this host (see the contract). ``host``: this host's name, by which volumes
        show where they are used. Raises host.Misaddressed, host.Cannot."""
        self._check_host(host)
        return {**able(self._driver.volumes, self._host.name, "use volumes").connector(), "host": self._host.name}

    def kept_guest(self, host: HostName, server_uuid: str) -> StoredGuest:
        """Return the kept order of a guest on this host (see the contract). Raises host.Misaddressed, guest.NotFound,
        host.NoKeptOrders."""
        self._check_host(host)
        if self._driver.kept_orders is None:
            raise errors.host.NoKeptOrders(host=self._host.name)
        state = self._driver.lifecycle.power_state(checked_uuid(server_uuid))
        order = self._driver.kept_orders.kept_order(server_uuid)
        if state is None or order is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        return StoredGuest(order=order, power_state=state)

    def get_host_uptime(self, host: HostName) -> str:
        """Return the host's uptime in the format of uptime(1) (see the contract). Raises host.Misaddressed,
        host.NoUptime."""
        self._check_host(host)
        if self._driver.host_uptime is None:
            raise errors.host.NoUptime(host=self._host.name)
        return self._driver.host_uptime.uptime().line(utcnow())

    def change_host_power(self, host: HostName, action: str) -> str:
        self._check_host(host)
        if self._driver.host_power is None:
            raise errors.host.NoPowerActions(host=self._host.name)
        LOG.warning("host %s: %s, requested by an operator", self._host.name, action)
        return self._driver.host_power.change_host_power(action)

    def cache_images(self, host: HostName, images: tuple[Image, ...],
                     tickets: tuple[ImageTicket, ...] = ()) -> tuple[CachedImage, ...]:
        """Cache the images one after the other: a host has one connection to the image service, and other work to
        do."""
        self._check_host(host)
        self._hold(tickets)
        return tuple(precache.fetch(self._images, image) for image in images)

    def ping(self, host: HostName) -> str:
        """Return this host's name, regardless of the requested name (see the contract)."""
        return self._host.name

def _tail(text: str) -> str:
    """Return the end of the text that fits in a message."""
    encoded = text.encode()
    return text if len(encoded) <= CONSOLE_BYTES else encoded[-CONSOLE_BYTES:].decode(errors="ignore")
