"""What a host is asked without an order: its guests' consoles and numbers, and things about the host itself."""

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
from nova.model.guest.strangers import KeptGuest
from nova.model.host.aggregates import CachedImage
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.server.diagnostics import Diagnostics
from nova.model.volumes import Connector
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

CONSOLE_BYTES = 100 * 1024  # a message's worth of console text


class HostInfo:
    """The part of the service that answers questions; base of ``ComputeService``, which sets the attributes."""

    _host: Host
    _driver: Driver
    _images: ImagesOnHost | None

    def _check_host(self, given: HostName) -> None:
        raise NotImplementedError

    def _hold(self, tickets: Sequence[ImageTicket]) -> None:
        raise NotImplementedError

    def get_console_output(self, host: HostName, server_uuid: str, length: int | None) -> ConsoleOutput:
        """See the contract. ``length`` in lines; None: all. Never more than the last 100 KiB. host.Misaddressed,
        guest.NotFound, guest.NoConsole."""
        self._check_host(host)
        if self._driver.lifecycle.power_state(checked_uuid(server_uuid)) is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        if self._driver.consoles is None:
            raise errors.guest.NoConsole(uuid=server_uuid)
        text = _tail(self._driver.consoles.console_output(server_uuid, length))
        # so many lines, and none that is empty after the last one's end: clients split the text at line ends
        return ConsoleOutput(text=text if length is None else text.removesuffix("\n"))

    def get_diagnostics(self, host: HostName, server_uuid: str) -> Diagnostics:
        """See the contract. host.Misaddressed, guest.NotFound, host.NoDiagnostics."""
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
        """See the contract. ``host``: this host's name, by which volumes show where they are used. host.Misaddressed,
        host.Cannot."""
        self._check_host(host)
        return {**able(self._driver.volumes, self._host.name, "use volumes").connector(), "host": self._host.name}

    def kept_guest(self, host: HostName, server_uuid: str) -> KeptGuest:
        """See the contract. host.Misaddressed, guest.NotFound, host.NoKeptOrders."""
        self._check_host(host)
        if self._driver.kept_orders is None:
            raise errors.host.NoKeptOrders(host=self._host.name)
        state = self._driver.lifecycle.power_state(checked_uuid(server_uuid))
        order = self._driver.kept_orders.kept_order(server_uuid)
        if state is None or order is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        return KeptGuest(order=order, power_state=state)

    def get_host_uptime(self, host: HostName) -> str:
        """See the contract. The line is that of uptime(1). host.Misaddressed, host.NoUptime."""
        self._check_host(host)
        if self._driver.host_uptime is None:
            raise errors.host.NoUptime(host=self._host.name)
        return self._driver.host_uptime.uptime().line(utcnow())

    def change_host_power(self, host: HostName, action: str) -> str:
        self._check_host(host)
        if self._driver.host_power is None:
            raise errors.host.NoPowerActions(host=self._host.name)
        LOG.warning("host %s: %s, as an operator asks", self._host.name, action)
        return self._driver.host_power.change_host_power(action)

    def cache_images(self, host: HostName, images: tuple[Image, ...],
                     tickets: tuple[ImageTicket, ...] = ()) -> tuple[CachedImage, ...]:
        """One after the other: a host has one line to the image service, and other work to do."""
        self._check_host(host)
        self._hold(tickets)
        return tuple(precache.fetch(self._images, image) for image in images)

    def ping(self, host: HostName) -> str:
        """See the contract. It answers whatever name it is asked by."""
        return self._host.name

def _tail(text: str) -> str:
    """The end of the text, as much as a message should carry."""
    encoded = text.encode()
    return text if len(encoded) <= CONSOLE_BYTES else encoded[-CONSOLE_BYTES:].decode(errors="ignore")
