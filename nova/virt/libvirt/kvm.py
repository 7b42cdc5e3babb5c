"""Whether KVM really works here: a guest of 150 bytes is run under it, once a boot of the machine.

/dev/kvm may be there and not work (no nested virtualization, or one that stops in 64-bit mode), and libvirt offers it
all the same. The trial guest is a boot ROM that enters 64-bit mode with paging, as every kernel does first, writes half
a megabyte, uses an SSE register and sends one byte to QEMU's exit port: only a processor that ran all of it exits so.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from pathlib import Path

from nova import errors
from nova.privileged.runner import Runner

LOG = logging.getLogger(__name__)

DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ROM_BYTES = 1 << 16
#: The ROM's last 256 bytes (at 0xfff00), from the assembly
#:   .code16  cli; ds = es = 0; clear 0x1000..0x4000; PML4[0] = 0x2003; PDPT[0] = 0x3003; PD[0] = 2 MB page at 0
#:            cr4 = PAE | OSFXSR | OSXMMEXCPT; cr3 = 0x1000; EFER |= LME; lgdt gdtr; cr0 = PG | ET | PE; ljmp 8:long
#:   .code64  long: rep stosq 0x10000 words from 0x8000; movq %rcx, %xmm0; mov $0x2a, %al; out %al, $0xf4; hlt
#:            gdt: .quad 0, 0x00209a0000000000; gdtr: .word 15; .long gdt
PROGRAM = bytes.fromhex(
    "fa31c08ed88ec0fcbf0010b90018f3ab66c70600100320000066c70600200330000066c70600308300000066b8200600000f"
    "22e066b8001000000f22d866b9800000c00f32660d000100000f302e660f011690ff66b8110000800f22c066ea65ff0f0008"
    "00bf00800000b90000010031c0f348ab66480f6ec1b02ae6f4f46690000000000000000000000000009a20000f0080ff0f00")
RESET = bytes.fromhex("ea00ff00f0")  # ljmp 0xf000:0xff00, where a processor begins: 16 bytes below the end
ROM = bytes(ROM_BYTES - 256) + PROGRAM.ljust(240, b"\0") + RESET.ljust(16, b"\0")
ANSWER = 0x2A
EXIT = (ANSWER << 1) | 1  # how isa-debug-exit ends QEMU
EMULATORS = {"x86_64": "qemu-system-x86_64"}


def choose(virt_type: str, arch: str, state_path: Path, runner: Runner) -> str:
    """kvm or qemu: the operator's word, or (``auto``) what the trial says."""
    if virt_type != "auto":
        return virt_type
    return "kvm" if works(arch, state_path, runner) else "qemu"


def works(arch: str, state_path: Path, runner: Runner) -> bool:
    """The trial's result, which is kept for as long as the machine is up and has the same /dev/kvm."""
    key, kept = _key(), state_path / "kvm.json"
    if key is None:
        return False
    try:
        known = json.loads(kept.read_text())
        if known["key"] == key:
            return bool(known["works"])
    except (OSError, ValueError, KeyError, TypeError):
        LOG.debug("no kept result of a KVM trial")
    result = trial(EMULATORS.get(arch, ""), runner, "kvm")
    LOG.info("KVM %s on this host", "works" if result else "does not work")
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_name(".kvm.json.new")
    fresh.write_text(json.dumps({"key": key, "works": result}))
    fresh.replace(kept)
    return result


def trial(emulator: str, runner: Runner, accelerator: str) -> bool:
    """Run the trial guest. On an architecture without one, KVM counts as working where its device is."""
    if not emulator:
        return True
    with tempfile.TemporaryDirectory(prefix="nova-kvm-") as folder:
        rom = Path(folder, "rom")
        rom.write_bytes(ROM)
        try:
            done = runner.run([emulator, "-nodefaults", "-display", "none", "-no-user-config", "-no-reboot", "-m", "4",
                               "-machine", f"pc,accel={accelerator}", "-bios", str(rom),
                               "-device", "isa-debug-exit,iobase=0xf4,iosize=0x01"], ok=range(-64, 256))
        except errors.NovaError as error:
            LOG.info("the trial guest did not run: %s", error)
            return False
    return done.code == EXIT


def _key() -> str | None:
    """What the result belongs to: this boot and this device; None when there is no KVM device."""
    try:
        found = os.stat(DEVICE)
    except OSError:
        return None
    if found.st_rdev != os.makedev(10, 232):  # something else lies there, to hide it
        return None
    return f"{BOOT_ID.read_text().strip()} {found.st_dev}:{found.st_ino}:{found.st_mode:o}"
