"""What the driver needs of a hypervisor, and the errors that may come of it; tests hand in one without libvirt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from nova import errors
from nova.model.states import PowerState


class LibvirtDown(errors.Unavailable):
    code, message = "host.libvirt_down", "libvirt on {host} does not answer at {uri}: {reason}. Is libvirtd running?"


class LibvirtRefused(errors.HostRefused):
    code, message = "host.libvirt_refused", "libvirt could not {task}: {reason}"


class NoGuest(errors.NotFound):
    code, message = "guest.not_defined", "There is no guest {uuid} on this host."


class HostSize(NamedTuple):
    cpus: int
    memory_mb: int


class Lost:
    """In place of an event: the connection broke, and events may have been missed."""


class PowerEvent(NamedTuple):
    server_uuid: str
    power_state: PowerState


Sink = Callable[["PowerEvent | Lost"], None]  # called from a thread of the library's; it must not wait


class Hypervisor(Protocol):
    """Each call may raise LibvirtDown; each change may be repeated."""

    def open(self, sink: Sink) -> None: ...

    def close(self) -> None: ...

    def reopen(self) -> None:
        """Connect anew if the connection is broken."""

    def hostname(self) -> str: ...

    def version(self) -> int:
        """QEMU's, as major * 1,000,000 + minor * 1,000 + micro."""

    def size(self) -> HostSize: ...

    def capabilities(self) -> str:
        """XML."""

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> str:
        """XML."""

    def states(self) -> Mapping[str, PowerState]:
        """Of every domain, by uuid."""

    def state(self, server_uuid: str) -> PowerState | None:
        """None when it is not defined."""

    def noted(self, server_uuid: str, namespace: str) -> bool:
        """Whether a domain carries notes of that name space."""

    def stats(self, server_uuid: str) -> Mapping[str, Any]:
        """What is counted of a domain, by the names of virConnectGetAllDomainStats. NoGuest."""

    def define(self, xml: str) -> None:
        """LibvirtRefused says what libvirt doesn't like."""

    def start(self, server_uuid: str) -> None:
        """Nothing when it runs. NoGuest; LibvirtRefused."""

    def ask_to_stop(self, server_uuid: str) -> None:
        """Press the guest's power button (ACPI). Nothing when it is off. NoGuest; LibvirtRefused."""

    def stop_now(self, server_uuid: str) -> None:
        """Power off. Nothing when it is off or not there."""

    def undefine(self, server_uuid: str) -> None:
        """With all that libvirt keeps of it (saved memory, snapshots' names, NVRAM). Nothing when it is not there."""
