"""Transfer of an emulated TPM to another host: its state and its secret, as two files in the guest's folder.

A cold migration copies both; in a live migration the hypervisor sends the state itself, and the secret must arrive
first.
"""

from __future__ import annotations

from nova.virt.libvirt.disks.backends.files import whole
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.tpm import MARK, Tpms

STATE, SECRET = "tpm.state", "tpm.secret"


def pack(tpms: Tpms, server_uuid: str, folder: Folder, live: bool = False) -> None:
    """Write the TPM's files; does nothing for a guest without a TPM. Existing files stay."""
    secret = tpms.secret(server_uuid) if folder.file(MARK).exists() else None
    if secret is None:
        return
    state = tpms.state(server_uuid)
    if not live and state.exists() and not folder.file(STATE).exists():
        _keep(folder, STATE, tpms.packed(server_uuid))
    if not folder.file(SECRET).exists():
        _keep(folder, SECRET, secret)


def unpack(tpms: Tpms, server_uuid: str, folder: Folder) -> None:
    """Install the TPM's files; does nothing if there are none. Raises move.Tpm."""
    if not folder.file(SECRET).exists():
        return
    folder.file(MARK).touch(mode=0o600)
    tpms.bring(server_uuid, folder.file(SECRET).read_bytes())
    state = tpms.state(server_uuid)
    if folder.file(STATE).exists() and not state.exists():
        tpms.lay_out(server_uuid, folder.file(STATE))
    drop(folder)


def drop(folder: Folder) -> None:
    """Remove the packed secret and state from the guest's folder, if they exist."""
    for name in (SECRET, STATE):
        folder.file(name).unlink(missing_ok=True)


def _keep(folder: Folder, name: str, content: bytes) -> None:
    with whole(folder.file(name)) as part:
        part.touch(mode=0o600)
        part.write_bytes(content)
