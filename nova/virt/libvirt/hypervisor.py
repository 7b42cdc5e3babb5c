"""The hypervisor protocol that the driver needs, and its errors; tests provide one without libvirt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from nova import errors
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})


class CopyState(NamedTuple):
    """The progress of a disk copy. ``failure``: the reason if it ``ended`` without success."""

    done_bytes: int = 0
    ended: bool = False
    failure: str = ""


class BlockJob(NamedTuple):
    """The progress of a block job. ``end_bytes`` 0: not known yet."""

    done_bytes: int
    end_bytes: int


class HostSize(NamedTuple):
    cpus: int
    memory_mb: int


class Definitions(NamedTuple):
    """A domain's XML: of the running guest (None: it does not run), and persistent (None: it is transient)."""

    running: str | None
    kept: str | None


@dataclass(frozen=True, kw_only=True)
class MigrationParams:
    """Parameters of an outgoing migration.

    ``uri``: of the destination's hypervisor; ``memory_uri``, ``disks_uri``: destinations of memory and disks; ``xml``:
    the guest's definition there; ``disks``: targets (vda) of the disks to copy; ``shared``: the disks are on storage
    that both hosts share; ``bandwidth_mib`` per second, 0: unlimited."""

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
    """A migration that is under way. ``incoming``: the guest arrives on this host."""

    incoming: bool = False
    progress: MigrationProgress = MigrationProgress()
    percent: int = 0


class CpuComparison(NamedTuple):
    """A request to check that guests with the processor ``cpu`` (libvirt's XML) can run. ``machine`` None: the
    default."""

    arch: str
    machine: str | None
    virt_type: str
    cpu: str


class ConnectionLost:
    """A marker in place of an event: the connection broke, and events may have been missed."""


class PowerEvent(NamedTuple):
    server_uuid: str
    power_state: PowerState


Sink = Callable[["PowerEvent | ConnectionLost"], None]  # called from libvirt's thread; it must not block


