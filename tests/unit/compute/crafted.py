"""Images as attackers make them, byte by byte or with the real tool."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

MIB = 1 << 20


def qcow2(path: Path, size: int = 4 * MIB, *options: str) -> Path:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *options, str(path), str(size)], check=True)
    return path


def qcow2_with_backing_file(path: Path, backing: str) -> Path:
    """Points to ``backing``, which need not exist while it is written (-u)."""
    return qcow2(path, 4 * MIB, "-u", "-F", "raw", "-b", backing)


def qcow2_with_data_file(path: Path, data: Path) -> Path:
    return qcow2(path, 4 * MIB, "-o", f"data_file={data},data_file_raw=on")


def qcow2_with_unknown_feature(path: Path) -> Path:
    qcow2(path)
    content = bytearray(path.read_bytes())
    content[72:80] = struct.pack(">Q", 1 << 60)  # incompatible features of the header's version 3
    path.write_bytes(content)
    return path


def converted(path: Path, image_format: str, size: int = 4 * MIB, *options: str) -> Path:
    source = path.with_suffix(".source")
    source.write_bytes(b"guest data" + bytes(size - 10))
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", image_format, *options, str(source), str(path)],
                   check=True)
    source.unlink()
    return path


def vmdk_descriptor(path: Path, extent: str) -> Path:
    path.write_text('# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType="monolithicFlat"\n'
                    f'RW 8192 FLAT "{extent}" 0\nddb.adapterType = "ide"\n' + " " * 2048)
    return path


def vmdk_sparse_naming(path: Path, extent: str) -> Path:
    """A sparse VMDK whose embedded descriptor names another file."""
    converted(path, "vmdk")
    content = bytearray(path.read_bytes())
    (offset,) = struct.unpack("<Q", content[28:36])
    start = offset * 512
    text = bytes(content[start:start + 10240]).rstrip(b"\0").decode()
    lines = [f'RW 8192 FLAT "{extent}" 0' if line.startswith("RW ") else line for line in text.split("\n")]
    new = "\n".join(lines).encode()
    content[start:start + 10240] = new + bytes(10240 - len(new))
    path.write_bytes(content)
    return path


def partitioned(path: Path) -> Path:
    content = bytearray(MIB)
    content[446:462] = struct.pack("<B3BB3BII", 0x80, 0, 2, 0, 0x83, 0, 0, 0, 2048, 100)
    content[510:512] = b"\x55\xaa"
    path.write_bytes(content)
    return path


def iso(path: Path, hybrid: bool = False, head: bytes = b"") -> Path:
    folder = path.with_suffix(".tree")
    folder.mkdir()
    (folder / "readme").write_text("hello")
    subprocess.run(["xorrisofs", "-quiet", "-o", str(path), str(folder)], check=True)
    content = bytearray(path.read_bytes())
    content[:len(head)] = head
    if hybrid:
        content[510:512] = b"\x55\xaa"
    path.write_bytes(content)
    return path
