"""What operators set of this driver, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nova import errors


class BadSetting(errors.Invalid):
    code, message = "config.libvirt", "nova-compute can not run with {option}: {reason}."


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Paths are absolute; times in seconds. ``virt_type`` auto is decided by :mod:`nova.virt.libvirt.kvm`."""

    instances_path: Path
    state_path: Path
    host_ip: str = ""
    uri: str = "qemu:///system"
    virt_type: str = "auto"
    keepalive_s: int = 5
    kvm_probe_timeout_s: int = 5
    cpu_mode: str | None = None
    cpu_model: str | None = None
    cpu_flags: tuple[str, ...] = ()
    machine_types: Mapping[str, str] = field(default_factory=dict)  # by architecture
    sysinfo_serial: str = "unique"
    balloon_period_s: int = 10
    rng_path: str = "/dev/urandom"
    pcie_ports: int = 0
    rx_queue_size: int | None = None
    tx_queue_size: int | None = None
    cow: bool = True
    preallocate: bool = False
    ephemeral_format: str | None = None
    cache_mode: str | None = None  # None: none where the file system can, else writeback
    discard: str | None = None
    config_drive_format: str = "iso9660"
    config_drive_limit_mb: int = 64
    pointer: str = "usbtablet"
    vnc_listen: str | None = "127.0.0.1"
    shutdown_retry_s: int = 10
    tool_cpu_s: int = 600
    tool_memory_mb: int = 1024


def settings_of(default: Any, libvirt: Any, vnc: Any, compute: Any) -> Settings:
    """From the groups ``[DEFAULT]``, ``[libvirt]``, ``[vnc]`` and ``[compute]``. BadSetting names what can't be."""
    if default.flat_injected:
        raise BadSetting(option="flat_injected", reason="nothing is written into guests' file systems; they learn "
                                                        "their network from DHCP or their config drive")
    return Settings(
        instances_path=Path(default.instances_path).absolute(), state_path=Path(default.state_path).absolute(),
        host_ip=str(default.my_ip or ""), uri=libvirt.connection_uri or "qemu:///system", virt_type=libvirt.virt_type,
        keepalive_s=libvirt.keepalive_interval, kvm_probe_timeout_s=libvirt.kvm_probe_timeout,
        cpu_mode=libvirt.cpu_mode, cpu_model=_cpu_model(libvirt), cpu_flags=tuple(libvirt.cpu_model_extra_flags),
        machine_types=_pairs("[libvirt]hw_machine_type", libvirt.hw_machine_type or ()),
        sysinfo_serial=libvirt.sysinfo_serial, balloon_period_s=libvirt.mem_stats_period_seconds,
        rng_path=libvirt.rng_dev_path, pcie_ports=libvirt.num_pcie_ports, rx_queue_size=libvirt.rx_queue_size,
        tx_queue_size=libvirt.tx_queue_size, cow=_cow(default, libvirt),
        preallocate=default.preallocate_images == "space", ephemeral_format=default.default_ephemeral_format,
        cache_mode=_pairs("[libvirt]disk_cachemodes", libvirt.disk_cachemodes).get("file"),
        discard=libvirt.hw_disk_discard, config_drive_format=default.config_drive_format,
        config_drive_limit_mb=default.config_drive_size_limit_mb, pointer=default.pointer_model,
        vnc_listen=str(vnc.server_listen) if vnc.enabled else None, shutdown_retry_s=compute.shutdown_retry_interval,
        tool_cpu_s=libvirt.image_tool_cpu_limit, tool_memory_mb=libvirt.image_tool_memory_limit_mb)


def _cow(default: Any, libvirt: Any) -> bool:
    return default.use_cow_images if libvirt.images_type == "default" else libvirt.images_type == "qcow2"


def _cpu_model(libvirt: Any) -> str | None:
    if libvirt.cpu_mode == "custom" and not libvirt.cpu_models:
        raise BadSetting(option="[libvirt]cpu_mode=custom", reason="[libvirt]cpu_models must name a model then")
    if libvirt.cpu_mode != "custom" and libvirt.cpu_models:
        raise BadSetting(option="[libvirt]cpu_models", reason="it needs cpu_mode=custom")
    return libvirt.cpu_models[0] if libvirt.cpu_models else None


def _pairs(option: str, items: Any) -> dict[str, str]:
    pairs = [item.partition("=") for item in items]
    if not all(key and equals and value for key, equals, value in pairs):
        raise BadSetting(option=option, reason="it must be a list of name=value")
    return {key: value for key, _equals, value in pairs}
