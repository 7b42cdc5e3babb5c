"""Capabilities of a host's QEMU: architectures, machine types, firmware, models of devices."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

RUNNABLE = {"x86_64": frozenset({"x86_64", "i686"})}
DESCRIPTIONS = (Path("/usr/share/qemu/firmware"), Path("/etc/qemu/firmware"))

#: Models that were added in a version of QEMU: (field, model) -> the version, as QEMU counts.
SINCE = {("sound_model", "virtio"): 8_002_000, ("vif_model", "igb"): 8_000_000}


def runnable(arch: str) -> frozenset[str]:
    """Return the guest architectures that a host of ``arch`` can run."""
    return RUNNABLE.get(arch, frozenset({arch}))


def is_kind(machine: str | None, kind: str) -> bool:
    """Return whether a machine type (q35, pc-q35-7.2, virt, virt-7.2) is of a kind."""
    return machine is not None and (machine == kind or machine.startswith((f"{kind}-", f"pc-{kind}-")))


def has_stateless(folders: tuple[Path, ...] = DESCRIPTIONS) -> bool:
    """Return whether the host has stateless UEFI firmware (without variables), by the descriptors of QEMU's
    packages."""
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            mapping = json.loads(path.read_text()).get("mapping", {})
            if mapping.get("device") == "flash" and mapping.get("mode") == "stateless":
                return True
    return False
