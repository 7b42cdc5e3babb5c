"""The guest's disks: file systems, partitions, boot loader, and output files."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from guest.builder.packages import Packages
from guest.builder.shared import SECTOR, BuildError, run

MAX_BYTES = 40 * 1000 * 1000
BOOT_START = 2048  # sectors, as the next two; 2048 are 1 MiB
BOOT_SECTORS = 24 * 2048
ROOT_SECTORS = 48 * 2048  # about 38 MiB of it are free; the guest grows it to the size of its disk
ROOT_LABEL = "nova-guest"
# tty1 is the VNC screen; programs write to the last console in the list
KERNEL_ARGUMENTS = f"root=LABEL={ROOT_LABEL} console=tty1 console=ttyS0 quiet panic=10"
BOOT_CONFIG = f"""\
DEFAULT linux
PROMPT 0
LABEL linux
LINUX vmlinuz
INITRD initrd.img
APPEND {KERNEL_ARGUMENTS}
"""
LOADER_PACKAGES = ("syslinux", "syslinux-common", "mtools")


def make_filesystem(tree: Path, image: Path) -> None:
    """Write a bare ext4 of ROOT_SECTORS that contains the tree."""
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(ROOT_SECTORS * SECTOR)
    # the default of 1 KiB blocks for such a small disk would limit its later growth
    run(["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-L", ROOT_LABEL,
         "-E", "root_owner=0:0,lazy_itable_init=1,resize=67108864", "-d", tree, image])  # fmt: skip


def make_boot_partition(packages: Packages, kernel: Path, ramdisk: Path, image: Path) -> None:
    """Write a FAT partition with syslinux, kernel and ramdisk, by mtools."""
    with image.open("wb") as file:
        file.truncate(BOOT_SECTORS * SECTOR)
    config = image.with_suffix(".cfg")
    config.write_text(BOOT_CONFIG)
    tools = packages.unpacked("mtools") / "usr/bin"
    run([tools / "mformat", "-i", image, "-T", str(BOOT_SECTORS), "-h", "255", "-s", "63", "-H", str(BOOT_START),
         "-c", "16", "-v", "NOVA-BOOT", "::"])  # fmt: skip
    for source, name in ((kernel, "vmlinuz"), (ramdisk, "initrd.img"), (config, "syslinux.cfg")):
        run([tools / "mcopy", "-i", image, source, f"::{name}"])
    # syslinux calls mtools, too
    path = f"{tools}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    run([packages.unpacked("syslinux") / "usr/bin/syslinux", "--install", image], env={**os.environ, "PATH": path})


def partition_entry(active: bool, kind: int, start: int, sectors: int) -> bytes:
    """Return one of the four partition entries of a boot sector; the cylinder fields refer to the sector numbers."""
    return struct.pack("<B3sB3sII", 0x80 if active else 0, b"\xfe\xff\xff", kind, b"\xfe\xff\xff", start, sectors)


def make_disk(packages: Packages, boot: Path, root: Path, disk: Path) -> None:
    """Write the raw disk. The root is partition 1, but at the end, where it can grow; the boot partition is 2."""
    boot_code = (packages.unpacked("syslinux-common") / "usr/lib/syslinux/mbr/mbr.bin").read_bytes()
    root_start, root_sectors = BOOT_START + BOOT_SECTORS, root.stat().st_size // SECTOR
    entries = partition_entry(False, 0x83, root_start, root_sectors)
    entries += partition_entry(True, 0x0E, BOOT_START, BOOT_SECTORS)
    disk.write_bytes(boot_code.ljust(440, b"\0")[:440] + os.urandom(4) + b"\0\0" + entries + bytes(32) + b"\x55\xaa")
    for source, start in ((boot, BOOT_START), (root, root_start)):
        run(["dd", f"if={source}", f"of={disk}", "bs=1M", f"seek={start * SECTOR >> 20}", "conv=sparse,notrunc"])
    os.truncate(disk, (root_start + root_sectors) * SECTOR)


def put(source: Path, target: Path) -> None:
    """Write the output file atomically. Disks are converted to qcow2 unless the name ends with .raw or .img."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new")
    try:
        if source.suffix == ".disk" and target.suffix not in (".raw", ".img"):
            run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", source, new])
        else:
            run(["cp", "--sparse=always", source, new])
        if new.stat().st_blocks * SECTOR > MAX_BYTES:
            raise BuildError(f"{target} would take more than {MAX_BYTES // 1000000} MB")
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
