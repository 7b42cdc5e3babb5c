"""Hosts' secrets as the database keeps them: wrapped by ``[conductor]host_secret_key``, which conductors alone have."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from nova import errors

MARK = "aesgcm:"  # begins what is wrapped; a secret has no colon
KEY_BYTES, NONCE_BYTES = 32, 12


def new_key() -> str:
    """A key for ``[conductor]host_secret_key``."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


class SecretWrap:
    """``keys``: the first wraps, all of them open, so that a new one can be put in front of the old one. What is
    wrapped for one host opens for no other: it cannot be moved to another's row."""

    def __init__(self, keys: Sequence[str]) -> None:
        """config.HostSecretKey: there is none, or one is malformed."""
        if not keys:
            raise errors.config.HostSecretKey(reason="is not set")
        self._ciphers = [AESGCM(_decoded(key)) for key in keys]

    def wrapped(self, host: str, secret: str) -> str:
        """Text for the database; of nothing: nothing."""
        if not secret:
            return ""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, secret.encode(), host.encode())
        return MARK + base64.urlsafe_b64encode(nonce + sealed).decode()

    def opened(self, host: str, kept: str) -> str:
        """The secret; what an earlier release kept in clear is it already. host.SecretSealed: no key opens it, or it
        was changed or is another host's."""
        if not kept.startswith(MARK):
            return kept
        try:
            sealed = base64.urlsafe_b64decode(kept.removeprefix(MARK))
        except (binascii.Error, ValueError):
            raise errors.host.SecretSealed(host=host) from None
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], host.encode()).decode()
            except (InvalidTag, ValueError):  # ValueError: it is too short for any
                continue
        raise errors.host.SecretSealed(host=host)


def _decoded(key: str) -> bytes:
    try:
        decoded = base64.urlsafe_b64decode(key)
    except (binascii.Error, ValueError):  # its own message may tell of the key
        decoded = b""
    if len(decoded) != KEY_BYTES:
        raise errors.config.HostSecretKey(reason="has a key that is not 32 bytes in URL-safe base64")
    return decoded
