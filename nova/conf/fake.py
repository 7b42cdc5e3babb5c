"""``[fake]``: the driver without a hypervisor, for tests, load and a cloud on a laptop."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "fake"

OPTS = [
    cfg.IntOpt("nodes", default=1, min=1, max=1000,
               help="How many nodes (hypervisors) this nova-compute pretends to have. Each gets the resources below."),
    cfg.IntOpt("vcpus", default=1000, min=1, help="Virtual CPUs of each node."),
    cfg.IntOpt("memory_mb", default=800000, min=1, help="Memory of each node in MB."),
    cfg.IntOpt("local_gb", default=600000, min=1, help="Disk of each node in GB."),
    cfg.StrOpt("topology", default="",
               help="The layout of each node's processors, memory and devices, as \"2 cells x 4 cpus x 8192 MB, 2 "
                    "dedicated, 2 threads, 64 x 2048 KB pages, 2 devices\". These are: cells with processors and "
                    "memory each; pinned processors of a cell (the default is half of them); threads of a core. "
                    "Then huge pages of each cell; PCI devices, over all cells. It stands above vcpus and memory_mb. "
                    "Unset: the "
                    "node has none to tell of."),
    cfg.BoolOpt("devices_in_placement", default=False,
                help="Report each of the topology's devices as a provider below the node, as a real host does with "
                     "[pci]report_in_placement."),
    cfg.FloatOpt("boot_delay", default=0.0, min=0.0,
                 help="Seconds that starting or rebooting a guest takes, or changing a password in it. Real hypervisors "
                      "need about one."),
    cfg.FloatOpt("live_migration_time", default=0.0, min=0.0,
                 help="Seconds that sending a running guest to another host takes."),
    cfg.BoolOpt("keep_state", default=True,
                help="Keep the guests in files under state_path/fake, so that they survive nova-compute, as real "
                     "guests do. Without it they end with the process."),
]
