"""``[DEFAULT]`` options of nova-compute: the resources of a host, and the management of its guests."""

from __future__ import annotations

import datetime

from oslo_config import cfg

from nova.conf._span import TimeSpan

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("compute_driver",
               help="Hypervisor driver, as module.Class below nova.virt: libvirt.LibvirtDriver for KVM and QEMU, "
                    "fake.FakeDriver for a cloud without guests. Names of other releases are accepted."),
    cfg.StrOpt("instances_path", default="$state_path/instances",
               help="Directory of guests' disks and the image cache. It needs the space that flavors promise."),
    cfg.HostAddressOpt("my_block_storage_ip", default="$my_ip",
                       help="This host's address on the storage network: Cinder exports iSCSI targets to it."),
    # The resources offered to the scheduler.
    cfg.FloatOpt("cpu_allocation_ratio", min=0.0,
                 help="Virtual CPUs offered for each physical CPU. Unset: initial_cpu_allocation_ratio."),
    cfg.FloatOpt("ram_allocation_ratio", min=0.0,
                 help="MB of memory offered for each physical MB. Unset: initial_ram_allocation_ratio. Above 1.0, "
                      "guests may be killed when memory runs out."),
    cfg.FloatOpt("disk_allocation_ratio", min=0.0,
                 help="GB of disk offered for each physical GB. Unset: initial_disk_allocation_ratio."),
    cfg.FloatOpt("initial_cpu_allocation_ratio", default=4.0, min=0.0,
                 help="CPU allocation ratio if cpu_allocation_ratio is unset."),
    cfg.FloatOpt("initial_ram_allocation_ratio", default=1.0, min=0.0,
                 help="Memory allocation ratio if ram_allocation_ratio is unset."),
    cfg.FloatOpt("initial_disk_allocation_ratio", default=1.0, min=0.0,
                 help="Disk allocation ratio if disk_allocation_ratio is unset."),
    cfg.IntOpt("reserved_host_memory_mb", default=512, min=0, help="MB of memory reserved for the host itself."),
    cfg.IntOpt("reserved_host_disk_mb", default=0, min=0, help="MB of disk reserved for the host itself."),
    cfg.IntOpt("reserved_host_cpus", default=0, min=0, help="CPUs reserved for the host itself."),
    cfg.MultiStrOpt("reserved_huge_pages", default=[],
                    help="Huge pages of a NUMA cell reserved for the host, as node:0,size:2048,count:64 (size in "
                         "KiB, or with a unit: 1GB). May be given several times."),
    cfg.IntOpt("update_resources_interval", default=0,
               help="Seconds between two checks of the host's resources, which are reported if they changed. 0: "
                    "every 60 seconds; negative: only at start."),
    cfg.ListOpt("compute_monitors", default=[],
                help="Metrics that the host measures for [metrics]weight_setting. cpu.virt_driver provides "
                     "cpu.frequency in MHz. It provides cpu.user.time, cpu.kernel.time, cpu.idle.time and "
                     "cpu.iowait.time in ns. It provides cpu.percent, cpu.user.percent, cpu.kernel.percent, "
                     "cpu.idle.percent and cpu.iowait.percent as fractions of 1 since the last measurement. They are "
                     "sent with update_resources_interval, when one of the fractions has changed by 0.05."),
    cfg.StrOpt("firewall_driver",
               help="Packet filter of guests on nova-network's networks: "
                    "nova.virt.libvirt.firewall.IptablesFirewallDriver (security groups by iptables, and source "
                    "addresses of each interface by ebtables), or nova.virt.firewall.NoopFirewallDriver (no filter). "
                    "Unset: the first one with libvirt, otherwise none. With Neutron, Neutron filters packets, with "
                    "any value here."),
    cfg.BoolOpt("allow_same_net_traffic", default=True,
                help="Allow all traffic between guests on a project's own network (one with a VLAN), regardless of "
                     "their security groups. On a network shared by projects, security groups always apply."),
    # The management of guests.
    cfg.IntOpt("max_concurrent_builds", default=10, min=0,
               help="Number of guests built at the same time; others wait. 0: no limit."),
    cfg.IntOpt("max_concurrent_live_migrations", default=0, min=0,
               help="Number of outgoing live migrations of this host at the same time; others wait, and can be "
                    "aborted meanwhile. 0: 12, because each takes one of libvirtd's 20 workers (max_workers in "
                    "libvirtd.conf). Upstream's default is 1; here 'nova-manage host drain --parallel' sets the "
                    "number. Set it if the network between hosts has limited capacity."),
    cfg.IntOpt("max_concurrent_snapshots", default=5, min=0,
               help="Number of guests whose disks are copied for an image, or uploaded to the image service, at the "
                    "same time; others wait. They share the disks' and the network's bandwidth. 0: no limit."),
    cfg.IntOpt("vif_plugging_timeout", default=300, min=0,
               help="Seconds to hold a guest at its start until Neutron reports that its interfaces are connected, "
                    "if an agent of Neutron connects them. 0: it is not held. nova-network needs no such wait."),
    cfg.BoolOpt("vif_plugging_is_fatal", default=True,
                help="Do not start a guest whose network is not connected in time. Off: it starts without its "
                     "network. A failure reported by Neutron is fatal in both cases."),
    cfg.BoolOpt("resume_guests_state_on_host_boot", default=False,
                help="Start the guests again that ran when the host went down. Off: their servers are shown as "
                     "stopped, until their owners start them."),
    cfg.Opt("fence_retention", type=TimeSpan(positive=True), default=datetime.timedelta(days=1), sample_default="1",
            help="How long nova-compute stores the newest operation of a deleted guest, in a small file for each "
                 "server, to reject older orders that arrive late. Choose more than the time for which a broker or "
                 "conductor can delay an order."),
    cfg.IntOpt("sync_power_state_interval", default=600,
               help="Seconds between two reports of all guests' power states, in addition to the hypervisor's "
                    "events. 0: every 60 seconds; negative: never."),
    cfg.IntOpt("volume_usage_poll_interval", default=0, min=0,
               help="Seconds between two volume.usage notifications of each volume of a running guest; another one "
                    "is sent before the volume is detached. They count the guest's reads and writes since its start: "
                    "after a stop and start they count from 0 again. 0: none are sent."),
    cfg.StrOpt("running_deleted_instance_action", default="reap", choices=("reap", "log", "shutdown", "noop"),
               help="Action for a guest on this host whose server was deleted or moved away. reap: remove it with "
                    "its disks; shutdown: power it off and keep the disks; log: only log it; noop: none."),
    cfg.IntOpt("running_deleted_instance_poll_interval", default=1800,
               help="Seconds between two searches for such guests. 0: every 60 seconds; negative: only at start."),
    cfg.IntOpt("running_deleted_instance_timeout", default=0, min=0,
               help="Seconds to wait after a server's deletion before its remaining guest is handled."),
]
