"""Emulated TPMs: their state, and the secret that encrypts it.

libvirt keeps both: the state (``swtpm/<uuid>``) from a guest's first start, even while the guest is undefined, and the
secret (with the server's uuid) in its own store. A mark file in the guest's folder, created before both, says that
there may be something to remove.
"""

from __future__ import annotations

import secrets
import shutil
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec

from nova import decoding, errors, failures
from nova.privileged import tpm_states
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.xml.build import add, text

MARK = "tpm"
SECRET_BYTES = 32
EMULATORS = ("swtpm", "swtpm_setup")


class Tpms:
    """The TPMs of this host's guests. ``root``: libvirt's directory of states."""

    def __init__(self, hypervisor: LibvirtHypervisor, root: Path) -> None:
        self._hypervisor, self._root = hypervisor, root

    def prepare(self, server_uuid: str, folder: Folder) -> None:
        """Ensure a secret for the guest's TPM. Raises guest.TpmSecretLost if there is a state that needs a lost
        secret."""
        folder.file(MARK).touch(mode=0o600)
        if self._hypervisor.secret(server_uuid) is not None:
            return
        if self.state(server_uuid).exists():
            raise errors.guest.TpmSecretLost(uuid=server_uuid)
        self.bring(server_uuid, secrets.token_hex(SECRET_BYTES).encode())

    def bring(self, server_uuid: str, value: bytes) -> None:
        """Store a secret from another host, before the guest starts or arrives."""
        self._hypervisor.keep_secret(server_uuid, secret_xml(server_uuid), value)

    def secret(self, server_uuid: str) -> bytes | None:
        """Return the secret, for the host that the guest moves to; None if the guest has no TPM here."""
        return self._hypervisor.secret(server_uuid)

    def state(self, server_uuid: str) -> Path:
        """Return the folder of the state, which a cold migration copies to the other host."""
        return self._root / str(uuid.UUID(server_uuid))

    def packed(self, server_uuid: str) -> bytes:
        """Return the state, packed for another host."""
        return msgspec.msgpack.encode(dict(tpm_states.read(self._root, self.state(server_uuid).name)))

    def lay_out(self, server_uuid: str, packed: Path) -> None:
        """Unpack a state from another host. Raises move.Tpm."""
        if packed.stat().st_size > tpm_states.LONGEST:
            raise errors.move.Tpm(reason="it is too long")
        with failures.translated(msgspec.DecodeError, lambda error: errors.move.Tpm(reason=str(error))):
            found = decoding.from_msgpack(packed.read_bytes(), dict[str, bytes])
        tpm_states.lay_out(self._root, self.state(server_uuid).name, found)

    def remove(self, server_uuid: str, folder: Folder) -> None:
        """Remove the state and the secret; does nothing if the guest never had a TPM. Call before the folder is
        removed."""
        state = self.state(server_uuid)
        if not state.exists() and not folder.file(MARK).exists():
            return
        if state.exists():
            tpm_states.remove(self._root, state.name)
        self._hypervisor.drop_secret(server_uuid)
        if folder.owned:  # otherwise the mark belongs to its new host
            folder.file(MARK).unlink(missing_ok=True)


def secret_xml(server_uuid: str) -> str:
    """Return the XML of a secret that libvirt stores on disk (readable by its user only). It is not private: moves read
    it."""
    secret = ET.Element("secret", ephemeral="no", private="no")
    text(secret, "uuid", server_uuid)
    text(add(secret, "usage", type_="vtpm"), "name", f"tpm-{server_uuid}")
    return ET.tostring(secret, encoding="unicode")


def installed() -> bool:
    """Return whether this host has all programs of swtpm that libvirt needs for a TPM: swtpm(8), swtpm_setup(8)."""
    return all(shutil.which(program, path="/usr/bin:/usr/local/bin:/bin") for program in EMULATORS)
