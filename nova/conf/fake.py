"""``[fake]``: the driver without a hypervisor, for tests, load tests and a cloud on a laptop."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "fake"

OPTS = [
    cfg.IntOpt("nodes", default=1, min=1, max=1000,
               help="Number of nodes (hypervisors) that this nova-compute simulates. Each has the resources below."),
    cfg.IntOpt("vcpus", default=1000, min=1, help="Virtual CPUs of each node."),
    cfg.IntOpt("memory_mb", default=800000, min=1, help="Memory of each node in MB."),
    cfg.IntOpt("local_gb", default=600000, min=1, help="Disk of each node in GB."),
    cfg.StrOpt("topology", default="",
               help="Layout of each node's CPUs, memory and devices, as \"2 cells x 4 cpus x 8192 MB, 2 dedicated, 2 "
                    'threads, 64 x 2048 KB pages, 2 devices". The parts are: NUMA cells with CPUs and memory each; '
                    "pinned CPUs of a cell (default: half of them); threads of a core. Then huge pages of each cell; "
                    "PCI devices, over all cells. It takes precedence over vcpus and memory_mb. Unset: the node "
                    "reports no topology."),
    cfg.BoolOpt("devices_in_placement", default=False,
                help="Report each of the topology's devices as a provider below the node, as a real host does with "
                     "[pci]report_in_placement."),
    cfg.FloatOpt("boot_delay", default=0.0, min=0.0,
                 help="Seconds that starting or rebooting a guest takes, or changing its password. Real hypervisors "
                      "need about one."),
    cfg.FloatOpt("live_migration_time", default=0.0, min=0.0,
                 help="Seconds that a live migration to another host takes."),
    cfg.BoolOpt("keep_state", default=True,
                help="Store the guests in files under state_path/fake, so that they survive a restart of "
                     "nova-compute, like real guests. Off: they end with the process."),
]


class FakeOptions(Section, frozen=True, kw_only=True):
    """Values of ``[fake]``."""

    nodes: int
    vcpus: int
    memory_mb: int
    local_gb: int
    topology: str
    devices_in_placement: bool
    boot_delay: float
    live_migration_time: float
    keep_state: bool
