"""An emulated TPM on its way to another host: its state and the secret of it, as two files beside the guest.

A guest that is off takes both; of one that runs the hypervisor sends the state itself, and the secret must be there
before it.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

import msgspec

from nova import decoding, errors
from nova.virt.libvirt.disks.backends.files import whole
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.tpm import MARK, Tpms

STATE, SECRET = "tpm.state", "tpm.secret"
LONGEST_STATE = 16 << 20


def pack(tpms: Tpms, server_uuid: str, folder: Folder, live: bool = False) -> None:
    """Nothing for a guest without a TPM; what is packed stays."""
    secret = tpms.secret(server_uuid) if folder.file(MARK).exists() else None
    if secret is None:
        return
    state = tpms.state(server_uuid)
    if not live and state.exists() and not folder.file(STATE).exists():
        found = {str(path.relative_to(state)): path.read_bytes() for path in sorted(state.rglob("*")) if path.is_file()}
        _keep(folder, STATE, msgspec.msgpack.encode(found))
    if not folder.file(SECRET).exists():
        _keep(folder, SECRET, secret)


def unpack(tpms: Tpms, server_uuid: str, folder: Folder) -> None:
    """Nothing when nothing came. move.Tpm."""
    if not folder.file(SECRET).exists():
        return
    folder.file(MARK).touch(mode=0o600)
    tpms.bring(server_uuid, folder.file(SECRET).read_bytes())
    state = tpms.state(server_uuid)
    if folder.file(STATE).exists() and not state.exists():
        _lay_out(folder.file(STATE), state)
    drop(folder)


def drop(folder: Folder) -> None:
    """Remove the packed secret and state from the guest's folder. Nothing when they are not there."""
    for name in (SECRET, STATE):
        folder.file(name).unlink(missing_ok=True)


def _keep(folder: Folder, name: str, content: bytes) -> None:
    with whole(folder.file(name)) as part:
        part.touch(mode=0o600)
        part.write_bytes(content)


def _lay_out(packed: Path, state: Path) -> None:
    """Owned by root: libvirt hands it to the emulator's user at the start."""
    if packed.stat().st_size > LONGEST_STATE:
        raise errors.move.Tpm(reason="it is too long")
    try:
        found = decoding.from_msgpack(packed.read_bytes(), dict[str, bytes])
    except msgspec.DecodeError as error:
        raise errors.move.Tpm(reason=str(error)) from error
    part = state.with_name(f"{state.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for name, content in found.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or len(path.parts) > 3:
            raise errors.move.Tpm(reason=f"it has a file called {name[:60]!r}")
        target = part / path
        target.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(content)
    part.rename(state)
