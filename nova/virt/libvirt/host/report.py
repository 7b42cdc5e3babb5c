"""The host's inventory and facts, from libvirt and the system."""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from pathlib import Path

from nova import errors
from nova.model.base import utcnow
from nova.model.host.hosts import HostUptime, Node
from nova.model.scheduling import address_space
from nova.privileged import dmi, kvm
from nova.privileged.client import in_use
from nova.privileged.runner import CommandRunner
from nova.virt.libvirt.disks import tpm
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.host import host_traits
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.host.host_topology import HostNuma, Layout, device_children, page_kb
from nova.virt.libvirt.host.machines import has_stateless, runnable
from nova.virt.libvirt.host.processors import address_modes, guest_features, usable_models
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml import capabilities

GIB = 1 << 30
MACHINE_ID = Path("/etc/machine-id")
HARDWARE_SERIAL = dmi.PRODUCT_UUID
HYPERVISOR = "QEMU"
CPU_MAP = Path("/usr/share/libvirt/cpu_map")
PROC, UTMP = Path("/proc"), Path("/run/utmp")
RECORD_BYTES, USER_PROCESS = (384, 400), 7  # of utmp: depends on the size of a long in the C library


class LibvirtHost:
    """The host's report. Facts are read from libvirt once per connection; amounts at each call."""

    def __init__(self, hypervisor: LibvirtHypervisor, settings: LibvirtSettings, folders: Folders,
                 runner: CommandRunner,
                               space: Callable[[], tuple[int, int]]) -> None:
        """Create the report. ``space``: returns the total and free bytes of the disk storage."""
        self._hypervisor, self._settings, self._folders, self._runner = hypervisor, settings, folders, runner
        self._space = space
        self._facts: HypervisorFacts | None = None
        self._kinds: tuple[capabilities.Guestable, ...] = ()
        self._cpu: capabilities.HostCpu | None = None
        self._virt = ""
        self._abilities: dict[str | None, capabilities.DomainCapabilities] = {}
        self._resources, self._layout = HostNuma(hypervisor, settings.placing, runner), Layout(cells=())

    def look(self) -> None:
        """Read the constant facts. Raises Unavailable, which names the missing part, or config.Libvirt for an option
        that cannot work on this host."""
        text = self._hypervisor.capabilities()
        self._cpu, kinds = capabilities.host_cpu(text), capabilities.guestables(text)
        self._virt, self._abilities = self._virt_type({kind.domain for kind in kinds}), {}
        self._kinds = tuple(kind for kind in kinds if kind.arch in runnable(self._cpu.arch)
                            and kind.domain in ("qemu", self._virt))
        can = self.abilities(None)
        if self._settings.cpu_models and not usable_models(self._settings.cpu_models, can):
            raise errors.config.Libvirt(option="[libvirt]cpu_models",
                                        reason="this host's processor supports none of them")
        if self._settings.consoles.spice is not None and can.screens and "spice" not in can.screens:
            raise errors.config.Libvirt(option="[spice]enabled", reason="this host's QEMU has no SPICE: install "
                                        "qemu-system-modules-spice (Debian 13), or disable the option")
        machines = frozenset(machine for kind in self._kinds for machine in kind.machines)
        self._layout = self._resources.look(text, self._kinds_of_machines(machines))
        self._facts = HypervisorFacts(
            virt_type=self._virt, arch=self._cpu.arch, version=self._hypervisor.version(),
            serial_of=serial_of(self._settings.sysinfo_serial), abilities=self.abilities,
            machines=machines, floating=self._layout.floating, page_kb=page_kb(),
            tpm=self._settings.swtpm and "emulator" in can.tpm_backends and tpm.installed(),
            stateless_firmware=has_stateless(),
            qemu_owner=capabilities.qemu_owner(text) or (os.geteuid(), os.getegid()),
            address_bits=self._cpu.address_bits, cpu_features=model_features(self._settings.cpu_models),
            cache_mode=self._settings.cache_mode or cache_mode(self._settings.instances_path))

    def abilities(self, machine: str | None) -> capabilities.DomainCapabilities:
        """Return the capabilities of guests of a machine type (None: the operator's, else libvirt's default). Raises
        host.LibvirtRefused."""
        assert self._cpu is not None
        asked = machine or self._settings.machine_types.get(self._cpu.arch)
        if asked not in self._abilities:
            self._abilities[asked] = capabilities.domain_capabilities(
                self._hypervisor.domain_capabilities(self._cpu.arch, asked, self._virt))
        return self._abilities[asked]

    def _virt_type(self, offered: set[str]) -> str:
        if self._settings.virt_type == "auto" and "kvm" not in offered:
            wanted = "qemu"
        else:
            assert self._cpu is not None
            wanted = kvm.choose(self._settings.virt_type, self._cpu.arch, self._settings.state_path, self._runner)
        if wanted not in offered:
            raise errors.host.NoEmulator(virt_type=wanted)
        return wanted

    def facts(self) -> HypervisorFacts:
        """Return the facts; the first call reads them with ``look`` if necessary, and raises its errors."""
        if self._facts is None:
            self.look()
        assert self._facts is not None
        return self._facts

    def node(self) -> Node:
        """Return the only node of this host, with its current inventory."""
        facts, size = self.facts(), self._hypervisor.size()
        assert self._cpu is not None
        total, free = self._space()
        name, own_uuid = self._hypervisor.hostname(), node_uuid(self._settings)
        devices = self._resources.devices()
        return Node(
            name=name, uuid=own_uuid, hypervisor_type=HYPERVISOR, topology=self._layout.topology(devices),
            inventories=self._layout.inventories,
            children=device_children(name, own_uuid, devices, self._settings.placing),
            hypervisor_version=self._hypervisor.version(),
            vcpus=self._layout.vcpus if self._settings.placing.sets else size.cpus, memory_mb=size.memory_mb,
            local_gb=total // GIB, memory_mb_used=memory_used_mb(size.memory_mb), local_gb_used=(total - free) // GIB,
            disk_available_least_gb=(free - self._promised_bytes()) // GIB, cpu_info=self._cpu.as_json(),
            supported=tuple(sorted({(kind.arch, kind.domain, kind.mode) for kind in self._kinds})),
            traits=self._traits(), host_ip=self._settings.host_ip,
            capabilities={"virt_type": facts.virt_type, "arch": self._cpu.arch})

    def uptime(self) -> HostUptime:
        return uptime_of()

    def _promised_bytes(self) -> int:
        """Return how much guests' disks may still grow, in bytes: their size minus their allocation."""
        promised = 0
        for server_uuid in self._folders.uuids():
            folder = self._folders.of(server_uuid)
            for disk in folder.disks():
                with contextlib.suppress(OSError):
                    promised += max(0, disk.size_bytes - folder.file(disk.name).stat().st_blocks * 512)
        return promised

    def _traits(self) -> tuple[str, ...]:
        facts = self.facts()
        assert self._cpu is not None
        own = frozenset(self._cpu.features) | model_features([self._cpu.model]).get(self._cpu.model, frozenset())
        features = guest_features(self._settings, facts, own, self.abilities(None))
        found = host_traits.traits(facts, features, self._kinds_of_machines(facts.machines))
        modes = address_modes(self._settings, facts)
        return tuple(sorted({*found, *self._layout.traits, *(address_space.TRAITS[mode] for mode in modes)}))

    def _kinds_of_machines(self, machines: frozenset[str]) -> list[capabilities.DomainCapabilities]:
        """Return guests' capabilities with the default machine type and with each of host_traits.MACHINES."""
        return [self.abilities(machine) for machine in (None, *host_traits.MACHINES)
                if machine is None or machine in machines]


