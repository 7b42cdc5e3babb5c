"""Addresses of guests' screens and serial ports (``nova.virt.interface.RemoteConsoles``), read from the running guest's
definition."""

from __future__ import annotations

from dataclasses import dataclass

from nova import errors
from nova.model.guest.consoles import PROTOCOLS, ConsoleType
from nova.virt.interface import ConsoleEndpoint
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor, state_of
from nova.virt.libvirt.xml.consoles import lines_of, screen_of
from nova.virt.libvirt.xml.specs import SpiceSpec

ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # wildcard addresses: QEMU is reached at the host's address


@dataclass(frozen=True)
class LibvirtRemoteConsoles:
    """Remote consoles. ``spice``: the current SPICE settings."""

    hypervisor: LibvirtHypervisor
    spice: SpiceSpec | None

    def console_of(self, server_uuid: str, type: ConsoleType) -> ConsoleEndpoint:
        protocol = PROTOCOLS.get(type)
        if protocol not in ("vnc", "spice", "serial"):
            raise errors.host.NoSuchConsole(type=type.value)
        if state_of(self.hypervisor, server_uuid) in OFF:
            raise errors.guest.NotRunning(uuid=server_uuid)
        definition = self.hypervisor.definition(server_uuid)
        found = _serial(definition) if protocol == "serial" else _screen(definition, protocol)
        if found is None:
            raise errors.guest.NoSuchConsole(uuid=server_uuid,
                                             what=protocol.upper() if protocol != "serial" else protocol)
        if found.port is None and found.tls_port is None and found.socket_path is None:
            raise errors.guest.NotRunning(uuid=server_uuid)  # it has just stopped, or has no port yet
        if protocol == "spice":
            self._check_security(server_uuid, type, found)
        return found

    def _check_security(self, server_uuid: str, type: ConsoleType, found: ConsoleEndpoint) -> None:
        """Raise guest.NoSuchConsole if the guest was started before the current SPICE security setting."""
        if type == ConsoleType.SPICE_HTML5 and found.port is None:
            raise errors.guest.NoSuchConsole(uuid=server_uuid, what="SPICE (without TLS)")
        if self.spice is not None and self.spice.secure and found.port is not None:
            raise errors.guest.NoSuchConsole(uuid=server_uuid, what="SPICE (over TLS only)")


def _screen(definition: str, kind: str) -> ConsoleEndpoint | None:
    found = screen_of(definition, kind)
    return ConsoleEndpoint(port=found.port, tls_port=found.tls_port, socket_path=found.socket_path) if found else None


def _serial(definition: str) -> ConsoleEndpoint | None:
    """Return the first port, which is also that of the console log."""
    line = next(iter(lines_of(definition)), None)
    if line is None:
        return None
    return ConsoleEndpoint(host=None if line.host in ANYWHERE else line.host, port=line.port or None,
                           socket_path=line.path or None)
