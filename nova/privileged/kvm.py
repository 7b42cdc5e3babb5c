"""Trial of KVM: runs a guest of 150 bytes under it, once for each boot of the machine.

/dev/kvm may exist but not work: nested virtualization may be missing, or fail or hang in 64-bit mode. libvirt offers it
nevertheless. The trial guest is a boot ROM that enters 64-bit mode with paging, as every kernel does first. It writes
half a megabyte, uses an SSE register and sends one byte to QEMU's exit port: only a processor that ran all of it exits
this way. nova-compute, ``nova-manage doctor`` and ``bin/stack`` all use this module, so that they give the same answer.
"""

from __future__ import annotations

import enum
import json
import logging
import os
import tempfile
from pathlib import Path

from nova import errors, failures
from nova.privileged.runner import CommandRunner

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
EXIT = (ANSWER << 1) | 1  # exit code of QEMU with isa-debug-exit
EMULATORS = {"x86_64": "qemu-system-x86_64"}




class KvmState(enum.StrEnum):
    """Result of the trial. The values are kept in ``state_path/kvm.json``."""

    ABSENT = "absent"
    WORKS = "works"
    FAILS = "fails"
    HANGS = "hangs"


SLOW = "guests run under QEMU's emulation, ten times slower"
#: Messages for log, doctor and ``bin/stack up``.
SENTENCES = {
    KvmState.ABSENT: f"there is no /dev/kvm: {SLOW}",
    KvmState.WORKS: "KVM works",
    KvmState.FAILS: f"KVM does not work on this host, although /dev/kvm exists: {SLOW}",
    KvmState.HANGS: f"KVM hangs on this host (a trial guest did not end in time): {SLOW}",
}


def choose(virt_type: str, arch: str, state_path: Path, runner: CommandRunner) -> str:
    """Return kvm or qemu: the operator's choice, or for ``auto`` the result of the trial."""
    if virt_type != "auto":
        return virt_type
    return "kvm" if answer(arch, state_path, runner) is KvmState.WORKS else "qemu"


def answer(arch: str, state_path: Path, runner: CommandRunner, keep: bool = True) -> KvmState:
    """Return the result of the trial, which is kept while the machine is up and has the same /dev/kvm. ``keep`` False:
    a kept result is read, but none is written. ``runner`` limits the trial's time."""
    key, kept = _key(), state_path / "kvm.json"
    if key is None:
        return KvmState.ABSENT
    with failures.expected(LOG, "no stored result of a KVM trial", on=(OSError, ValueError, KeyError, TypeError),
            level=logging.DEBUG):
        known = json.loads(kept.read_text())
        if known["key"] == key:
            return KvmState(known["answer"])
    try:
        found = trial(EMULATORS.get(arch, ""), runner, "kvm")
    except errors.host.CommandFailed as error:  # not kept: the emulator may be installed a minute later
        LOG.warning("KVM could not be tried; treating it as not working: %s", error.message)
        return KvmState.FAILS
    LOG.log(logging.INFO if found is KvmState.WORKS else logging.WARNING, "%s", SENTENCES[found])
    if keep:
        _keep(kept, {"key": key, "answer": found})
    return found


def trial(emulator: str, runner: CommandRunner, accelerator: str) -> KvmState:
    """Run the trial guest. On an architecture without one, KVM counts as working if its device exists. Raises
    host.CommandFailed if the emulator cannot be started."""
    if not emulator:
        return KvmState.WORKS
    with tempfile.TemporaryDirectory(prefix="nova-kvm-") as folder:
        rom = Path(folder, "rom")
        rom.write_bytes(ROM)
        try:
            done = runner.run([emulator, "-nodefaults", "-display", "none", "-no-user-config", "-no-reboot", "-m", "4",
                               "-machine", f"pc,accel={accelerator}", "-bios", str(rom),
                               "-device", "isa-debug-exit,iobase=0xf4,iosize=0x01"], ok=range(-64, 256))
        except errors.host.CommandTooSlow:
            return KvmState.HANGS
    if done.code != EXIT:
        LOG.info("the KVM trial guest ended with exit code %d instead of %d: %s",
                 done.code, EXIT, done.stderr.strip()[:200])
    return KvmState.WORKS if done.code == EXIT else KvmState.FAILS


def _keep(kept: Path, result: dict[str, str]) -> None:
    """Store the result for the next start."""
    with failures.best_effort(LOG, "the result of the KVM trial cannot be stored: %s", on=OSError, level=logging.DEBUG):
        kept.parent.mkdir(parents=True, exist_ok=True)
        # the directory may belong to another user, who could have put a link there
        descriptor, fresh = tempfile.mkstemp(prefix=".kvm.json.", dir=kept.parent)
        with os.fdopen(descriptor, "w") as target:
            os.fchmod(descriptor, 0o644)
            target.write(json.dumps(result))
        os.replace(fresh, kept)


def _key() -> str | None:
    """Return the key of the result: this boot and this device; None without a KVM device."""
    try:
        found = os.stat(DEVICE)
    except OSError:
        return None
    if found.st_rdev != os.makedev(10, 232):  # another file hides the device
        return None
    return f"{BOOT_ID.read_text().strip()} {found.st_dev}:{found.st_ino}:{found.st_mode:o}"
