"""Operators' settings of the libvirt driver, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nova import errors
from nova.conf._options import Options, oslo_conf
from nova.conf.compute_section import ComputeOptions
from nova.conf.libvirt import LibvirtOptions
from nova.conf.pci import PciOptions
from nova.conf.vnc import VncOptions
from nova.distribution import Distribution, distribution
from nova.model.base import Library
from nova.virt.libvirt.settings.bricks import BrickSettings
from nova.virt.libvirt.settings.consoles import ConsoleSettings
from nova.virt.libvirt.settings.moves import MoveSettings, move_settings_of
from nova.virt.libvirt.settings.placing import Placing, placing_of

CACHE_MODES = ("default", "none", "writethrough", "writeback", "directsync", "unsafe")


@dataclass(frozen=True, kw_only=True)
class LibvirtSettings:
    """Settings of the driver. Paths are absolute; times in seconds. :mod:`nova.privileged.kvm` resolves ``virt_type``
    auto."""

    instances_path: Path
    state_path: Path
    config_folders: tuple[Path, ...] = ()  # of nova.conf and similar, where tools write files of this host
    distribution: Distribution = Distribution()
    host_ip: str = ""
    storage_ip: str = ""  # on the storage network
    uri: str = "qemu:///system"
    virt_type: str = "auto"
    keepalive_s: int = 5
    kvm_probe_timeout_s: int = 5
    cpu_mode: str | None = None
    cpu_models: tuple[str, ...] = ()  # in the order in which they are tried
    cpu_flags: tuple[str, ...] = ()
    machine_types: Mapping[str, str] = field(default_factory=dict)  # by architecture
    sysinfo_serial: str = "unique"
    balloon_period_s: int = 10
    rng_path: str = "/dev/urandom"
    pcie_ports: int = 0
    rx_queue_size: int | None = None
    tx_queue_size: int | None = None
    cow: bool = True
    store: str = "file"  # disk storage: file, lvm or rbd
    place: str = ""  # the volume group or pool
    volume_clear: str = "zero"
    volume_clear_mb: int = 0
    rbd_user: str = ""
    rbd_conf: str = ""
    rbd_secret: str = ""
    rbd_connect_s: int = 5
    snapshot_pool: str = ""  # of images of servers; empty: they are uploaded
    rbd_retries: int = 12
    rbd_retry_s: int = 5
    preallocate: bool = False
    ephemeral_format: str | None = None
    cache_mode: str | None = None  # of files; None: none if the file system supports it, else writeback
    block_cache_mode: str = "none"
    network_cache_mode: str = "none"
    discard: str | None = None
    snapshot_format: str | None = None  # None: that of the guest's disk
    config_drive_format: str = "iso9660"
    config_drive_limit_mb: int = 64
    pointer: str = "usbtablet"
    vnc_listen: str | None = "127.0.0.1"  # None: no screens over VNC
    flat_interface: str | None = None
    vlan_interface: str | None = None
    swtpm: bool = False
    tpm_path: Path = Path("/var/lib/libvirt/swtpm")  # libvirt's default
    shutdown_retry_s: int = 10
    detach_attempts: int = 8  # how often a guest is asked to release a device
    detach_timeout_s: float = 20.0  # for each attempt
    mount_base: Path = Path("/var/lib/nova/mnt")  # of NFS exports with volumes
    mount_options: str = ""
    default_volume_io: bool = False  # use QEMU's default I/O mode
    tool_cpu_s: int = 600
    tool_memory_mb: int = 1024
    consoles: ConsoleSettings = field(default_factory=ConsoleSettings)
    moves: MoveSettings = field(default_factory=MoveSettings)
    placing: Placing = field(default_factory=Placing)
    brick: BrickSettings = BrickSettings()

    @property
    def is_session(self) -> bool:
        """Return whether libvirt is an unprivileged user's session daemon, which cannot create network devices."""
        return self.uri.endswith("/session")


