"""Console locations of this host's guests, from its configuration and its driver."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.compute.host import Host, checked_uuid
from nova.conf._options import Options
from nova.model.base import HostName
from nova.model.guest.consoles import ConsoleAddress, ConsoleType
from nova.virt.interface import ConsoleEndpoint, Driver

T = ConsoleType


#: Console type that the host's configuration offers -> the host at which proxies reach the address that guests'
#: consoles are served on.
Offers = Mapping[ConsoleType, str]


def offers_of(options: Options) -> Offers:
    """Return the console types that ``[vnc]``, ``[spice]``, ``[serial_console]`` and ``[mks]`` offer.

    The HTML page for SPICE does not support TLS, so it is not offered if all consoles must be secure. (RDP exists only
    in the API.)
    """
    vnc, spice, serial, mks = options.vnc, options.spice, options.serial_console, options.mks
    found: dict[ConsoleType, tuple[bool, str]] = {
        T.NOVNC: (vnc.enabled, vnc.server_proxyclient_address),
        T.XVPVNC: (vnc.enabled, vnc.server_proxyclient_address),
        T.SPICE_HTML5: (spice.enabled and not spice.require_secure, spice.server_proxyclient_address),
        T.SPICE_DIRECT: (spice.enabled, spice.server_proxyclient_address),
        T.SERIAL: (serial.enabled, serial.proxyclient_address),
        T.WEBMKS: (mks.enabled, ""),
    }
    return {kind: str(host) for kind, (enabled, host) in found.items() if enabled}


def addresses_of(offers: Offers, my_ip: str) -> tuple[str, ...]:
    """Return all addresses at which this host's consoles may be."""
    return tuple(sorted({my_ip, *offers.values()} - {""}))


class ConsoleReports:
    """Mixin for ``ComputeService`` that finds consoles; the service sets the attributes."""

    _host: Host
    _driver: Driver
    _offers: Offers
    _bases: Mapping[ConsoleType, str]  # base URLs of the proxies, if this host determines them

    def _check_host(self, given: HostName) -> None:
        raise NotImplementedError

    def find_console(self, host: HostName, server_uuid: str, type: ConsoleType) -> ConsoleAddress:
        """Return the location of a guest's console (see the contract). Raises host.Misaddressed,
        console.TypeUnavailable, host.NoConsoles, guest.NotFound; other errors as ``RemoteConsoles.console_of`` of the
        driver."""
        self._check_host(host)
        checked_uuid(server_uuid)
        offer = self._offers.get(type)
        if offer is None:
            raise errors.console.TypeUnavailable(type=type.value)
        consoles = self._driver.remote_consoles
        if consoles is None:
            raise errors.host.NoConsoles(host=self._host.name)
        if self._driver.lifecycle.power_state(server_uuid) is None:
            raise errors.guest.NotFound(uuid=server_uuid, host=self._host.name)
        return _address(offer, consoles.console_of(server_uuid, type), self._bases.get(type, ""))


def _address(host: str, place: ConsoleEndpoint, base: str) -> ConsoleAddress:
    if place.socket_path is not None:
        return ConsoleAddress(access_url_base=base, socket_path=place.socket_path,
                              internal_access_path=place.internal_access_path)
    return ConsoleAddress(access_url_base=base, host=place.host or host, port=place.port, tls_port=place.tls_port,
                          internal_access_path=place.internal_access_path)
