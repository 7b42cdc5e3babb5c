"""``[libvirt]``: guests on KVM and QEMU."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "libvirt"

_CONNECTION = [
    cfg.StrOpt("virt_type", default="auto", choices=("auto", "kvm", "qemu"),
               help="Type of virtualization. kvm uses the CPU's virtualization, qemu emulates everything (slow, "
                    "works everywhere). auto tests once after each boot whether KVM works: /dev/kvm may exist and "
                    "not work."),
    cfg.StrOpt("connection_uri", default="", help="URI of libvirt. Empty: qemu:///system."),
    cfg.IntOpt("keepalive_interval", default=5, min=1,
               help="Seconds between two keepalive messages to libvirtd; after 5 without a response, the connection "
                    "is reopened."),
    cfg.IntOpt("kvm_probe_timeout", default=5, min=1, help="Seconds allowed for the test guest of virt_type=auto."),
]

_GUEST = [
    cfg.StrOpt("cpu_mode", choices=("host-model", "host-passthrough", "custom", "none"),
               help="CPU model mode of guests. Unset: host-model with KVM, otherwise none (QEMU's default)."),
    cfg.ListOpt("cpu_models", default=[], deprecated_name="cpu_model",
                help="With cpu_mode=custom: CPU models, the oldest first. A guest gets the first model that this "
                     "host supports and that has the features its flavor or image requires (trait:HW_CPU_X86_...)."),
    cfg.ListOpt("cpu_model_extra_flags", default=[],
                help="CPU features to add (+name or name) or remove (-name), for example pcid, -mtrr."),
    cfg.ListOpt("hw_machine_type", help="Machine type for each architecture, for example x86_64=q35. Unset: "
                                        "libvirt's default. The image property hw_machine_type takes precedence."),
    cfg.StrOpt("sysinfo_serial", default="unique", choices=("none", "os", "hardware", "auto", "unique"),
               help="Serial number shown to guests. unique: the server's UUID. os: the host's machine id. hardware: "
                    "the host's own serial number, which identifies the host to guests. auto: os if there is one, "
                    "otherwise hardware. none: no number."),
    cfg.IntOpt("mem_stats_period_seconds", default=10, min=0,
               help="Seconds between two memory reports of a guest's balloon; 0: no reports."),
    cfg.StrOpt("rng_dev_path", default="/dev/urandom", help="Source of guests' random number devices."),
    cfg.BoolOpt("swtpm_enabled", default=False,
                help="Allow an emulated TPM for guests whose flavor or image requests one (hw:tpm_version). The host "
                     "needs the packages swtpm and swtpm-tools, and stores the secrets of its guests' TPMs."),
    cfg.IntOpt("num_pcie_ports", default=0, min=0, max=28,
               help="Number of PCIe ports of q35 guests, for devices attached later. 0: libvirt's default."),
    cfg.IntOpt("rx_queue_size", choices=(256, 512, 1024), help="Receive queue size of virtio network devices (KVM)."),
    cfg.IntOpt("tx_queue_size", choices=(256, 512, 1024), help="Send queue size of virtio network devices (KVM)."),
]

_PLACING = [
    cfg.ListOpt("pmem_namespaces", default=[],
                help="Persistent memory of this host, as LABEL:ns0|ns1|ns2 with the names of its namespaces (ndctl "
                     "list -X). Each label is an inventory CUSTOM_PMEM_NAMESPACE_LABEL."),
    cfg.IntOpt("num_memory_encrypted_guests", min=0,
               help="Maximum number of guests with encrypted memory (AMD SEV) on this host. Unset: the number of "
                    "keys of its CPU, as reported by libvirt, which is never exceeded."),
]

_DISKS = [
    cfg.StrOpt("images_type", default="default", choices=("default", "qcow2", "raw", "flat", "lvm", "rbd"),
               help="Storage of guests' disks. default: qcow2 overlays if use_cow_images is on, otherwise raw files. "
                    "flat is another name for raw. lvm: logical volumes of images_volume_group; rbd: images in the "
                    "Ceph pool images_rbd_pool. Existing guests keep their disks in place."),
    cfg.StrOpt("images_volume_group", help="Volume group of images_type=lvm."),
    cfg.StrOpt("volume_clear", default="zero", choices=("zero", "shred", "none"),
               help="Method to erase removed logical volumes. With none, the next owner of the space can read the "
                    "data."),
    cfg.IntOpt("volume_clear_size", default=0, min=0, help="MiB of a removed logical volume to erase. 0: all."),
    cfg.StrOpt("images_rbd_pool", default="rbd", help="Ceph pool of images_type=rbd."),
    cfg.StrOpt("images_rbd_ceph_conf", default="", help="Configuration file of Ceph. Empty: Ceph's default."),
    cfg.StrOpt("images_rbd_snapshot_pool", default="",
               help="Ceph pool in which images of servers are made without an upload. It must be a store of Glance, "
                    "and rbd_user must be able to write to it. Empty: they are uploaded. See doc/volumes.rst for who "
                    "can then change them."),
    cfg.StrOpt("rbd_user", help="Ceph user for disks."),
    cfg.StrOpt("rbd_secret_uuid",
               help="UUID of the libvirt secret with that user's key. If the secret is missing, nova-compute creates "
                    "it from the user's keyring, next to images_rbd_ceph_conf or in /etc/ceph."),
    cfg.IntOpt("rbd_connect_timeout", default=5, min=-1,
               help="Seconds to wait for a Ceph monitor. -1: Ceph's default."),
    cfg.IntOpt("rbd_destroy_volume_retries", default=12, min=0,
               help="Number of retries to remove an image that is still open. Until then it is in the pool's trash, "
                    "and its server is deleted."),
    cfg.IntOpt("rbd_destroy_volume_retry_interval", default=5, min=0, help="Seconds between two retries."),
    cfg.ListOpt("disk_cachemodes", default=[],
                help="Cache modes of disks, by type: file=writeback, block=none, network=writeback. Unset: none; "
                     "writeback for files on a file system without direct I/O."),
    cfg.StrOpt("hw_disk_discard", choices=("ignore", "unmap"),
               help="Discard mode: unmap returns space that a guest discards to the host."),
    cfg.StrOpt("snapshot_image_format", choices=("raw", "qcow2", "vmdk", "vdi"),
               help="Format in which snapshots are uploaded. Unset: that of the guest's disk."),
    cfg.IntOpt("image_tool_cpu_limit", default=600, min=1, deprecated_name="images_cpu_time_limit",
               help="Seconds of CPU time allowed for one run of qemu-img on an image."),
    cfg.IntOpt("image_tool_memory_limit_mb", min=128,
               help="MB of address space allowed for one run of qemu-img on an image. Unset: "
                    "images_address_space_limit."),
    cfg.IntOpt("images_address_space_limit", default=4, min=1,
               help="GiB of address space allowed for one run of qemu-img, if image_tool_memory_limit_mb is not set."),
]

_VOLUMES = [
    cfg.StrOpt("nfs_mount_point_base", default="$state_path/mnt",
               help="Directory in which NFS exports with volumes are mounted, each in its own subdirectory."),
    cfg.StrOpt("nfs_mount_options", help="Options of mount(8) for NFS exports, for example vers=4.1,nosuid; see "
                                         "nfs(5)."),
    cfg.BoolOpt("use_default_aio_mode_for_volumes", default=False,
                help="Let QEMU choose the I/O mode of volumes that are files or devices of the host. Off: io=native, "
                     "if the cache mode allows it."),
]

_BRICK = [
    cfg.BoolOpt("volume_use_multipath", default=False,
                help="Connect volumes of iSCSI, Fibre Channel and NVMe-oF over all their paths; multipathd must run. "
                     "If it does not, one path is used, or see volume_enforce_multipath."),
    cfg.BoolOpt("volume_enforce_multipath", default=False,
                help="Reject volumes while multipathd is not running, instead of using one path. Needs "
                     "volume_use_multipath."),
    cfg.IntOpt("num_volume_scan_tries", default=5, min=1, deprecated_name="num_iscsi_scan_tries",
               help="Number of attempts to find a device of iSCSI, Fibre Channel or another kind."),
    cfg.IntOpt("num_nvme_discover_tries", default=5, min=1, help="Number of attempts to find an NVMe-oF device."),
    cfg.IntOpt("num_iser_scan_tries", default=5, min=1, help="Number of attempts to find an iSER device."),
    cfg.StrOpt("iscsi_iface", deprecated_name="iscsi_transport",
               help="Initiator interface for iSCSI, as shown by iscsiadm -m iface. Unset: default."),
]

_MOVES = [
    cfg.HostAddressOpt("live_migration_inbound_addr",
                       help="Address of this host, or a name that other hosts resolve, for incoming guests and for "
                            "disks that other hosts fetch. Unset: my_ip."),
    cfg.StrOpt("live_migration_ports", default="49152-49215",
               help="TCP ports for incoming live migrations, one for each (a firewall must admit other hosts)."),
    cfg.BoolOpt("live_migration_permit_post_copy", default=False,
                help="Allow post-copy for a migration that is forced to complete, or exceeds its time: the guest "
                     "runs at its destination immediately. It is lost if a host or the network fails during that "
                     "phase."),
    cfg.BoolOpt("live_migration_permit_auto_converge", default=False,
                help="Throttle a guest that changes its memory faster than it can be sent."),
    cfg.IntOpt("live_migration_bandwidth", default=0, min=0, help="Bandwidth of a migration in MiB/s. 0: no limit."),
    cfg.IntOpt("live_migration_downtime", default=500, min=100,
               help="Milliseconds for which a guest may be paused at the end."),
    cfg.IntOpt("live_migration_downtime_steps", default=10, min=3,
               help="Number of steps in which that downtime is reached."),
    cfg.IntOpt("live_migration_downtime_delay", default=75, min=3,
               help="Seconds between two steps, for each GiB of memory and copied disk."),
    cfg.IntOpt("live_migration_completion_timeout", default=800, min=0, mutable=True,
               help="Seconds allowed for a migration, for each GiB of memory and copied disk (at least 2 GiB). 0: no "
                    "limit. SIGHUP reloads it, for migrations that begin afterwards."),
    cfg.StrOpt("live_migration_timeout_action", default="abort", choices=("abort", "force_complete"), mutable=True,
               help="Action after that time. force_complete: post-copy if permitted, otherwise a pause. SIGHUP "
                    "reloads it, for migrations that begin afterwards."),
    cfg.StrOpt("disk_export_ports", default="49216-49279",
               help="TCP ports on which this host exports the disks of guests that leave it (a firewall must admit "
                    "other hosts)."),
    cfg.IntOpt("disk_copy_timeout", default=6 * 3600, min=60, help="Seconds allowed for the copy of one disk."),
]

_DEVICES = [
    cfg.IntOpt("device_detach_attempts", default=8, min=1,
               help="Number of attempts to detach a device from a running guest."),
    cfg.IntOpt("device_detach_timeout", default=20, min=1,
               help="Seconds to wait for the guest to release a device, for each attempt."),
]

OPTS = [*_CONNECTION, *_GUEST, *_PLACING, *_DISKS, *_VOLUMES, *_BRICK, *_MOVES, *_DEVICES]


class LibvirtOptions(Section, frozen=True, kw_only=True):
    """Values of ``[libvirt]``."""

    virt_type: str
    connection_uri: str
    keepalive_interval: int
    kvm_probe_timeout: int
    cpu_mode: str | None
    cpu_models: list[str]
    cpu_model_extra_flags: list[str]
    hw_machine_type: list[str] | None
    sysinfo_serial: str
    mem_stats_period_seconds: int
    rng_dev_path: str
    swtpm_enabled: bool
    num_pcie_ports: int
    rx_queue_size: int | None
    tx_queue_size: int | None
    pmem_namespaces: list[str]
    num_memory_encrypted_guests: int | None
    images_type: str
    images_volume_group: str | None
    volume_clear: str
    volume_clear_size: int
    images_rbd_pool: str
    images_rbd_ceph_conf: str
    images_rbd_snapshot_pool: str
    rbd_user: str | None
    rbd_secret_uuid: str | None
    rbd_connect_timeout: int
    rbd_destroy_volume_retries: int
    rbd_destroy_volume_retry_interval: int
    disk_cachemodes: list[str]
    hw_disk_discard: str | None
    snapshot_image_format: str | None
    image_tool_cpu_limit: int
    image_tool_memory_limit_mb: int | None
    images_address_space_limit: int
    nfs_mount_point_base: str
    nfs_mount_options: str | None
    use_default_aio_mode_for_volumes: bool
    volume_use_multipath: bool
    volume_enforce_multipath: bool
    num_volume_scan_tries: int
    num_nvme_discover_tries: int
    num_iser_scan_tries: int
    iscsi_iface: str | None
    live_migration_inbound_addr: str | None
    live_migration_ports: str
    live_migration_permit_post_copy: bool
    live_migration_permit_auto_converge: bool
    live_migration_bandwidth: int
    live_migration_downtime: int
    live_migration_downtime_steps: int
    live_migration_downtime_delay: int
    live_migration_completion_timeout: int
    live_migration_timeout_action: str
    disk_export_ports: str
    disk_copy_timeout: int
    device_detach_attempts: int
    device_detach_timeout: int
