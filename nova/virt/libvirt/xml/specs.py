"""What a guest is made of, as libvirt must be told. Memory in MiB; paths are of the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Topology(NamedTuple):
    sockets: int
    cores: int
    threads: int


@dataclass(frozen=True, kw_only=True)
class CpuSpec:
    """``mode`` none leaves the model to QEMU. ``features`` are (policy, name) pairs, policy require or disable."""

    vcpus: int
    topology: Topology
    mode: str = "none"
    model: str | None = None
    features: tuple[tuple[str, str], ...] = ()
    tuning: tuple[tuple[str, int], ...] = ()  # (shares | period | quota, value)
    address_mode: str | None = None  # passthrough or emulate: where the number of physical address bits comes from
    address_bits: int | None = None


class NodeSpec(NamedTuple):
    """A NUMA node of a guest: its virtual processors, its memory, and the host's cell that both are on. ``page_kb``
    None: small pages."""

    id: int
    vcpus: tuple[int, ...]
    memory_mib: int
    host_cell: int
    page_kb: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlacementSpec:
    """Where on its host a guest runs. Processors are the host's numbers, virtual ones the guest's.

    ``cpuset``: of a guest that holds nothing, where it may float (() : everywhere). ``numa``: the guest sees the nodes.
    ``pins``: virtual processor -> where it may run. ``realtime``: virtual processors.
    """

    cpuset: tuple[int, ...] = ()
    nodes: tuple[NodeSpec, ...] = ()
    numa: bool = False
    pins: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    emulator: tuple[int, ...] = ()
    realtime: tuple[int, ...] = ()
    locked: bool = False
    shared_pages: bool = True  # the kernel may merge them with other guests' same ones
    shared_memory: bool = False  # processes of the host's (a switch) read and write it


class HostDeviceSpec(NamedTuple):
    """A PCI device of the host's. ``managed``: libvirt takes it from its driver and gives it back."""

    address: str
    managed: bool = True


class EncryptionSpec(NamedTuple):
    """AMD SEV: as libvirt's domain capabilities say of the host."""

    cbit: int
    reduced_bits: int
    policy: int


class Backing(NamedTuple):
    """The read-only file that an overlay shows where it was not written to. Named so that libvirt never guesses."""

    path: str
    format: str


class RbdAccess(NamedTuple):
    """How QEMU reaches Ceph: its configuration file (empty: Ceph's own choice), which has the monitors unless ``hosts``
    (address, port) names them, and as whom, with which of libvirt's secrets."""

    conf: str = ""
    user: str = ""
    secret: str = ""
    hosts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class DiskSpec:
    """One disk or CD. ``device`` is disk or cdrom, ``boot_order`` 0 means "not booted from".

    ``path`` is a file, a block device, or (with ``rbd``) pool/image. ``alias``: by what the disk is found again in a
    definition. ``chain``: what lies under it is known (``backing``, or nothing); else libvirt looks. ``luks``: uuid of
    libvirt's secret with the passphrase of what is encrypted.
    """

    path: str
    format: str
    target: str
    bus: str
    device: str = "disk"
    block: bool = False
    rbd: RbdAccess | None = None
    cache: str = "none"
    io: str | None = None  # native or threads; None leaves it to QEMU
    discard: str | None = None
    serial: str | None = None
    boot_order: int = 0
    backing: Backing | None = None
    packed: bool = False
    throttle: tuple[tuple[str, int], ...] = ()  # (element of iotune, value)
    alias: str | None = None
    readonly: bool = False
    shareable: bool = False
    blocks: tuple[int | None, int | None] = (None, None)  # bytes: logical, physical
    chain: bool = True
    luks: str | None = None


@dataclass(frozen=True, kw_only=True)
class VifSpec:
    """An interface, as libvirt's types are called: a tap on a bridge (of Open vSwitch, with ``port_id``), a tap alone
    (ethernet), a macvtap (direct), a socket (vhostuser) or a PCI device (hostdev). ``source``: attributes of its
    element, beside the bridge; ``pci``: its device's address. ``bare``: the device is handed over as it is, without
    a word about networks. ``backend`` qemu keeps the packets in QEMU where the kernel has no vhost.
    """

    mac: str
    bridge: str = ""
    device: str = ""
    type: str = "bridge"
    source: Mapping[str, str] = field(default_factory=dict)
    port_id: str | None = None
    pci: str | None = None
    bare: bool = False
    vlan: int | None = None
    model: str = "virtio"
    mtu: int | None = None
    queues: int = 1
    backend: str | None = None
    rx_queue_size: int | None = None
    tx_queue_size: int | None = None
    packed: bool = False
    bandwidth: Mapping[str, Mapping[str, int]] | None = None  # inbound/outbound -> average, peak, burst


