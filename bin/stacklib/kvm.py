"""Does hardware virtualisation work? A /dev/kvm may be there and not work, so something is really run under it."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

EXIT_PORT, VALUE = 0xF4, 0x2A
# mov al, VALUE; out EXIT_PORT, al; hlt - the port makes QEMU exit with VALUE * 2 + 1
BOOT_SECTOR = bytes([0xB0, VALUE, 0xE6, EXIT_PORT, 0xF4]).ljust(510, b"\0") + b"\x55\xaa"
SECONDS = 10


@cache
def works() -> bool:
    """Boots a sector of 512 bytes that says when it has run."""
    if not Path("/dev/kvm").exists():
        return False
    with tempfile.NamedTemporaryFile(suffix=".img") as disk:
        disk.write(BOOT_SECTOR)
        disk.flush()
        command = [
            "qemu-system-x86_64",
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-m",
            "16",
            "-nodefaults",
            "-display",
            "none",
            "-no-user-config",
            "-device",
            f"isa-debug-exit,iobase={EXIT_PORT},iosize=1",
            "-drive",
            f"file={disk.name},format=raw",
        ]
        try:
            result = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return result.returncode == VALUE * 2 + 1
