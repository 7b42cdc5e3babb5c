"""What moves need of a hypervisor (part of :class:`~nova.virt.libvirt.hypervisor.Hypervisor`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from nova.model.migrations import MigrationProgress


@dataclass(frozen=True, kw_only=True)
class Departure:
    """How a guest is sent. ``uri``: the hypervisor's there; ``address``: where memory and disks are sent (its port is
    chosen there); ``xml``: the guest as it will be there; ``disks``: targets (vda) of those to copy; ``shared``: the
    disks are known to lie on storage that both see; ``bandwidth_mib`` a second, 0: no bound."""

    uri: str
    address: str
    xml: str
    disks: tuple[str, ...] = ()
    shared: bool = False
    auto_converge: bool = False
    post_copy: bool = False
    tls: bool = False
    bandwidth_mib: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A migration that is under way. ``incoming``: the guest comes."""

    incoming: bool = False
    progress: MigrationProgress = MigrationProgress()
    percent: int = 0


class CpuQuestion(NamedTuple):
    """Whether guests with the processor ``cpu`` (libvirt's XML) can run. ``machine`` None: the usual one."""

    arch: str
    machine: str | None
    virt_type: str
    cpu: str


class MigrationCalls(Protocol):
    """Each call may raise host.LibvirtDown, NoGuest and host.LibvirtRefused."""

    def moving_xml(self, server_uuid: str) -> str:
        """A running guest's XML, as the hypervisor wants it back in :class:`Departure`."""

    def unfit_cpu(self, question: CpuQuestion) -> str:
        """Why guests with that processor can not run here, with the missing flags; empty: they can."""

    def migrate(self, server_uuid: str, departure: Departure) -> None:
        """Send it; return when it runs there and is not defined here any more. Called once: never tried again."""

    def job(self, server_uuid: str) -> Job | None:
        """The migration under way; None when there is none, or no such guest."""

    def migrated(self, server_uuid: str) -> bool:
        """Whether it is not here, or only its definition is, because it went away."""

    def abort_migration(self, server_uuid: str) -> None: ...

    def start_post_copy(self, server_uuid: str) -> None:
        """Let it run there at once and bring the rest of its memory as it is asked for."""

    def set_downtime(self, server_uuid: str, milliseconds: int) -> None:
        """How long the guest may stand still at the end."""
