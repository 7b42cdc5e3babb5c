"""The key manager: Barbican's API v1, or one fixed key. Nova reads the keys of encrypted volumes from it.

A volume's passphrase is its key in hex digits, as in Cinder. A key belongs to the project of the volume: a call with a
user's token may read it. Nova itself may read it only if Barbican's policy, or the key's own ACL, permits that.
"""

from __future__ import annotations

import binascii
from urllib.parse import quote

from nova import errors, failures
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.conf.barbican import BarbicanOptions
from nova.conf.key_manager import KeyManagerOptions

#: The id of the fixed key; no other key has it.
FIXED_ID = "00000000-0000-0000-0000-000000000000"
FIXED_BACKEND = "ConfKeyManager"
BARBICAN = "barbican"


class VolumeKeys:
    """Keys of volumes. ``fixed``: the fixed key; None if there is none. ``barbican`` None: there are no other keys."""

    def __init__(self, fixed: bytes | None, barbican: Caller | None) -> None:
        self._fixed, self._barbican = fixed, barbican

    def passphrase(self, key_id: str, as_user: bool = False) -> str:
        """Return the passphrase of a volume with that key. Raises volume.NoKey if the key is not available."""
        if self._barbican is None or key_id == FIXED_ID:
            if self._fixed is None or key_id != FIXED_ID:
                raise errors.volume.NoKey(key=key_id, reason="[key_manager] has no such key")
            return self._fixed.hex()
        with failures.translated(errors.NovaError, lambda error: errors.volume.NoKey(key=key_id, reason=error.message)):
            answer = self._barbican.call("GET", f"/v1/secrets/{quote(key_id, safe='')}/payload", as_user=as_user,
                                         what=f"secret {key_id}", headers={"Accept": "application/octet-stream"},
                                         log=False)
        if not answer.content:
            raise errors.volume.NoKey(key=key_id, reason="Barbican has no payload for it")
        return answer.content.hex()


def of_groups(key_manager: KeyManagerOptions, barbican: BarbicanOptions, credentials: Credentials) -> VolumeKeys:
    """Return the keys for ``[key_manager]`` and ``[barbican]``. Raises config.KeyManager."""
    fixed = None
    if key_manager.fixed_key:
        with failures.replaced(ValueError, lambda _: errors.config.KeyManager(option="fixed_key",
                reason="it must consist of hex digits, two for each byte")):
            fixed = binascii.unhexlify(key_manager.fixed_key)
    backend = key_manager.backend
    if backend.endswith(FIXED_BACKEND):
        if fixed is None:
            raise errors.config.KeyManager(option="backend", reason="this backend requires fixed_key")
        return VolumeKeys(fixed, None)
    if BARBICAN not in backend.lower():
        raise errors.config.KeyManager(option="backend",
                                       reason=f"this release has barbican and {FIXED_BACKEND}")
    address = (barbican.barbican_endpoint or "").rstrip("/").removesuffix("/v1")
    service = ServiceEndpoint(BARBICAN, "key-manager", (address,) if address else (), barbican.barbican_region_name,
                              (barbican.barbican_endpoint_type,))
    return VolumeKeys(fixed, Caller(service, credentials) if address or credentials.auth is not None else None)
