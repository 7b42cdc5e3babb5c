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
                help="With cpu_mode=custom: models, the oldest first; the first one is used."),
    cfg.ListOpt("cpu_model_extra_flags", default=[],
                help="Processor features to add (+name or name) or take away (-name), e.g. pcid, -mtrr."),
    cfg.ListOpt("hw_machine_type", help="Machine type per architecture, e.g. x86_64=q35. Unset: libvirt's choice. "
                                        "The image property hw_machine_type stands above it."),
    cfg.StrOpt("sysinfo_serial", default="unique", choices=("none", "os", "hardware", "auto", "unique"),
               help="Serial number that guests see. unique: the server's uuid; os: the host's machine id; hardware: "
                    "the host's own serial, which tells guests about the host; auto: os where there is one, else "
                    "hardware; none: no number."),
    cfg.IntOpt("mem_stats_period_seconds", default=10, min=0,
               help="Seconds between two memory reports of a guest's balloon; 0: no balloon reports."),
    cfg.StrOpt("rng_dev_path", default="/dev/urandom", help="Where guests' random number devices read."),
    cfg.IntOpt("num_pcie_ports", default=0, min=0, max=28,
               help="PCIe ports of q35 guests, for devices plugged in later. 0: libvirt's choice."),
    cfg.IntOpt("rx_queue_size", choices=(256, 512, 1024), help="Receive queue of virtio network devices (KVM)."),
    cfg.IntOpt("tx_queue_size", choices=(256, 512, 1024), help="Send queue of virtio network devices (KVM)."),
]

_DISKS = [
    cfg.StrOpt("images_type", default="default", choices=("default", "qcow2", "raw", "flat"),
               help="How guests' disks are kept. default: qcow2 overlays where use_cow_images is on, else raw files; "
                    "flat is another name for raw."),
    cfg.ListOpt("disk_cachemodes", default=[],
                help="Cache mode of file disks: file=none, file=writeback, ... Unset: none where the file system can "
                     "do direct I/O, else writeback."),
    cfg.StrOpt("hw_disk_discard", choices=("ignore", "unmap"),
               help="unmap gives space that a guest discards back to the host."),
    cfg.IntOpt("image_tool_cpu_limit", default=600, min=1,
               help="Seconds of processor time that one run of qemu-img on an image may use."),
    cfg.IntOpt("image_tool_memory_limit_mb", default=4096, min=128,
               help="Address space that one run of qemu-img on an image may use."),
]

_OLD = [
    cfg.BoolOpt("inject_password", default=False, help="Not supported: guests get their password by metadata.",
                deprecated_for_removal=True),
    cfg.IntOpt("inject_partition", default=-2, min=-2, help="Accepted for older files: nothing is injected (-2).",
               deprecated_for_removal=True),
]

OPTS = [*_CONNECTION, *_GUEST, *_DISKS, *_OLD]