def settings_of(default: Options, libvirt: LibvirtOptions, vnc: VncOptions, compute: ComputeOptions,
                pci: PciOptions | None = None) -> LibvirtSettings:
    """Return the settings from ``[DEFAULT]``, ``[libvirt]``, ``[vnc]``, ``[compute]`` and ``[pci]``. Raises Invalid,
    which names the option."""
    folders = tuple(dict.fromkeys(Path(file).absolute().parent for file in oslo_conf(default).config_file or ()))
    return LibvirtSettings(
        instances_path=Path(default.instances_path).absolute(), state_path=Path(default.state_path).absolute(),
        config_folders=folders, distribution=distribution(folders),
        host_ip=str(default.my_ip or ""), storage_ip=str(default.my_block_storage_ip or ""),
        uri=libvirt.connection_uri or "qemu:///system", virt_type=libvirt.virt_type,
        keepalive_s=libvirt.keepalive_interval, kvm_probe_timeout_s=libvirt.kvm_probe_timeout,
        cpu_mode=libvirt.cpu_mode, cpu_models=_cpu_models(libvirt), cpu_flags=tuple(libvirt.cpu_model_extra_flags),
        machine_types=_pairs("[libvirt]hw_machine_type", libvirt.hw_machine_type or ()),
        sysinfo_serial=libvirt.sysinfo_serial, balloon_period_s=libvirt.mem_stats_period_seconds,
        rng_path=libvirt.rng_dev_path, pcie_ports=libvirt.num_pcie_ports, rx_queue_size=libvirt.rx_queue_size,
        tx_queue_size=libvirt.tx_queue_size, cow=_cow(default, libvirt), **_store(libvirt),
        preallocate=default.preallocate_images == "space", ephemeral_format=default.default_ephemeral_format,
        **_cache_modes(libvirt),
        flat_interface=default.flat_interface, vlan_interface=default.vlan_interface,
        discard=libvirt.hw_disk_discard, snapshot_format=libvirt.snapshot_image_format,
        config_drive_format=default.config_drive_format,
        config_drive_limit_mb=default.config_drive_size_limit_mb, pointer=default.pointer_model,
        vnc_listen=str(vnc.server_listen) if vnc.enabled else None, swtpm=libvirt.swtpm_enabled,
        shutdown_retry_s=compute.shutdown_retry_interval,
        detach_attempts=libvirt.device_detach_attempts, detach_timeout_s=libvirt.device_detach_timeout,
        mount_base=Path(libvirt.nfs_mount_point_base).absolute(), mount_options=libvirt.nfs_mount_options or "",
        default_volume_io=libvirt.use_default_aio_mode_for_volumes,
        tool_cpu_s=libvirt.image_tool_cpu_limit, tool_memory_mb=_tool_memory_mb(libvirt),
        moves=move_settings_of(default, libvirt), placing=placing_of(default, libvirt, compute, pci))


def _tool_memory_mb(libvirt: LibvirtOptions) -> int:
    """Return qemu-img's memory limit, from this project's own option or from upstream's, which is in GiB."""
    own = libvirt.image_tool_memory_limit_mb
    return int(own if own is not None else libvirt.images_address_space_limit * 1024)


def _cow(default: Options, libvirt: LibvirtOptions) -> bool:
    return default.use_cow_images if libvirt.images_type == "default" else libvirt.images_type == "qcow2"


def _store(libvirt: LibvirtOptions) -> dict[str, Library]:
    """Return the settings of disk storage."""
    if libvirt.images_type == "lvm":
        if not libvirt.images_volume_group:
            raise errors.config.Libvirt(option="[libvirt]images_type",
                                        reason="with lvm, [libvirt]images_volume_group must name a volume group")
        return {"store": "lvm", "place": libvirt.images_volume_group, "volume_clear": libvirt.volume_clear,
                "volume_clear_mb": libvirt.volume_clear_size}
    rbd = {"rbd_user": libvirt.rbd_user or "", "rbd_conf": libvirt.images_rbd_ceph_conf,
           "rbd_secret": libvirt.rbd_secret_uuid or "", "rbd_connect_s": libvirt.rbd_connect_timeout,
           "rbd_retries": libvirt.rbd_destroy_volume_retries, "rbd_retry_s": libvirt.rbd_destroy_volume_retry_interval}
    if libvirt.images_type != "rbd":
        return rbd
    if libvirt.rbd_user and not libvirt.rbd_secret_uuid:
        raise errors.config.Libvirt(option="[libvirt]rbd_user",
                                    reason="[libvirt]rbd_secret_uuid must name the libvirt secret with its key")
    if libvirt.images_rbd_snapshot_pool == libvirt.images_rbd_pool:
        raise errors.config.Libvirt(option="[libvirt]images_rbd_snapshot_pool",
                                    reason="it is the pool of the guests' disks; use another pool for images")
    return {"store": "rbd", "place": libvirt.images_rbd_pool, "snapshot_pool": libvirt.images_rbd_snapshot_pool, **rbd}


def _cache_modes(libvirt: LibvirtOptions) -> dict[str, Library]:
    """Return the cache modes by disk type: file, block or network (mount, of older files, is ignored)."""
    option = "[libvirt]disk_cachemodes"
    fields = {"file": "cache_mode", "block": "block_cache_mode", "network": "network_cache_mode"}
    found = _pairs(option, libvirt.disk_cachemodes)
    for kind, mode in found.items():
        if kind not in (*fields, "mount") or mode not in CACHE_MODES:
            raise errors.config.Libvirt(option=option, reason="each item must be file, block or network, =, and one of "
                                        f"{', '.join(CACHE_MODES)}")
    return {fields[kind]: mode for kind, mode in found.items() if kind in fields}


def _cpu_models(libvirt: LibvirtOptions) -> tuple[str, ...]:
    if libvirt.cpu_mode == "custom" and not libvirt.cpu_models:
        raise errors.config.Libvirt(option="[libvirt]cpu_mode",
                                    reason="with custom, [libvirt]cpu_models must name a model")
    if libvirt.cpu_mode != "custom" and libvirt.cpu_models:
        raise errors.config.Libvirt(option="[libvirt]cpu_models", reason="it needs cpu_mode=custom")
    return tuple(libvirt.cpu_models)


def _pairs(option: str, items: Library) -> dict[str, str]:
    pairs = [item.partition("=") for item in items]
    if not all(key and equals and value for key, equals, value in pairs):
        raise errors.config.Libvirt(option=option, reason="it must be a list of name=value")
    return {key: value for key, _equals, value in pairs}
