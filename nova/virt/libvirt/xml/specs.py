"""The specs of a guest and its devices, from which libvirt's XML is built. Memory in MiB; paths are of the host."""

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
    """A processor. ``mode`` none leaves the model to QEMU. ``features``: (policy, name), policy require or disable."""

    vcpus: int
    topology: Topology
    mode: str = "none"
    model: str | None = None
    features: tuple[tuple[str, str], ...] = ()
    tuning: tuple[tuple[str, int], ...] = ()  # (shares | period | quota, value)
    address_mode: str | None = None  # passthrough or emulate: the source of the number of physical address bits
    address_bits: int | None = None


class NodeSpec(NamedTuple):
    """A NUMA node of a guest: its virtual processors, its memory, and the host cell of both. ``page_kb`` None: small
    pages."""

    id: int
    vcpus: tuple[int, ...]
    memory_mib: int
    host_cell: int
    page_kb: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlacementSpec:
    """A guest's placement on its host. Processors are numbered as on the host, virtual ones as in the guest.

    ``cpuset``: the processors of a guest without pins (() : all). ``numa``: the guest sees the nodes.
    ``pins``: virtual processor -> host processors. ``realtime``: virtual processors.
    """

    cpuset: tuple[int, ...] = ()
    nodes: tuple[NodeSpec, ...] = ()
    numa: bool = False
    pins: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    emulator: tuple[int, ...] = ()
    realtime: tuple[int, ...] = ()
    locked: bool = False
    shared_pages: bool = True  # the kernel may merge identical pages of guests (KSM)
    shared_memory: bool = False  # processes of the host (a switch) read and write it


class HostDeviceSpec(NamedTuple):
    """A PCI device of the host. ``managed``: libvirt unbinds it from its host driver and rebinds it later."""

    address: str
    managed: bool = True


class EncryptionSpec(NamedTuple):
    """AMD SEV parameters, from the host's domain capabilities."""

    cbit: int
    reduced_bits: int
    policy: int


class Backing(NamedTuple):
    """The read-only backing file of an overlay, with its format, so that libvirt never probes it."""

    path: str
    format: str


class RbdAccess(NamedTuple):
    """QEMU's access to Ceph: the configuration file (empty: Ceph's default), with the monitors unless ``hosts``
    (address, port) has them, the user, and the uuid of the libvirt secret."""

    conf: str = ""
    user: str = ""
    secret: str = ""
    hosts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class DiskSpec:
    """A disk or CD drive. ``device`` is disk or cdrom, ``boot_order`` 0 means "not booted from".

    ``path`` is a file, a block device, or (with ``rbd``) pool/image. ``alias``: finds the disk in a definition.
    ``chain``: the backing chain is known (``backing``, or none); else libvirt probes it. ``luks``: uuid of the libvirt
    secret with the passphrase of an encrypted disk.
    """

    path: str
    format: str
    target: str
    bus: str
    device: str = "disk"
    block: bool = False
    rbd: RbdAccess | None = None
    cache: str = "none"
    io: str | None = None  # native or threads; None: QEMU's default
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
    """An interface, with libvirt's type: a tap on a bridge (of Open vSwitch, with ``port_id``), a tap alone (ethernet),
    a macvtap (direct), a socket (vhostuser) or a PCI device (hostdev).

    ``source``: attributes of its element, except the bridge; ``pci``: its device's address. ``bare``: the device is
    passed through without network configuration. ``backend`` qemu processes packets in QEMU if the kernel has no vhost.
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
    """The guest's boot source: its disks, or a kernel given directly."""

    arch: str
    machine: str | None = None
    kernel: str | None = None
    ramdisk: str | None = None
    command_line: str | None = None
    menu: bool = False
    efi: bool = False
    secure: bool = False  # with the default keys enrolled, so that it is enforced from the first boot
    stateless: bool = False
    nvram: str | None = None  # the file with the guest's firmware variables


@dataclass(frozen=True, kw_only=True)
class SysinfoSpec:
    """SMBIOS data for the guest. ``serial`` None: no serial number."""

    manufacturer: str
    product: str
    version: str
    serial: str | None
    uuid: str
    family: str


class TpmSpec(NamedTuple):
    """An emulated TPM. ``secret``: uuid of the libvirt secret that encrypts its state."""

    model: str
    version: str
    secret: str | None = None


@dataclass(frozen=True, kw_only=True)
class SpiceSpec:
    """A SPICE screen. ``secure``: only over TLS. ``agent``: the guest has a channel for SPICE's agent. The other fields
    are named after libvirt's elements; None: QEMU's default."""

    listen: str
    secure: bool = False
    agent: bool = True
    image: str | None = None
    jpeg: str | None = None
    zlib: str | None = None
    playback: str | None = None  # on or off
    streaming: str | None = None


class SerialLine(NamedTuple):
    """The address of a serial port: ``host`` with ``port``, or ``path``, a unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class GuestDevices:
    """Devices other than disks and interfaces. None, empty or 0: the guest has none of that kind."""

    serial_ports: int = 1
    console_log: str | None = None
    lines: tuple[SerialLine, ...] = ()  # of the serial ports, in order; the rest are terminals of the host
    vnc_listen: str | None = None
    spice: SpiceSpec | None = None
    video_model: str | None = None
    video_ram_mb: int | None = None
    pointer_bus: str | None = None  # usb or virtio; None: the machine's default mouse
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
    """The machine's features. ``pmu`` None: QEMU's default. ``split_irqchip``: QEMU emulates a part of the interrupt
    controllers, which an IOMMU with interrupt remapping needs."""

    windows: bool = False
    kvm: bool = False
    hide_hypervisor: bool = False
    hpet: bool = False
    pmu: bool | None = None
    split_irqchip: bool = False


@dataclass(frozen=True, kw_only=True)
class NoteSpec:
    """Metadata of the domain for people and monitoring tools; libvirt stores it without interpretation."""

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
    """The complete spec of a guest."""

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
