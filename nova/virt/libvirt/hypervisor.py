"""What the driver needs of a hypervisor, and the errors that may come of it; tests hand in one without libvirt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from nova import errors
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})


class CopyState(NamedTuple):
    """How a copy of a disk goes. ``failure`` says why one that ``ended`` did not succeed."""

    done_bytes: int = 0
    ended: bool = False
    failure: str = ""


class BlockJob(NamedTuple):
    """How a job on a disk goes. ``end_bytes`` 0: nobody knows yet."""

    done_bytes: int
    end_bytes: int


class HostSize(NamedTuple):
    cpus: int
    memory_mb: int


class Definitions(NamedTuple):
    """A domain's XML: as it runs (None where it does not), and as it starts next (None: it will not be any more)."""

    running: str | None
    kept: str | None


@dataclass(frozen=True, kw_only=True)
class Departure:
    """How a guest is sent. ``uri``: the hypervisor's there; ``memory_uri``, ``disks_uri``: where memory and disks are
    sent; ``xml``: the guest as it will be there; ``disks``: targets (vda) of those to copy; ``shared``: the
    disks are known to lie on storage that both see; ``bandwidth_mib`` a second, 0: no bound."""

    uri: str
    memory_uri: str
    disks_uri: str
    xml: str
    disks: tuple[str, ...] = ()
    shared: bool = False
    auto_converge: bool = False
    post_copy: bool = False
    bandwidth_mib: int = 0


@dataclass(frozen=True, kw_only=True)
class RunningMigration:
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


class Lost:
    """In place of an event: the connection broke, and events may have been missed."""


class PowerEvent(NamedTuple):
    server_uuid: str
    power_state: PowerState


Sink = Callable[["PowerEvent | Lost"], None]  # called from a thread of the library's; it must not wait


class LibvirtHypervisor(Protocol):
    """Each call may raise host.LibvirtDown; each change may be repeated."""

    def open(self, sink: Sink) -> None:
        """Connect, at once or not at all, and give ``sink`` each power event from then on. Called once, before all
        others."""

    def close(self) -> None: ...

    def reopen(self) -> None:
        """Connect anew if the connection is broken."""

    def hostname(self) -> str:
        """As libvirt tells it (virConnectGetHostname)."""

    def version(self) -> int:
        """QEMU's, as major * 1,000,000 + minor * 1,000 + micro."""

    def size(self) -> HostSize:
        """The host's processors that are on, and its memory in MiB (virNodeGetInfo)."""

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

    def stats(self, server_uuid: str) -> Mapping[str, object]:
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

    def has_secret(self, secret_uuid: str) -> bool:
        """Whether there is one with a value, be it one that is shown to nobody."""

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

    def resize_disk(self, server_uuid: str, target: str, size_bytes: int) -> None:
        """Let a running guest see that its disk ``target`` (vda) has grown. guest.NotDefined; host.LibvirtRefused."""

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

    # --- a disk of a running guest: each call may raise guest.NotDefined and host.LibvirtRefused

    def begin_block_copy(self, server_uuid: str, target: str, xml: str) -> None:
        """Begin to copy the disk ``target`` (vda) to what the ``xml`` of a disk says, which is there."""

    def snapshot_disk(self, server_uuid: str, xml: str) -> None:
        """Have what is written to a disk go to a file that is there, as the ``xml`` of a snapshot says."""

    def begin_block_pull(self, server_uuid: str, target: str, base: str | None) -> None:
        """Begin to merge the files below the one that is written to into it, down to ``base`` (a path of the chain),
        which stays below it; None: all."""

    def begin_block_commit(self, server_uuid: str, target: str, base: str, top: str) -> None:
        """Begin to merge ``top``, in the middle of the chain, and what is between, into ``base`` below it."""

    def block_job(self, server_uuid: str, target: str) -> BlockJob | None:
        """None: the disk has none (any more)."""

    def end_block_job(self, server_uuid: str, target: str, pivot: bool) -> None:
        """``pivot``: the copy is the guest's disk from now on. Else the job ends, or has."""

    # --- live migration: each call may raise guest.NotDefined and host.LibvirtRefused, too

    def moving_xml(self, server_uuid: str) -> str:
        """A running guest's XML, as the hypervisor wants it back in :class:`Departure`."""

    def unfit_cpu(self, question: CpuQuestion) -> str:
        """Why guests with that processor cannot run here, with the missing flags; empty: they can."""

    def migrate(self, server_uuid: str, departure: Departure) -> None:
        """Send it; return when it runs there and is not defined here any more. Called once: never tried again."""

    def job(self, server_uuid: str) -> RunningMigration | None:
        """The migration under way; None when there is none, or no such guest."""

    def migrated(self, server_uuid: str) -> bool:
        """Whether it is not here, or only its definition is, because it went away."""

    def abort_migration(self, server_uuid: str) -> None:
        """The source gives up sending (virDomainAbortJob), and the guest goes on here: ``migrate`` ends with an
        error."""

    def start_post_copy(self, server_uuid: str) -> None:
        """Let it run there at once and bring the rest of its memory as it is asked for."""

    def set_downtime(self, server_uuid: str, milliseconds: int) -> None:
        """How long the guest may stand still at the end."""


def state_of(hypervisor: LibvirtHypervisor, server_uuid: str) -> PowerState:
    """guest.NotDefined."""
    state = hypervisor.state(server_uuid)
    if state is None:
        raise errors.guest.NotDefined(uuid=server_uuid)
    return state
