"""Whether KVM really works here: a guest of sixteen bytes is run under it, once a boot of the machine.

/dev/kvm may be there and not work (no nested virtualization, a container without rights), and libvirt offers it all
the same. The trial guest is a boot ROM that writes one byte to QEMU's exit port: only a processor that ran it exits so.
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
RESET_VECTOR = ROM_BYTES - 16
ANSWER = 0x2A
#: mov al, ANSWER; out 0xf4, al; hlt; jmp to the hlt
PROGRAM = bytes((0xB0, ANSWER, 0xE6, 0xF4, 0xF4, 0xEB, 0xFD))
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
        rom.write_bytes(bytes(RESET_VECTOR) + PROGRAM.ljust(16, b"\x00"))
        try:
            done = runner.run([emulator, "-nodefaults", "-display", "none", "-no-user-config", "-m", "1",
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
