"""States of emulated TPMs: a directory for each guest, below libvirt's own, owned by the emulator's user."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from nova import concurrency, errors
from nova.privileged.client import forwarded

LONGEST = 16 << 20
MOST_PARTS = 3


@forwarded("tpm_states.remove", local=("root",))
def remove(root: Path, server_uuid: str) -> None:
    """Remove the state, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        concurrency.run_in_thread(shutil.rmtree, root / server_uuid)


@forwarded("tpm_states.read", local=("root",))
def read(root: Path, server_uuid: str) -> Mapping[str, bytes]:
    """Return the files of a state, by their names below it."""
    state = root / server_uuid
    return {str(path.relative_to(state)): path.read_bytes() for path in sorted(state.rglob("*"))
            if path.is_file() and not path.is_symlink()}


@forwarded("tpm_states.lay_out", local=("root",))
def lay_out(root: Path, server_uuid: str, files: Mapping[str, bytes]) -> None:
    """Write the state, owned by root: libvirt gives it to the emulator's user at the start. Raises move.Tpm."""
    state = root / server_uuid
    part = state.with_name(f"{state.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for name, content in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or len(path.parts) > MOST_PARTS:
            raise errors.move.Tpm(reason=f"it contains a file named {name[:60]!r}")
        target = part / path
        target.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(content)
    part.rename(state)


__all__ = ["LONGEST", "lay_out", "read", "remove"]
