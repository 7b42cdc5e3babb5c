"""``[libvirt]``: guests on KVM and QEMU."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "libvirt"

_CONNECTION = [
    cfg.StrOpt("virt_type", default="auto", choices=("auto", "kvm", "qemu"),
               help="kvm uses the processor's virtualization, qemu emulates everything (slow, works everywhere). auto "
                    "tries once a boot whether KVM really works: /dev/kvm may be there and not work."),
    cfg.StrOpt("connection_uri", default="", help="libvirt's address; empty: qemu:///system."),
    cfg.IntOpt("keepalive_interval", default=5, min=1,
               help="Seconds between two keepalive messages to libvirtd; after 5 unanswered ones the connection is "
                    "given up and made anew."),
    cfg.IntOpt("kvm_probe_timeout", default=5, min=1, help="Seconds the trial guest of virt_type=auto may take."),
]

_GUEST = [
    cfg.StrOpt("cpu_mode", choices=("host-model", "host-passthrough", "custom", "none"),
               help="Processor that guests see. Unset: host-model with KVM, none (QEMU's own default) without."),
    cfg.ListOpt("cpu_models", default=[], deprecated_name="cpu_model",
                help="With cpu_mode=custom: models, the oldest first. A guest gets the first that this host's processor "
                     "can be and that has the features its flavor or image requires (trait:HW_CPU_X86_...)."),
    cfg.ListOpt("cpu_model_extra_flags", default=[],
                help="Processor features to add (+name or name) or take away (-name), for example pcid, -mtrr."),
    cfg.ListOpt("hw_machine_type", help="Machine type per architecture, for example x86_64=q35. Unset: libvirt's "
                                        "choice. "
                                        "The image property hw_machine_type stands above it."),
    cfg.StrOpt("sysinfo_serial", default="unique", choices=("none", "os", "hardware", "auto", "unique"),
               help="Serial number that guests see. unique: the server's uuid. os: the host's machine id. hardware: "
                    "the host's own serial, which tells guests about the host. auto: os if there is one, else "
                    "hardware. none: no number."),
    cfg.IntOpt("mem_stats_period_seconds", default=10, min=0,
               help="Seconds between two memory reports of a guest's balloon; 0: no balloon reports."),
    cfg.StrOpt("rng_dev_path", default="/dev/urandom", help="Where guests' random number devices read."),
    cfg.BoolOpt("swtpm_enabled", default=False,
                help="Let guests have an emulated TPM, if their flavor or image asks for one (hw:tpm_version). The host "
                     "needs the packages swtpm and swtpm-tools, and keeps the secrets of its guests' TPMs."),
    cfg.IntOpt("num_pcie_ports", default=0, min=0, max=28,
               help="PCIe ports of q35 guests, for devices plugged in later. 0: libvirt's choice."),
    cfg.IntOpt("rx_queue_size", choices=(256, 512, 1024), help="Receive queue of virtio network devices (KVM)."),
    cfg.IntOpt("tx_queue_size", choices=(256, 512, 1024), help="Send queue of virtio network devices (KVM)."),
]

_PLACING = [
    cfg.ListOpt("pmem_namespaces", default=[],
                help="Persistent memory that this host has, as LABEL:ns0|ns1|ns2 with the names of its namespaces "
                     "(ndctl list -X): the inventory CUSTOM_PMEM_NAMESPACE_LABEL, one each."),
    cfg.IntOpt("num_memory_encrypted_guests", min=0,
               help="How many guests with encrypted memory (AMD SEV) this host may have. Unset: as many as libvirt says "
                    "that its processor has keys for. More than those are never reported."),
]

_DISKS = [
    cfg.StrOpt("images_type", default="default", choices=("default", "qcow2", "raw", "flat", "lvm", "rbd"),
               help="How guests' disks are kept. default: qcow2 overlays if use_cow_images is on, else raw files. "
                    "flat is another name for raw. lvm: logical volumes of images_volume_group; rbd: images in the "
                    "Ceph pool images_rbd_pool. Guests that are there keep their disks where they are."),
    cfg.StrOpt("images_volume_group", help="Volume group of images_type=lvm."),
    cfg.StrOpt("volume_clear", default="zero", choices=("zero", "shred", "none"),
               help="How the content of a removed logical volume is erased. With none, who gets its space "
                    "next can read it."),
    cfg.IntOpt("volume_clear_size", default=0, min=0, help="MiB of it that are cleared. 0: all."),
    cfg.StrOpt("images_rbd_pool", default="rbd", help="Ceph pool of images_type=rbd."),
    cfg.StrOpt("images_rbd_ceph_conf", default="", help="Ceph's configuration file. Empty: Ceph's own choice."),
    cfg.StrOpt("images_rbd_snapshot_pool", default="",
               help="Ceph pool where images of servers are made without an upload. It is a store of Glance, and rbd_user "
                    "may write to it. Empty: they are uploaded. See doc/volumes.rst for who can then change them."),
    cfg.StrOpt("rbd_user", help="As whom disks are reached in Ceph."),
    cfg.StrOpt("rbd_secret_uuid",
               help="libvirt's secret that holds that user's key. If the secret is missing, nova-compute makes it of the "
                    "user's keyring, which is beside images_rbd_ceph_conf or in /etc/ceph."),
    cfg.IntOpt("rbd_connect_timeout", default=5, min=-1,
               help="Seconds to wait for a monitor of Ceph. -1: Ceph's own choice."),
    cfg.IntOpt("rbd_destroy_volume_retries", default=12, min=0,
               help="How often to try again to remove an image that somebody still has open. It is in the pool's trash "
                    "until then, and its server is gone."),
    cfg.IntOpt("rbd_destroy_volume_retry_interval", default=5, min=0, help="Seconds between two of these tries."),
    cfg.ListOpt("disk_cachemodes", default=[],
                help="Cache modes of disks, by what they are: file=writeback, block=none, network=writeback. Unset: "
                     "none; for files on a file system that can't do direct I/O, writeback."),
    cfg.StrOpt("hw_disk_discard", choices=("ignore", "unmap"),
               help="unmap gives space that a guest discards back to the host."),
    cfg.StrOpt("snapshot_image_format", choices=("raw", "qcow2", "vmdk", "vdi"),
               help="Format in which snapshots are uploaded. Unset: that of the guest's disk."),
    cfg.IntOpt("image_tool_cpu_limit", default=600, min=1, deprecated_name="images_cpu_time_limit",
               help="Seconds of processor time that one run of qemu-img on an image may use."),
    cfg.IntOpt("image_tool_memory_limit_mb", min=128,
               help="MB of address space that one run of qemu-img on an image may use. Unset: "
                    "images_address_space_limit."),
    cfg.IntOpt("images_address_space_limit", default=4, min=1,
               help="The same in GiB, where image_tool_memory_limit_mb is not set."),
]

_VOLUMES = [
    cfg.StrOpt("nfs_mount_point_base", default="$state_path/mnt",
               help="Where the exports of NFS that have volumes are mounted, each in a folder of its own."),
    cfg.StrOpt("nfs_mount_options", help="Options of mount(8) for them, for example vers=4.1,nosuid; see nfs(5)."),
    cfg.BoolOpt("use_default_aio_mode_for_volumes", default=False,
                help="Leave it to QEMU how it reads and writes volumes that are files or devices of the host. Off: "
                     "io=native, where the cache mode lets it."),
]

_BRICK = [
    cfg.BoolOpt("volume_use_multipath", default=False,
                help="Reach volumes of iSCSI, Fibre Channel and NVMe-oF over all their paths; multipathd must run. With "
                     "one path only where it does not, or see volume_enforce_multipath."),
    cfg.BoolOpt("volume_enforce_multipath", default=False,
                help="Refuse volumes as long as multipathd does not run, in place of one path. It needs "
                     "volume_use_multipath."),
    cfg.IntOpt("num_volume_scan_tries", default=5, min=1, deprecated_name="num_iscsi_scan_tries",
               help="How often a device of iSCSI, Fibre Channel or another kind is looked for."),
    cfg.IntOpt("num_nvme_discover_tries", default=5, min=1, help="How often a device of NVMe-oF is looked for."),
    cfg.IntOpt("num_iser_scan_tries", default=5, min=1, help="How often a device of iSER is looked for."),
    cfg.StrOpt("iscsi_iface", deprecated_name="iscsi_transport",
               help="The initiator's interface for iSCSI, as iscsiadm -m iface names it. Unset: default."),
]

_MOVES = [
    cfg.HostAddressOpt("live_migration_inbound_addr",
                       help="This host's address, or a name that other hosts know, for guests that come and for disks "
                            "that other hosts fetch. Unset: my_ip."),
    cfg.StrOpt("live_migration_ports", default="49152-49215",
               help="TCP ports on which this host takes guests that run, one a migration (a firewall must let other "
                    "hosts in)."),
    cfg.BoolOpt("live_migration_permit_post_copy", default=False,
                help="A migration that is forced to its end, or whose time is over, goes on in post-copy: the guest "
                     "runs at its destination at once. It is lost if a host or the network fails just then."),
    cfg.BoolOpt("live_migration_permit_auto_converge", default=False,
                help="Slow a guest down that changes its memory faster than it can be sent."),
    cfg.IntOpt("live_migration_bandwidth", default=0, min=0, help="MiB a second for a migration. 0: no bound."),
    cfg.IntOpt("live_migration_downtime", default=500, min=100,
               help="Milliseconds for which a guest may stand still at the end."),
    cfg.IntOpt("live_migration_downtime_steps", default=10, min=3,
               help="Number of steps in which that time is reached."),
    cfg.IntOpt("live_migration_downtime_delay", default=75, min=3,
               help="Seconds between two steps, for each GiB of memory and copied disk."),
    cfg.IntOpt("live_migration_completion_timeout", default=800, min=0, mutable=True,
               help="Seconds that a migration may take for each GiB of memory and copied disk (2 GiB at least). 0: no "
                    "bound. Changed by SIGHUP, too: for migrations that begin after it."),
    cfg.StrOpt("live_migration_timeout_action", default="abort", choices=("abort", "force_complete"), mutable=True,
               help="What follows when that time is over. force_complete: post-copy where it may, else a pause. "
                    "Changed by SIGHUP, too: for migrations that begin after it."),
    cfg.StrOpt("disk_export_ports", default="49216-49279",
               help="TCP ports on which this host offers the disks of guests that leave it (a firewall must let other "
                    "hosts in)."),
    cfg.IntOpt("disk_copy_timeout", default=6 * 3600, min=60, help="Seconds that the copy of one disk may take."),
]

_DEVICES = [
    cfg.IntOpt("device_detach_attempts", default=8, min=1,
               help="How often a guest is asked to give up a device that is taken from it while it runs."),
    cfg.IntOpt("device_detach_timeout", default=20, min=1, help="Seconds that it may take for that, each time."),
]

OPTS = [*_CONNECTION, *_GUEST, *_PLACING, *_DISKS, *_VOLUMES, *_BRICK, *_MOVES, *_DEVICES]
