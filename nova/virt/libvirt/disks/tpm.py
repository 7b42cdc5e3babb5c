"""Emulated TPMs: their state, and the secret that it is encrypted with.

libvirt keeps both: the state (``swtpm/<uuid>``) from a guest's first start on, whatever becomes of its definition, and
the secret (of the server's uuid) in its own store. A mark beside the guest, made before either, says that there may
be something to remove.
"""

from __future__ import annotations

import secrets
import shutil
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec

from nova import decoding, errors
from nova.privileged import tpm_states
from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.xml.build import add, text

MARK = "tpm"
SECRET_BYTES = 32
EMULATORS = ("swtpm", "swtpm_setup")


class Tpms:
    """``root``: where libvirt keeps the states."""

    def __init__(self, hypervisor: LibvirtHypervisor, root: Path) -> None:
        self._hypervisor, self._root = hypervisor, root

    def prepare(self, server_uuid: str, folder: Folder) -> None:
        """Have a secret for the guest's TPM. guest.TpmSecretLost: there is a state that an older one belongs to."""
        folder.file(MARK).touch(mode=0o600)
        if self._hypervisor.secret(server_uuid) is not None:
            return
        if self.state(server_uuid).exists():
            raise errors.guest.TpmSecretLost(uuid=server_uuid)
        self.bring(server_uuid, secrets.token_hex(SECRET_BYTES).encode())

    def bring(self, server_uuid: str, value: bytes) -> None:
        """Keep a secret that came from another host. (Before the guest is started or arrives.)"""
        self._hypervisor.keep_secret(server_uuid, secret_xml(server_uuid), value)

    def secret(self, server_uuid: str) -> bytes | None:
        """For the host that the guest moves to; None when it has no TPM here."""
        return self._hypervisor.secret(server_uuid)

    def state(self, server_uuid: str) -> Path:
        """The folder of the state: what a guest that is off takes with it to another host."""
        return self._root / str(uuid.UUID(server_uuid))

    def packed(self, server_uuid: str) -> bytes:
        """The state, to be sent to another host."""
        return msgspec.msgpack.encode(dict(tpm_states.read(self._root, self.state(server_uuid).name)))

    def lay_out(self, server_uuid: str, packed: Path) -> None:
        """A state that came from another host. move.Tpm."""
        if packed.stat().st_size > tpm_states.LONGEST:
            raise errors.move.Tpm(reason="it is too long")
        try:
            found = decoding.from_msgpack(packed.read_bytes(), dict[str, bytes])
        except msgspec.DecodeError as error:
            raise errors.move.Tpm(reason=str(error)) from error
        tpm_states.lay_out(self._root, self.state(server_uuid).name, found)

    def remove(self, server_uuid: str, folder: Folder) -> None:
        """State and secret. Nothing when the guest never had a TPM; before the folder goes."""
        state = self.state(server_uuid)
        if not state.exists() and not folder.file(MARK).exists():
            return
        if state.exists():
            tpm_states.remove(self._root, state.name)
        self._hypervisor.drop_secret(server_uuid)
        if folder.owned:  # else the mark stands for what its new host has
            folder.file(MARK).unlink(missing_ok=True)


def secret_xml(server_uuid: str) -> str:
    """libvirt keeps it on disk (for its own user alone), and gives it to whoever may manage guests: moves need that."""
    secret = ET.Element("secret", ephemeral="no", private="no")
    text(secret, "uuid", server_uuid)
    text(add(secret, "usage", type_="vtpm"), "name", f"tpm-{server_uuid}")
    return ET.tostring(secret, encoding="unicode")


def installed() -> bool:
    """Whether all programs of swtpm that libvirt needs for a TPM are on this host: swtpm(8), swtpm_setup(8)."""
    return all(shutil.which(program, path="/usr/bin:/usr/local/bin:/bin") for program in EMULATORS)
