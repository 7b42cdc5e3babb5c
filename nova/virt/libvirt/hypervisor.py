"""What the driver needs of a hypervisor, and the errors that may come of it; tests hand in one without libvirt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from nova.model.states import PowerState
from nova.virt.libvirt.moves.calls import MigrationCalls


class CopyState(NamedTuple):
    """How a copy of a disk goes. ``failure`` says why one that ``ended`` did not succeed."""

    done_bytes: int = 0
    ended: bool = False
    failure: str = ""


class HostSize(NamedTuple):
    cpus: int
    memory_mb: int


class Definitions(NamedTuple):
    """A domain's XML: as it runs (None where it does not), and as it starts next (None: it will not be any more)."""

    running: str | None
    kept: str | None


class Lost:
    """In place of an event: the connection broke, and events may have been missed."""


class PowerEvent(NamedTuple):
    server_uuid: str
    power_state: PowerState


Sink = Callable[["PowerEvent | Lost"], None]  # called from a thread of the library's; it must not wait


class Hypervisor(MigrationCalls, Protocol):
    """Each call may raise host.LibvirtDown; each change may be repeated."""

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

    def node_devices(self) -> tuple[str, ...]:
        """XML of the host's PCI, network and vDPA devices."""

    def states(self) -> Mapping[str, PowerState]:
        """Of every domain, by uuid."""

    def state(self, server_uuid: str) -> PowerState | None:
        """None when it is not defined."""

    def noted(self, server_uuid: str, namespace: str) -> bool:
        """Whether a domain carries notes of that name space."""

    def stats(self, server_uuid: str) -> Mapping[str, Any]:
        """What is counted of a domain, by the names of virConnectGetAllDomainStats. guest.NotDefined."""

    def define(self, xml: str) -> None:
        """host.LibvirtRefused says what libvirt doesn't like."""

    def start(self, server_uuid: str, held: bool = False) -> None:
        """``held``: paused before its first instruction. Nothing when it runs. guest.NotDefined;
        host.LibvirtRefused."""

    def ask_to_stop(self, server_uuid: str) -> None:
        """Press the guest's power button (ACPI). Nothing when it is off. guest.NotDefined; host.LibvirtRefused."""

    def stop_now(self, server_uuid: str) -> None:
        """Power off. Nothing when it is off or not there."""

    def undefine(self, server_uuid: str) -> None:
        """With all that libvirt keeps of it (saved memory, snapshots' names), but for the firmware's variables and the
        TPM's state: they are the guest's, as its disks are. Nothing when it is not there."""

    # --- secrets

    def secret(self, secret_uuid: str) -> bytes | None:
        """None when there is none, or one without a value."""

    def keep_secret(self, secret_uuid: str, xml: str, value: bytes) -> None:
        """Define it if it is not there, and give it this value."""

    def drop_secret(self, secret_uuid: str) -> None:
        """Nothing when there is none."""

    # --- what is done to a guest on its host

    def definition(self, server_uuid: str) -> str:
        """Its XML; of the guest as it runs where it does. guest.NotDefined."""

    def definitions(self) -> Mapping[str, Definitions]:
        """Of every domain, by uuid."""

    def definitions_of(self, server_uuid: str) -> Definitions:
        """Of one. guest.NotDefined."""

    def attach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        """To the guest as it runs, or (``running`` False) as it starts next. guest.NotDefined; host.LibvirtRefused."""

    def detach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        """From it as it starts next, at once; or ask the running guest to give it up: its definition tells when it
        has. Nothing where it is gone. guest.NotDefined; host.LibvirtRefused."""

    def pause(self, server_uuid: str) -> None:
        """Nothing when it is paused. guest.NotDefined; host.LibvirtRefused."""

    def unpause(self, server_uuid: str) -> None:
        """Nothing when it runs. guest.NotDefined; host.LibvirtRefused."""

    def save(self, server_uuid: str) -> None:
        """Keep its memory on disk, and stop it; it goes on where that fails. Nothing when it is off."""

    def has_saved(self, server_uuid: str) -> bool:
        """Whether there is saved memory, from which its next start goes on."""

    def restore(self, server_uuid: str, held: bool = False) -> None:
        """``start`` of a guest with saved memory. guest.BrokenSave: it can't be read, and is still there."""

    def drop_saved(self, server_uuid: str) -> None:
        """Nothing when there is none. guest.NotDefined."""

    def interrupt(self, server_uuid: str) -> None:
        """A non-maskable interrupt. guest.NotDefined; host.LibvirtRefused."""

    def set_password(self, server_uuid: str, user: str, password: str, timeout_s: int) -> None:
        """By the agent in the guest. guest.NotDefined, guest.AgentSilent, guest.AgentFailed; host.LibvirtRefused."""

    def freeze(self, server_uuid: str, timeout_s: int) -> None:
        """Its file systems are whole on disk, and not written to until ``thaw``. Errors as ``set_password``."""

    def thaw(self, server_uuid: str, timeout_s: int) -> None:
        """Nothing when they are not frozen. Errors as ``set_password``."""

    def begin_copy(self, server_uuid: str, xml: str) -> None:
        """Copy disks as they are at this moment, as the backup ``xml`` says, while the guest goes on."""

    def copy_under_way(self, server_uuid: str) -> str | None:
        """The XML of the copy that is being made; None when there is none."""

    def copy_state(self, server_uuid: str) -> CopyState:
        """Of the copy that was begun last. guest.NotDefined."""

    def stop_copy(self, server_uuid: str) -> None:
        """Nothing when there is none."""
