#!/usr/bin/python3
"""In the place of QEMU: where a guest is to run under KVM, plays what a machine's KVM may do.

`hangs`: guests stop before their first instruction. `fails`: QEMU says that it cannot. `works`: the guest runs, by TCG.
What does not run a guest (libvirt's questions about QEMU) is passed on as it is.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve()
ANSWER = Path("/etc/fresh-kvm")
THEIRS, REAL = "/usr/bin/qemu-system-x86_64", "/usr/bin/qemu-system-x86_64.real"
#: Run once a machine is up: a device of this kind, and this program in the place of QEMU.
KVM_NODE = (f"mknod -m 666 /dev/kvm c 10 232; test -e {REAL} || mv {THEIRS} {REAL}; "
            f"ln -sf /usr/local/bin/qemu-played {THEIRS}")


def main(words: list[str]) -> None:
    text = " ".join(words)
    runs_a_guest = re.search(r"(-accel |accel=)kvm", text) and "-machine none" not in text and "-M none" not in text
    if runs_a_guest:
        answer = ANSWER.read_text().strip()
        if answer == "hangs":
            time.sleep(100_000)
        if answer == "fails":
            sys.exit("qemu-system-x86_64: failed to initialize kvm: Input/output error")
        words = [re.sub(r"^kvm\b|(?<=accel=)kvm\b", "tcg", word) for word in words]
        words = [re.sub(r"^host\b", "max", word) if before == "-cpu" else word
                 for before, word in zip(["", *words], words, strict=False)]
    os.execv(REAL, [THEIRS, *words])


if __name__ == "__main__":
    main(sys.argv[1:])