@dataclass(frozen=True, kw_only=True)
class BootSpec:
    """From what the guest starts: its disks, or a kernel given directly."""

    arch: str
    machine: str | None = None
    kernel: str | None = None
    ramdisk: str | None = None
    command_line: str | None = None
    menu: bool = False
    efi: bool = False
    secure: bool = False  # with the usual keys enrolled, so that it is in force from the first boot
    stateless: bool = False
    nvram: str | None = None  # where the guest's own variables of the firmware are kept


@dataclass(frozen=True, kw_only=True)
class SysinfoSpec:
    """SMBIOS facts that guests read. ``serial`` None: none is given."""

    manufacturer: str
    product: str
    version: str
    serial: str | None
    uuid: str
    family: str


class TpmSpec(NamedTuple):
    """An emulated TPM. ``secret``: uuid of libvirt's secret that its state is encrypted with."""

    model: str
    version: str
    secret: str | None = None


@dataclass(frozen=True, kw_only=True)
class SpiceSpec:
    """A screen over SPICE. ``secure``: over TLS alone. ``agent``: the guest has a channel for SPICE's agent. The rest
    is named as libvirt's elements are; None leaves it to QEMU."""

    listen: str
    secure: bool = False
    agent: bool = True
    image: str | None = None
    jpeg: str | None = None
    zlib: str | None = None
    playback: str | None = None  # on or off
    streaming: str | None = None


class SerialLine(NamedTuple):
    """Where a serial port is served: ``host`` with ``port``, or ``path``, a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class GuestDevices:
    """Devices beside disks and interfaces. None, empty or 0: the guest has none of that kind."""

    serial_ports: int = 1
    console_log: str | None = None
    lines: tuple[SerialLine, ...] = ()  # of the serial ports, in their order; the others are the host's own to open
    vnc_listen: str | None = None
    spice: SpiceSpec | None = None
    video_model: str | None = None
    video_ram_mb: int | None = None
    pointer_bus: str | None = None  # usb or virtio; None: the machine's own mouse
    rng_path: str | None = None
    rng_bytes: int | None = None
    rng_period_ms: int | None = None
    balloon_period_s: int = 0
    watchdog_action: str | None = None
    agent: bool = False
    sound_model: str | None = None
    usb_model: str | None = None
    scsi_model: str | None = None
    pcie_ports: int = 0
    tpm: TpmSpec | None = None
    iommu: str | None = None  # intel, virtio or smmuv3


@dataclass(frozen=True, kw_only=True)
class PlatformSpec:
    """What the machine tells of itself. ``pmu`` None leaves it to QEMU. ``split_irqchip``: what remaps interrupts
    (an IOMMU) must do its part of their controllers."""

    windows: bool = False
    kvm: bool = False
    hide_hypervisor: bool = False
    hpet: bool = False
    pmu: bool | None = None
    split_irqchip: bool = False


@dataclass(frozen=True, kw_only=True)
class NoteSpec:
    """What is noted in the domain for people and monitoring tools; libvirt keeps it and understands none of it."""

    release: str
    name: str
    created_at: str
    flavor_name: str
    flavor: tuple[tuple[str, int], ...]  # memory, disk, swap, ephemeral, vcpus
    user_id: str
    project_id: str
    image_id: str | None


@dataclass(frozen=True, kw_only=True)
class GuestSpec:
    """A whole guest."""

    virt_type: str
    name: str
    uuid: str
    memory_mib: int
    cpu: CpuSpec
    boot: BootSpec
    sysinfo: SysinfoSpec
    note: NoteSpec
    platform: PlatformSpec
    devices: GuestDevices
    disks: tuple[DiskSpec, ...] = ()
    vifs: tuple[VifSpec, ...] = ()
    placement: PlacementSpec = PlacementSpec()
    host_devices: tuple[HostDeviceSpec, ...] = ()
    encryption: EncryptionSpec | None = None