class LibvirtHypervisor(Protocol):
    """The calls to a hypervisor. Each may raise host.LibvirtDown; each change is safe to repeat."""

    def open(self, sink: Sink) -> None:
        """Connect, without retries, and pass each power event to ``sink`` from then on. Called once, before all other
        calls."""

    def close(self) -> None: ...

    def reopen(self) -> None:
        """Reconnect if the connection is broken."""

    def hostname(self) -> str:
        """Return the host name as libvirt reports it (virConnectGetHostname)."""

    def version(self) -> int:
        """Return QEMU's version, as major * 1,000,000 + minor * 1,000 + micro."""

    def size(self) -> HostSize:
        """Return the number of the host's online processors, and its memory in MiB (virNodeGetInfo)."""

    def capabilities(self) -> str:
        """Return the host's capabilities, as XML."""

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> str:
        """Return the domain capabilities, as XML."""

    def node_devices(self) -> tuple[str, ...]:
        """Return the XML of the host's PCI, network and vDPA devices."""

    def states(self) -> Mapping[str, PowerState]:
        """Return the power state of every domain, by uuid."""

    def state(self, server_uuid: str) -> PowerState | None:
        """Return the guest's power state; None if it is not defined."""

    def noted(self, server_uuid: str, namespace: str) -> bool:
        """Return whether a domain has metadata in that namespace."""

    def stats(self, server_uuid: str) -> Mapping[str, int | str]:
        """Return a domain's statistics, by the names of virConnectGetAllDomainStats. Raises guest.NotDefined."""

    def define(self, xml: str) -> None:
        """Define the guest. Raises host.LibvirtRefused with libvirt's reason."""

    def start(self, server_uuid: str, held: bool = False) -> None:
        """Start the guest; does nothing if it runs. ``held``: paused before its first instruction. Raises
        guest.NotDefined; host.LibvirtRefused."""

    def request_shutdown(self, server_uuid: str) -> None:
        """Press the guest's power button (ACPI); does nothing if it is off. Raises guest.NotDefined;
        host.LibvirtRefused."""

    def power_off(self, server_uuid: str) -> None:
        """Power the guest off; does nothing if it is off or not defined."""

    def undefine(self, server_uuid: str) -> None:
        """Undefine the guest with libvirt's data about it (saved memory, snapshot metadata); does nothing if it is not
        defined. The firmware's variables and the TPM's state stay: they belong to the guest, as its disks do."""

    # --- secrets

    def secret(self, secret_uuid: str) -> bytes | None:
        """Return the secret's value; None if the secret does not exist or has no value."""

    def has_secret(self, secret_uuid: str) -> bool:
        """Return whether the secret exists with a value, which may be private."""

    def keep_secret(self, secret_uuid: str, xml: str, value: bytes) -> None:
        """Define the secret if it does not exist, and set its value."""

    def drop_secret(self, secret_uuid: str) -> None:
        """Remove the secret; does nothing if there is none."""

    # --- operations on a guest on its host

    def definition(self, server_uuid: str) -> str:
        """Return the guest's XML; of the running guest if it runs. Raises guest.NotDefined."""

    def definitions(self) -> Mapping[str, Definitions]:
        """Return the definitions of every domain, by uuid."""

    def definitions_of(self, server_uuid: str) -> Definitions:
        """Return the definitions of one domain. Raises guest.NotDefined."""

    def attach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        """Attach a device to the running guest, or (``running`` False) to its persistent definition. Raises
        guest.NotDefined; host.LibvirtRefused."""

    def detach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        """Detach a device from the persistent definition, or ask the running guest to release it: its definition shows
        when it has. Does nothing if the device is gone. Raises guest.NotDefined; host.LibvirtRefused."""

    def resize_disk(self, server_uuid: str, target: str, size_bytes: int) -> None:
        """Show a running guest the new size of its disk ``target`` (vda). Raises guest.NotDefined;
        host.LibvirtRefused."""

    def pause(self, server_uuid: str) -> None:
        """Pause the guest; does nothing if it is paused. Raises guest.NotDefined; host.LibvirtRefused."""

    def unpause(self, server_uuid: str) -> None:
        """Resume the guest; does nothing if it runs. Raises guest.NotDefined; host.LibvirtRefused."""

    def save(self, server_uuid: str) -> None:
        """Save the guest's memory to disk and stop it; it keeps running if that fails. Does nothing if it is off."""

    def has_saved(self, server_uuid: str) -> bool:
        """Return whether there is saved memory, from which the guest's next start resumes."""

    def restore(self, server_uuid: str, held: bool = False) -> None:
        """Start a guest with saved memory. Raises guest.BrokenSave if the memory is unreadable; it is not removed."""

    def drop_saved(self, server_uuid: str) -> None:
        """Remove the guest's saved memory; does nothing if there is none. Raises guest.NotDefined."""

    def interrupt(self, server_uuid: str) -> None:
        """Inject a non-maskable interrupt. Raises guest.NotDefined; host.LibvirtRefused."""

    def set_password(self, server_uuid: str, user: str, password: str, timeout_s: int) -> None:
        """Set a password through the guest agent. Raises guest.NotDefined, guest.AgentSilent, guest.AgentFailed;
        host.LibvirtRefused."""

    def freeze(self, server_uuid: str, timeout_s: int) -> None:
        """Flush the guest's file systems and block writes until ``thaw``. Raises the errors of ``set_password``."""

    def thaw(self, server_uuid: str, timeout_s: int) -> None:
        """Thaw the guest's file systems; does nothing if they are not frozen. Raises the errors of ``set_password``."""

    def begin_copy(self, server_uuid: str, xml: str) -> None:
        """Start to copy disks in their current state, as the backup ``xml`` says; the guest continues to run."""

    def copy_under_way(self, server_uuid: str) -> str | None:
        """Return the XML of the running copy; None if there is none."""

    def copy_state(self, server_uuid: str) -> CopyState:
        """Return the state of the last copy. Raises guest.NotDefined."""

    def stop_copy(self, server_uuid: str) -> None:
        """Stop the running copy; does nothing if there is none."""

    # --- a disk of a running guest: each call may raise guest.NotDefined and host.LibvirtRefused

    def begin_block_copy(self, server_uuid: str, target: str, xml: str) -> None:
        """Start to copy the disk ``target`` (vda) to the existing target that the ``xml`` of a disk describes."""

    def snapshot_disk(self, server_uuid: str, xml: str) -> None:
        """Redirect a disk's writes to an existing overlay file, as the ``xml`` of a snapshot says."""

    def begin_block_pull(self, server_uuid: str, target: str, base: str | None) -> None:
        """Start to merge the files below the active one into it, down to ``base`` (a path of the chain), which stays
        below it; None: all."""

    def begin_block_commit(self, server_uuid: str, target: str, base: str, top: str) -> None:
        """Start to merge ``top``, in the middle of the chain, and the files in between, into ``base`` below it."""

    def block_job(self, server_uuid: str, target: str) -> BlockJob | None:
        """Return the disk's block job; None if it has none."""

    def end_block_job(self, server_uuid: str, target: str, pivot: bool) -> None:
        """End the disk's job. ``pivot``: the guest uses the copy from then on; else the job is cancelled or has
        ended."""

    # --- live migration: each call may also raise guest.NotDefined and host.LibvirtRefused

    def migratable_xml(self, server_uuid: str) -> str:
        """Return a running guest's XML in the form that :class:`MigrationParams` needs."""

    def cpu_incompatibility(self, question: CpuComparison) -> str:
        """Return why guests with that processor cannot run here, with the missing flags; empty if they can."""

    def migrate(self, server_uuid: str, departure: MigrationParams) -> None:
        """Migrate the guest; return when it runs on the destination and is undefined here. Never retried."""

    def job(self, server_uuid: str) -> RunningMigration | None:
        """Return the migration that is under way; None if there is none, or no such guest."""

    def migrated(self, server_uuid: str) -> bool:
        """Return whether the guest has left: it is not here, or only its definition is."""

    def abort_migration(self, server_uuid: str) -> None:
        """Abort the outgoing migration (virDomainAbortJob); the guest continues here and ``migrate`` ends with an
        error."""

    def start_post_copy(self, server_uuid: str) -> None:
        """Run the guest on the destination immediately, and fetch the rest of its memory on demand."""

    def set_downtime(self, server_uuid: str, milliseconds: int) -> None:
        """Set the maximum pause of the guest at the end of a migration."""


def state_of(hypervisor: LibvirtHypervisor, server_uuid: str) -> PowerState:
    """Return the guest's power state. Raises guest.NotDefined."""
    state = hypervisor.state(server_uuid)
    if state is None:
        raise errors.guest.NotDefined(uuid=server_uuid)
    return state
