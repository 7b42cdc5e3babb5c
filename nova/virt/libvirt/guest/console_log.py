"""The log of a guest's serial console (``nova.virt.interface.Consoles``). virtlogd writes it, and rotates it:
console.log, then .0, .1 and so on, with the oldest last."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nova import concurrency, errors
from nova.privileged import guest_files
from nova.privileged.client import in_use
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.guest.devices import CONSOLE_LOG
from nova.virt.libvirt.hypervisor import LibvirtHypervisor, state_of

MOST_PARTS = 64  # more than virtlogd keeps
#: The limit of one response: QEMU's user cannot write the log, but the guest controls its content.
MOST_BYTES = guest_files.LONGEST_TAIL


@dataclass(frozen=True)
class LibvirtConsoles:
    hypervisor: LibvirtHypervisor
    folders: Folders

    def console_output(self, server_uuid: str, lines: int | None) -> str:
        text = tail(self.folders.of(server_uuid).file(CONSOLE_LOG), lines)
        if text is None:
            state_of(self.hypervisor, server_uuid)
            raise errors.guest.NoConsoleLog(uuid=server_uuid)
        return text


def tail(log: Path, lines: int | None) -> str | None:
    """Return the last ``lines`` (None: all) of a log with its rotated parts; None if the log does not exist."""
    return _tail(log, lines) if in_use() is not None else concurrency.run_in_thread(_tail, log, lines)


def _tail(log: Path, lines: int | None) -> str | None:
    parts, size, ends, found = [], 0, 0, False
    for part in (log, *(log.with_name(f"{log.name}.{number}") for number in range(MOST_PARTS))):
        content = guest_files.tail(part, MOST_BYTES - size)
        if content is None:
            if part != log:  # directly after a rotation the newest part may not exist yet
                break
            continue
        found = True
        parts.append(content)
        size += len(content)
        ends += content.count(b"\n")
        if size >= MOST_BYTES or (lines is not None and ends > lines):
            break
    if not found:
        return None
    text = b"".join(reversed(parts)).decode("utf-8", "replace").replace("\r\n", "\n")
    return text if lines is None else _last(text, lines)


def _last(text: str, lines: int) -> str:
    """Return the last lines. Only newlines separate lines: guests also print other characters that Python splits at."""
    pieces = text.split("\n")
    unfinished = pieces[-1] != ""
    return "\n".join(pieces[max(0, len(pieces) - lines - (not unfinished)):]) if lines > 0 else ""
