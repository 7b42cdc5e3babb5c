"""Standard extra specs of flavors, and their valid values.

A key is ``namespace:name``. Keys of unknown namespaces are not checked. In a known namespace, a wrong name or value is
an error, which :func:`problem` explains. Source: the public contract of the Compute API, checked from 2.86 on.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from nova.model.placement.traits import RESOURCE_CLASSES, TRAITS, is_resource_class, is_trait


@dataclass(frozen=True)
class ExtraSpecRule:
    """The valid values of an extra spec. ``type``: boolean, integer or string (values are always text)."""

    type: str
    allowed: tuple[str, ...] = ()
    pattern: str | None = None
    min: int | None = None
    max: int | None = None

    def problem(self, value: str) -> str | None:
        """Return the requirement that ``value`` does not meet; None if the value is valid."""
        if self.type == "boolean":
            return None if value.lower() in _BOOLEANS else "must be a boolean (true or false)"
        if self.type == "integer":
            return self._number_problem(value)
        if self.allowed and value not in self.allowed:
            return f"must be one of {', '.join(self.allowed)}"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return f"must have the form {self.pattern}"
        return None

    def _number_problem(self, value: str) -> str | None:
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            return "must be an integer"
        if self.min is not None and int(value) < self.min:
            return f"must be at least {self.min}"
        if self.max is not None and int(value) > self.max:
            return f"must be at most {self.max}"
        return None


def one_of(*allowed: str) -> ExtraSpecRule:
    """Return a rule for text that must be one of the given values."""
    return ExtraSpecRule("string", allowed)


def text(pattern: str) -> ExtraSpecRule:
    """Return a rule for text that must match ``pattern`` as a whole."""
    return ExtraSpecRule("string", pattern=pattern)


_BOOLEANS = frozenset({"1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"})
MOST = 0x7FFF_FFFF_FFFF_FFFF  # for example, bytes a second
MOST_PARTS = 0x7FFF_FFFF  # the most vCPUs of a flavor
#: Prefixes of specs that count parts of a guest.
PARTS = ("hw:numa_nodes", "hw:numa_mem.", "hw:cpu_", "hw:serial_port_count")
FLAG, TEXT, NUMBER = ExtraSpecRule("boolean"), ExtraSpecRule("string"), ExtraSpecRule("integer")
COUNT, POSITIVE = ExtraSpecRule("integer", min=0), ExtraSpecRule("integer", min=1)
CPU_MASK = text(r"\^?\d+(-\d+|,\^?\d+)*")  # unambiguous: no text can match in two ways
TRAIT_WANTED = one_of("required", "forbidden")

#: Name -> (rule, meaning). ``{num}`` matches digits, ``{key}`` any text.
SPECS: dict[str, tuple[ExtraSpecRule, str]] = {
    "accel:device_profile": (TEXT, "name of the accelerator device profile to request"),
    "aggregate_instance_extra_specs:{key}": (TEXT,
        "value that an aggregate of the host must have for this key (AggregateInstanceExtraSpecsFilter)"),
    "hw:cpu_realtime": (FLAG, "run guest CPUs with realtime priority"),
    "hw:cpu_realtime_mask": (CPU_MASK, "guest CPUs that are (or with ^, are not) realtime"),
    "hw:hide_hypervisor_id": (FLAG, "hide the hypervisor from the guest"),
    "hw:cpu_policy": (one_of("dedicated", "shared", "mixed"),
        "shared: CPUs are not pinned; dedicated: CPUs are pinned; mixed: both kinds"),
    "hw:cpu_thread_policy": (one_of("prefer", "isolate", "require"),
        "how pinned CPUs use sibling threads (dedicated only)"),
    "hw:emulator_threads_policy": (one_of("isolate", "share"),
        "where emulator threads run: a pinned CPU of their own (isolate), or a shared set (share)"),
    "hw:cpu_dedicated_mask": (CPU_MASK, "which guest CPUs are pinned under the mixed policy"),
    "hw:mem_page_size": (text(r"(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)"),
        "memory page size: large, small, any, or a size"),
    "hw:locked_memory": (FLAG, "forbid swapping of guest memory (requires a page size)"),
    "hw:numa_nodes": (POSITIVE, "number of guest NUMA nodes"),
    "hw:numa_cpus.{num}": (CPU_MASK, "guest CPUs of guest node num"),
    "hw:numa_mem.{num}": (POSITIVE, "memory in MB of guest node num"),
    "hw:pci_numa_affinity_policy": (one_of("required", "preferred", "legacy", "socket"),
        "NUMA affinity of PCI devices to the guest NUMA nodes"),
    "hw:cpu_sockets": (POSITIVE, "guest CPU sockets"),
    "hw:cpu_cores": (POSITIVE, "guest cores per socket"),
    "hw:cpu_threads": (POSITIVE, "guest threads per core"),
    "hw:cpu_max_sockets": (POSITIVE, "most sockets that an image may request"),
    "hw:cpu_max_cores": (POSITIVE, "most cores that an image may request"),
    "hw:cpu_max_threads": (POSITIVE, "most threads that an image may request"),
    "hw:boot_menu": (FLAG, "show a boot menu"),
    "hw:vif_multiqueue_enabled": (FLAG, "one virtio-net queue per vCPU"),
    "hw:mem_encryption": (FLAG, "encrypt guest memory"),
    "hw:mem_encryption_model": (one_of("amd-sev", "amd-sev-es", "amd-sev-snp"),
        "which CPU feature encrypts guest memory"),
    "hw:pmem": (text(r"[a-zA-Z0-9_]+(,[a-zA-Z0-9_]+)*,?"), "comma-separated list of persistent memory labels"),
    "hw:pmu": (FLAG, "give the guest a performance monitoring unit"),
    "hw:serial_port_count": (COUNT, "number of serial ports"),
    "hw:tpm_model": (one_of("tpm-tis", "tpm-crb"), "virtual TPM model"),
    "hw:tpm_version": (one_of("1.2", "2.0"), "virtual TPM version"),
    "hw:tpm_secret_security": (one_of("user", "host", "deployment"), "who owns the secret of the virtual TPM"),
    "hw:watchdog_action": (one_of("none", "pause", "poweroff", "reset", "disabled"),
        "what the watchdog does when it fires"),
    "hw:viommu_model": (one_of("intel", "smmuv3", "virtio", "auto"), "virtual IOMMU model"),
    "hw:virtio_packed_ring": (FLAG, "offer the packed ring format"),
    "hw:sound_model": (one_of("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio"),
        "sound device model"),
    "hw:usb_model": (one_of("none", "nec-xhci", "qemu-xhci"), "USB controller model"),
    "hw:maxphysaddr_mode": (one_of("passthrough", "emulate"),
        "where the number of physical address bits comes from: the host, or hw:maxphysaddr_bits"),
    "hw:maxphysaddr_bits": (ExtraSpecRule("integer", min=32, max=64),
        "number of physical address bits; hosts must have at least as many"),
    "hw:redirected_usb_ports": (ExtraSpecRule("integer", min=0, max=15), "number of USB redirection ports"),
    "hw:ephemeral_encryption": (FLAG, "encrypt ephemeral disks"),
    "hw:ephemeral_encryption_format": (one_of("plain", "luks", "luksv2"), "format of that encryption"),
    "hw_rng:allowed": (FLAG, "false removes the random number generator device"),
    "hw_rng:rate_bytes": (COUNT, "bytes that the guest may read per period"),
    "hw_rng:rate_period": (COUNT, "length of the rate period in ms"),
    "hw_video:ram_max_mb": (COUNT, "largest hw_video_ram that an image may request, in MB"),
    "hide_hypervisor_id": (FLAG, "old name of hw:hide_hypervisor_id"),
    "group_policy": (one_of("isolate", "none"),
        "whether numbered resource groups must come from different providers (isolate) or need not (none)"),
    "os:secure_boot": (one_of("disabled", "required"), "whether secure boot is required or disabled"),
    "pci_passthrough:alias": (text(r"[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*"),
        "comma-separated list of alias:count pairs of PCI devices"),
    "quota:cpu_limit": (COUNT, "CPU limit in MHz"),
    "quota:cpu_reservation": (NUMBER, "guaranteed CPU in MHz"),
    "quota:cpu_shares_level": (one_of("custom", "high", "normal", "low"), "CPU share level"),
    "quota:cpu_shares_share": (COUNT, "CPU share number when the level is custom"),
    "quota:memory_limit": (COUNT, "memory limit in MB"),
    "quota:memory_reservation": (NUMBER, "guaranteed memory in MB"),
    "quota:memory_shares_level": (one_of("custom", "high", "normal", "low"), "memory share level"),
    "quota:memory_shares_share": (COUNT, "memory share number when the level is custom"),
    "quota:disk_io_limit": (COUNT, "limit of disk operations per second"),
    "quota:disk_io_reservation": (NUMBER, "guaranteed disk operations per second"),
    "quota:disk_io_shares_level": (one_of("custom", "high", "normal", "low"), "disk share level"),
    "quota:disk_io_shares_share": (COUNT, "disk share number when the level is custom"),
    "quota:vif_limit": (COUNT, "network limit in Mbit/s"),
    "quota:vif_reservation": (NUMBER, "guaranteed network bandwidth in Mbit/s"),
    "quota:vif_shares_level": (one_of("custom", "high", "normal", "low"), "network share level"),
    "quota:vif_shares_share": (COUNT, "network share number when the level is custom"),
    "quota:cpu_shares": (COUNT, "CPU weight (cgroup)"),
    "quota:cpu_period": (COUNT, "CPU bandwidth period in microseconds"),
    "quota:cpu_quota": (NUMBER, "CPU time per period in microseconds"),
    "quota:disk_read_bytes_sec": (COUNT, "limit of bytes read per second, for each disk"),
    "quota:disk_read_iops_sec": (COUNT, "limit of read operations per second, for each disk"),
    "quota:disk_write_bytes_sec": (COUNT, "limit of bytes written per second, for each disk"),
    "quota:disk_write_iops_sec": (COUNT, "limit of write operations per second, for each disk"),
    "quota:disk_total_bytes_sec": (COUNT, "limit of bytes read and written per second, for each disk"),
    "quota:disk_total_iops_sec": (COUNT, "limit of operations per second, for each disk"),
    "quota:vif_inbound_average": (COUNT, "average inbound rate in kB/s, for each interface"),
    "quota:vif_inbound_peak": (COUNT, "peak inbound rate in kB/s, for each interface"),
    "quota:vif_inbound_burst": (COUNT, "inbound burst in kB, for each interface"),
    "quota:vif_outbound_average": (COUNT, "average outbound rate in kB/s, for each interface"),
    "quota:vif_outbound_peak": (COUNT, "peak outbound rate in kB/s, for each interface"),
    "quota:vif_outbound_burst": (COUNT, "outbound burst in kB, for each interface"),
    "vmware:hw_version": (TEXT, "virtual hardware version"),
    "vmware:storage_policy": (TEXT, "storage policy name"),
}

#: Host facts that ``capabilities:`` can query; those in the second set take a path into them after a colon.
CAPABILITIES = frozenset({
    "id", "uuid", "service_id", "host", "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used",
    "local_gb_used", "hypervisor_type", "hypervisor_version", "hypervisor_hostname", "free_ram_mb", "free_disk_gb",
    "current_workload", "running_vms", "disk_available_least", "host_ip", "mapped", "cpu_allocation_ratio",
    "ram_allocation_ratio", "disk_allocation_ratio", "total_usable_ram_mb", "total_usable_disk_gb", "disk_mb_used",
    "free_disk_mb", "vcpus_total", "num_instances", "num_io_ops", "failed_builds", "aggregates", "cell_uuid",
    "updated"})
NESTED_CAPABILITIES = frozenset({
    "cpu_info", "metrics", "stats", "numa_topology", "supported_hv_specs", "pci_device_pools", "nodename", "pci_stats",
    "supported_instances", "limits", "instances"})

#: ``resources1:VCPU``, ``trait_net:HW_NIC_SRIOV``: a group of up to 64 characters may follow the namespace.
_GROUPED = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{0,64})")
ALIKE = 0.8  # similarity of a wrong and a right name, from which on the right one is suggested
_PLACEHOLDERS = {"{num}": r"\d+", "{key}": ".+"}


def _as_pattern(name: str) -> re.Pattern[str]:
    form = re.escape(name)
    for placeholder, pattern in _PLACEHOLDERS.items():
        form = form.replace(re.escape(placeholder), pattern)
    return re.compile(form)


_PATTERNS = [(_as_pattern(name), rule) for name, (rule, _) in SPECS.items() if "{" in name]
NAMESPACES = frozenset({name.partition(":")[0] for name in SPECS if ":" in name} | {"capabilities"})


def problem(key: str, value: str) -> str | None:
    """Return the error of an extra spec, as a message for the user who set it; None if it is valid."""
    namespace, colon, name = key.partition(":")
    grouped = _GROUPED.fullmatch(namespace) if colon else None
    if grouped and grouped[1] == "trait":
        return _known(key, name, TRAITS, is_trait(name)) or _value_problem(key, TRAIT_WANTED, value)
    if grouped:
        return _known(key, name, RESOURCE_CLASSES, is_resource_class(name)) or _value_problem(key, NUMBER, value)
    if colon and namespace == "capabilities":
        return _known(key, name, CAPABILITIES | NESTED_CAPABILITIES, _is_capability(name))
    rule = _rule(key)
    if rule is not None:
        return _value_problem(key, rule, value)
    return _known(key, key, frozenset(SPECS), False) if colon and namespace in NAMESPACES else None


def beyond(key: str, value: str) -> str | None:
    """Return the error of a number that no host can satisfy; None for every other value."""
    rule = _rule(key)
    if rule is None or rule.type != "integer" or not re.fullmatch(r"-?[0-9]+", value):
        return None
    most = MOST_PARTS if key.startswith(PARTS) else MOST
    return None if len(value) <= 20 and abs(int(value)) <= most else \
        f"the value {value!r} of extra spec {key} exceeds {most}"


def _rule(key: str) -> ExtraSpecRule | None:
    if key in SPECS and "{" not in key:
        return SPECS[key][0]
    return next((rule for pattern, rule in _PATTERNS if pattern.fullmatch(key)), None)


def _is_capability(name: str) -> bool:
    return name in CAPABILITIES or name.partition(":")[0] in NESTED_CAPABILITIES


def _value_problem(key: str, rule: ExtraSpecRule, value: str) -> str | None:
    wrong = rule.problem(value)
    return None if wrong is None else f"the value {value!r} of extra spec {key} {wrong}"


def _known(key: str, name: str, names: frozenset[str], known: bool) -> str | None:
    if known:
        return None
    near = difflib.get_close_matches(name, sorted(names - {name}), n=1, cutoff=ALIKE)
    return f"unknown extra spec {key}" + (f"; did you mean {key[:len(key) - len(name)]}{near[0]}?" if near else "")
