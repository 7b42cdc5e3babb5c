"""``[DEFAULT]`` options of nova-compute: what one host offers, and how it keeps its guests."""

from __future__ import annotations

import datetime

from oslo_config import cfg

from nova.conf._span import TimeSpan

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("compute_driver",
               help="The hypervisor driver, as module.Class below nova.virt: libvirt.LibvirtDriver for KVM and QEMU, "
                    "fake.FakeDriver for a cloud without guests. Names of other releases are accepted."),
    cfg.StrOpt("instances_path", default="$state_path/instances",
               help="Where guests' disks and the image cache lie. Needs the space that flavors promise."),
    cfg.HostAddressOpt("my_block_storage_ip", default="$my_ip",
                       help="This host's address on the network of volumes: Cinder lets it reach iSCSI targets there."),
    # What the host offers to the scheduler.
    cfg.FloatOpt("cpu_allocation_ratio", min=0.0,
                 help="Virtual CPUs promised for each real one. Unset: initial_cpu_allocation_ratio."),
    cfg.FloatOpt("ram_allocation_ratio", min=0.0,
                 help="Memory promised for each MB there is. Unset: initial_ram_allocation_ratio. Above 1.0 guests may "
                      "be killed for lack of memory."),
    cfg.FloatOpt("disk_allocation_ratio", min=0.0,
                 help="Disk promised for each GB there is. Unset: initial_disk_allocation_ratio."),
    cfg.FloatOpt("initial_cpu_allocation_ratio", default=4.0, min=0.0,
                 help="Used where cpu_allocation_ratio is unset."),
    cfg.FloatOpt("initial_ram_allocation_ratio", default=1.0, min=0.0,
                 help="Used where ram_allocation_ratio is unset."),
    cfg.FloatOpt("initial_disk_allocation_ratio", default=1.0, min=0.0,
                 help="Used where disk_allocation_ratio is unset."),
    cfg.IntOpt("reserved_host_memory_mb", default=512, min=0, help="MB of memory kept for the host itself."),
    cfg.IntOpt("reserved_host_disk_mb", default=0, min=0, help="MB of disk kept for the host itself."),
    cfg.IntOpt("reserved_host_cpus", default=0, min=0, help="CPUs kept for the host itself."),
    cfg.MultiStrOpt("reserved_huge_pages", default=[],
                    help="Huge pages of a cell that are not for guests, as node:0,size:2048,count:64 (size in KiB, or "
                         "with a unit: 1GB). May be given several times."),
    cfg.IntOpt("update_resources_interval", default=0,
               help="Seconds between looks at what the host has; it is sent when it changed. 0: every 60 seconds; "
                    "negative: at start only."),
    cfg.ListOpt("compute_monitors", default=[],
                help="What the host measures of itself for [metrics]weight_setting. cpu.virt_driver has "
                     "cpu.frequency in MHz. It has cpu.user.time, cpu.kernel.time, cpu.idle.time, cpu.iowait.time "
                     "in ns. It has cpu.percent, "
                     "cpu.user.percent, cpu.kernel.percent, cpu.idle.percent, cpu.iowait.percent as parts of 1 since "
                     "the last look. They are sent with update_resources_interval, when one of these parts moved by "
                     "0.05."),
    cfg.StrOpt("firewall_driver",
               help="Who filters guests' packets where nova-network keeps the networks: "
                    "nova.virt.libvirt.firewall.IptablesFirewallDriver (security groups by iptables, and sources tied to "
                    "each interface by ebtables), or nova.virt.firewall.NoopFirewallDriver (nobody). Unset: the first "
                    "with libvirt, else nobody. With Neutron it is Neutron that filters, whatever this says."),
    cfg.BoolOpt("allow_same_net_traffic", default=True,
                help="Guests of one project's own network (one with a VLAN) reach each other whatever their security groups "
                    "say. On a network that several projects share their groups always decide."),
    # How guests are kept.
    cfg.IntOpt("max_concurrent_builds", default=10, min=0,
               help="How many guests are built at one time; the others wait their turn. 0: no limit."),
    cfg.IntOpt("max_concurrent_live_migrations", default=0, min=0,
               help="How many guests leave this host at one time while they run; the others wait their turn, and can be "
                    "aborted meanwhile. 0: 12, for each takes one of libvirtd's 20 workers (max_workers in libvirtd.conf). "
                    "Upstream's default is 1; ours lets nova-manage host drain --parallel say how many. Set it where the "
                    "network between hosts bears only so much."),
    cfg.IntOpt("max_concurrent_snapshots", default=5, min=0,
               help="How many guests' disks are copied for an image, or sent to the image service, at one time; the "
                    "others wait their turn. More share the disks' and the network's speed. 0: no limit."),
    cfg.IntOpt("vif_plugging_timeout", default=300, min=0,
               help="Seconds for which a guest whose interfaces an agent of Neutron's connects is held at its start, until "
                    "Neutron says that they are. 0: it is not held. nova-network needs no such wait."),
    cfg.BoolOpt("vif_plugging_is_fatal", default=True,
                help="If a guest's network does not come, do not start the guest. Off: it starts without its "
                     "network. That Neutron says "
                     "it failed is fatal either way."),
    cfg.BoolOpt("resume_guests_state_on_host_boot", default=False,
                help="Start guests again that ran when the host went down. Otherwise they are shown as stopped, and "
                     "their owners start them."),
    cfg.Opt("fence_retention", type=TimeSpan(positive=True), default=datetime.timedelta(days=1), sample_default="1",
            help="How long nova-compute remembers the newest operation on a guest that is gone, in a small file for each "
                 "server. An older order that comes late is refused by it. Choose more than any broker or conductor "
                 "holds an order."),
    cfg.IntOpt("sync_power_state_interval", default=600,
               help="Seconds between two reports of all guests' power states: the safety net below the hypervisor's "
                    "events. 0: every 60 seconds; negative: never."),
    cfg.IntOpt("volume_usage_poll_interval", default=0, min=0,
               help="Seconds between two volume.usage notifications of each volume that a running guest has; there is "
                    "another one before the volume is detached. They tell what the guest read and wrote since it was "
                    "started: a guest that is stopped and started counts from 0 again. 0: none are sent."),
    cfg.StrOpt("running_deleted_instance_action", default="reap", choices=("reap", "log", "shutdown", "noop"),
               help="What to do with a guest on this host whose server was deleted or moved away. reap: remove it "
                    "with its disks; shutdown: power it off and keep the disks; log: only say "
                    "so; noop: nothing."),
    cfg.IntOpt("running_deleted_instance_poll_interval", default=1800,
               help="Seconds between two searches for such guests. 0: every 60 seconds; negative: at start only."),
    cfg.IntOpt("running_deleted_instance_timeout", default=0, min=0,
               help="Seconds for which such a guest is left alone after its server was deleted."),
]