COMPUTE_ID = "compute_id"  # the file name that deployment tools use


def node_uuid(settings: LibvirtSettings) -> str:
    """Return the node's uuid, from the file ``compute_id`` that a deployment tool put next to nova.conf, else from the
    one in ``state_path``, which is created at the first start. Raises host.ComputeId."""
    state_path = settings.state_path
    kept = state_path / COMPUTE_ID
    for path in (*(folder / COMPUTE_ID for folder in settings.config_folders), kept):
        try:
            return str(uuid.UUID(path.read_text().strip()))
        except FileNotFoundError:
            continue
        except ValueError:
            raise errors.host.ComputeId(path=str(path)) from None
    made = str(uuid.uuid4())
    state_path.mkdir(parents=True, exist_ok=True)
    descriptor, fresh = tempfile.mkstemp(prefix=f".{COMPUTE_ID}.", dir=state_path)
    with os.fdopen(descriptor, "w") as target:
        target.write(made + "\n")
        target.flush()
        os.fsync(target.fileno())
    os.replace(fresh, kept)
    return made


def serial_of(choice: str) -> Callable[[str], str | None]:
    """Return a function from a server's uuid to its guest's serial number, as ``[libvirt]sysinfo_serial`` says."""
    if choice == "unique":
        return lambda server_uuid: server_uuid
    if choice == "none":
        return lambda server_uuid: None
    sources = {"os": (MACHINE_ID,), "hardware": (HARDWARE_SERIAL,), "auto": (MACHINE_ID, HARDWARE_SERIAL)}[choice]
    serial = next((found for found in map(_read_serial, sources) if found), None)
    return lambda server_uuid: serial


def _read_serial(path: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        is_roots = path == dmi.PRODUCT_UUID and in_use() is not None
        return str(uuid.UUID(dmi.product_uuid() if is_roots else path.read_text().strip()))
    return None


def memory_used_mb(total_mb: int, meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the memory that the kernel does not report as available for new programs."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return max(0, total_mb - int(line.split()[1]) // 1024)
    return 0


def uptime_of(proc: Path = PROC, utmp: Path = UTMP) -> HostUptime:
    """Return this machine's uptime, logged-in users and load, from the kernel and utmp(5), without a program."""
    up_s = float((proc / "uptime").read_text().split()[0])
    return HostUptime(booted_at=utcnow().replace(microsecond=0) - datetime.timedelta(seconds=int(up_s)),
                      users=_users(utmp), load=os.getloadavg())


def _users(utmp: Path) -> int:
    """Return the number of logged-in users; 0 if the file does not exist."""
    try:
        data = utmp.read_bytes()
    except OSError:
        return 0
    size = next((size for size in RECORD_BYTES if len(data) % size == 0), RECORD_BYTES[0])
    return sum(data[at] == USER_PROCESS for at in range(0, len(data), size))


def cache_mode(directory: Path) -> str:
    """Return none (bypasses the host's page cache, so guests' writes are safe) if the file system supports O_DIRECT,
    else writeback."""
    probe = directory / ".direct-io"
    try:
        descriptor = os.open(probe, os.O_CREAT | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError:
        return "writeback"
    else:
        os.close(descriptor)
        return "none"
    finally:
        probe.unlink(missing_ok=True)


def model_features(models: Iterable[str], folder: Path = CPU_MAP) -> dict[str, frozenset[str]]:
    """Return the features of processor models, from libvirt's own files; models without a file are omitted."""
    found = {}
    for model in models:
        with contextlib.suppress(OSError, ET.ParseError):
            text = (folder / f"x86_{Path(model).name}.xml").read_text()
            found[model] = frozenset(capabilities.cpu_model_features(text))
    return found
