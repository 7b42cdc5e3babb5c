"""Types of libvirt's objects, whose library has no annotations: the methods that this package calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

#: Typed parameters of a call, by libvirt's names.
Parameters = Mapping[str, str | int | list[str]]


class Domain(Protocol):
    """``libvirt.virDomain``: a guest."""

    def UUIDString(self) -> str:
        """Return its UUID."""

    def connect(self) -> Connect:
        """Return the connection that it belongs to."""

    def isActive(self) -> int:
        """Return 1 if the guest runs or is paused, else 0."""

    def isPersistent(self) -> int:
        """Return 1 if it has a persistent definition, else 0."""

    def state(self) -> list[int]:
        """Return the state, and the reason for it."""

    def XMLDesc(self, flags: int = 0) -> str:
        """Return the definition; by default of the running guest."""

    def metadata(self, type: int, uri: str) -> str:
        """Return the metadata of a namespace."""

    # --- power

    def createWithFlags(self, flags: int) -> int:
        """Start the guest."""

    def shutdownFlags(self, flags: int) -> int:
        """Ask the guest to shut down."""

    def destroy(self) -> int:
        """Power the guest off."""

    def suspend(self) -> int:
        """Pause the guest."""

    def resume(self) -> int:
        """Resume a paused guest."""

    def injectNMI(self) -> int:
        """Inject a non-maskable interrupt."""

    def undefineFlags(self, flags: int) -> int:
        """Remove the persistent definition."""

    # --- saved memory

    def managedSave(self, flags: int) -> int:
        """Save the guest's memory to a file of libvirt, and stop the guest."""

    def hasManagedSaveImage(self) -> int:
        """Return 1 if there is saved memory, else 0."""

    def managedSaveRemove(self) -> int:
        """Remove the saved memory."""

    # --- the agent

    def agentSetResponseTimeout(self, timeout: int) -> int:
        """Set the timeout of the guest agent's replies, in seconds."""

    def setUserPassword(self, user: str, password: str) -> int:
        """Set the password of a user, by the guest agent."""

    def fsFreeze(self) -> int:
        """Freeze all file systems; return their number."""

    def fsThaw(self) -> int:
        """Thaw all file systems; return their number."""

    # --- devices and disks

    def attachDeviceFlags(self, xml: str, flags: int) -> int:
        """Attach a device."""

    def detachDeviceFlags(self, xml: str, flags: int) -> int:
        """Detach a device."""

    def blockResize(self, disk: str, size: int, flags: int) -> int:
        """Resize a disk."""

    def blockCopy(self, disk: str, destxml: str, params: Parameters, flags: int) -> int:
        """Begin a copy of a disk."""

    def blockRebase(self, disk: str, base: str | None, bandwidth: int, flags: int) -> int:
        """Begin a merge of a disk's backing files into its active file."""

    def blockCommit(self, disk: str, base: str, top: str, bandwidth: int, flags: int) -> int:
        """Begin a merge of a disk's files into a backing file."""

    def blockJobInfo(self, disk: str, flags: int) -> Mapping[str, int]:
        """Return the progress of the disk's job; empty without a job."""

    def blockJobAbort(self, disk: str, flags: int) -> int:
        """End the disk's job."""

    def snapshotCreateXML(self, xmlDesc: str, flags: int) -> object:
        """Create a snapshot."""

    # --- jobs

    def jobStats(self, flags: int = 0) -> Mapping[str, int | str]:
        """Return the statistics of the current or the completed job."""

    def abortJob(self) -> int:
        """Abort the current job."""

    def backupBegin(self, backupXML: str, checkpointXML: str | None, flags: int) -> int:
        """Begin a backup job."""

    def backupGetXMLDesc(self) -> str:
        """Return the definition of the current backup job."""

    def migrateToURI3(self, dconnuri: str, params: Parameters, flags: int) -> int:
        """Migrate the guest to another host."""

    def migrateStartPostCopy(self, flags: int) -> int:
        """Switch the migration to post-copy."""

    def migrateSetMaxDowntime(self, downtime: int, flags: int) -> int:
        """Set the tolerated downtime of the migration, in milliseconds."""


class HostDevice(Protocol):
    """``libvirt.virNodeDevice``: a device of the host."""

    def XMLDesc(self, flags: int) -> str:
        """Return the description of the device."""


class Secret(Protocol):
    """``libvirt.virSecret``: a secret that libvirt keeps for guests."""

    def value(self) -> bytes | None:
        """Return the value."""

    def setValue(self, value: bytes) -> int:
        """Set the value."""

    def undefine(self) -> int:
        """Remove the secret."""


class Connect(Protocol):
    """``libvirt.virConnect``: a connection to a hypervisor."""

    def close(self) -> int:
        """Close the connection."""

    def setKeepAlive(self, interval: int, count: int) -> int:
        """Send keepalive messages at this interval in seconds."""

    def registerCloseCallback(self, cb: Callable[[Connect, int, object], None], opaque: object) -> int:
        """Set the function to call when the connection is closed."""

    def domainEventRegisterAny(self, dom: Domain | None, eventID: int,
                               cb: Callable[[Connect, Domain, int, int, object], None], opaque: object) -> int:
        """Set the function to call for events of guests."""

    # --- guests

    def listAllDomains(self) -> Sequence[Domain]:
        """Return all guests."""

    def lookupByUUIDString(self, uuidstr: str) -> Domain:
        """Return a guest. Raises libvirtError."""

    def defineXML(self, xml: str) -> Domain:
        """Define a guest."""

    def domainListGetStats(self, doms: list[Domain], stats: int,
                           flags: int) -> Sequence[tuple[Domain, Mapping[str, int | str]]]:
        """Return the statistics of guests."""

    # --- the host

    def getHostname(self) -> str:
        """Return the host name."""

    def getVersion(self) -> int:
        """Return the hypervisor's version."""

    def getInfo(self) -> tuple[str, int, int, int, int, int, int, int]:
        """Return the processor's model, the memory in MiB, the number of processors, and their frequency and
        topology."""

    def getCapabilities(self) -> str:
        """Return the host's capabilities."""

    def getDomainCapabilities(self, emulatorbin: str | None, arch: str, machine: str | None, virttype: str,
                              flags: int) -> str:
        """Return the capabilities for guests of a machine type."""

    def compareHypervisorCPU(self, emulator: str | None, arch: str, machine: str | None, virttype: str, xmlCPU: str,
                             flags: int) -> int:
        """Compare a processor with the processors that guests can have here."""

    def listAllDevices(self, flags: int) -> Sequence[HostDevice]:
        """Return the host's devices."""

    # --- secrets

    def secretLookupByUUIDString(self, uuidstr: str) -> Secret:
        """Return a secret. Raises libvirtError."""

    def secretDefineXML(self, xml: str) -> Secret:
        """Define a secret."""
