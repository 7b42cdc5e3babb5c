"""A server's topology and diagnostics as the API shows them."""

from __future__ import annotations

from nova.api.view import LEFT_OUT, Free, Out, View
from nova.model.server.diagnostics import CpuUse, Diagnostics, DiskUse, NicUse
from nova.model.server.server_parts import NumaNode
from nova.model.server.states import PowerState

HOST = "host"  # flag: policy topology:host:index

NODE = View(
    Out("memory_mb", "memory_mb"),
    Out("vcpu_set", "vcpus"),
    Out("siblings", "siblings"),
    Out("host_node", lambda node, req: LEFT_OUT if node.host_node is None else node.host_node, flag=HOST,
        optional=True, type="integer"),
    Out("cpu_pinning", lambda node, req: _pinning(node), flag=HOST, optional=True, type=Free("integer")),
    of=NumaNode,
)


def _pinning(node: NumaNode) -> object:
    return {str(guest): host for guest, host in node.cpu_pinning.items()} or LEFT_OUT


# diagnostics

#: Names of power states in the standard form.
STATES = {PowerState.NOSTATE: "pending", PowerState.RUNNING: "running", PowerState.PAUSED: "paused",
          PowerState.SHUTDOWN: "shutdown", PowerState.CRASHED: "crashed", PowerState.SUSPENDED: "suspended"}

_CPU = View(Out("id", "id"), Out("time", "time_ns"), Out("utilisation", "utilisation"), of=CpuUse)
_NIC = View(Out("mac_address", "mac"), *(Out(name, name) for name in (
    "rx_octets", "rx_packets", "rx_errors", "rx_drop", "rx_rate",
    "tx_octets", "tx_packets", "tx_errors", "tx_drop", "tx_rate")), of=NicUse)
_DISK = View(Out("errors_count", "errors"), *(Out(name, name) for name in (
    "read_bytes", "read_requests", "write_bytes", "write_requests")), of=DiskUse)

DIAGNOSTICS = View(
    Out("state", lambda diagnostics, req: STATES[diagnostics.power_state], type="string"),
    Out("driver", "driver"),
    Out("hypervisor", "hypervisor"),
    Out("hypervisor_os", "hypervisor_os"),
    Out("uptime", "uptime_s"),
    Out("config_drive", "config_drive"),
    Out("num_cpus", lambda diagnostics, req: len(diagnostics.cpus), type="integer"),
    Out("num_nics", lambda diagnostics, req: len(diagnostics.nics), type="integer"),
    Out("num_disks", lambda diagnostics, req: len(diagnostics.disks), type="integer"),
    Out("cpu_details", lambda diagnostics, req: _CPU.all(diagnostics.cpus, req), type=[_CPU]),
    Out("nic_details", lambda diagnostics, req: _NIC.all(diagnostics.nics, req), type=[_NIC]),
    Out("disk_details", lambda diagnostics, req: _DISK.all(diagnostics.disks, req), type=[_DISK]),
    Out("memory_details", lambda diagnostics,
        req: {"maximum": diagnostics.memory_max_mb, "used": diagnostics.memory_used_mb},
        type={"maximum": ("integer", "null"), "used": ("integer", "null")}),
    of=Diagnostics,
)

#: Old form: suffix of a device's name -> field.
_OLD_NIC = {"_rx": "rx_octets", "_rx_packets": "rx_packets", "_rx_errors": "rx_errors", "_rx_drop": "rx_drop",
            "_tx": "tx_octets", "_tx_packets": "tx_packets", "_tx_errors": "tx_errors", "_tx_drop": "tx_drop"}
_OLD_DISK = {"_read": "read_bytes", "_read_req": "read_requests", "_write": "write_bytes",
             "_write_req": "write_requests", "_errors": "errors"}


def old_diagnostics(diagnostics: Diagnostics) -> dict[str, int]:
    """Return one flat object in the form of libvirt's driver: device names in the keys, memory in KiB, -1 if
    unknown."""
    flat: dict[str, int] = {f"cpu{cpu.id or 0}_time": _known(cpu.time_ns) for cpu in diagnostics.cpus}
    for disk in diagnostics.disks:
        flat |= {f"{disk.device}{suffix}": _known(getattr(disk, field)) for suffix, field in _OLD_DISK.items()}
    for nic in diagnostics.nics:
        flat |= {f"{nic.device}{suffix}": _known(getattr(nic, field)) for suffix, field in _OLD_NIC.items()}
    if diagnostics.memory_max_mb is not None:
        flat["memory"] = diagnostics.memory_max_mb * 1024
    if diagnostics.memory_used_mb is not None:
        flat["memory-actual"] = diagnostics.memory_used_mb * 1024
    return flat


def _known(number: int | None) -> int:
    return -1 if number is None else number
