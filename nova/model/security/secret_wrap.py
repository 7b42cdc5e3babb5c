"""Encryption of host secrets in the database with ``[conductor]host_secret_key``, which only conductors have."""

from __future__ import annotations

import base64
import binascii
import contextlib
import secrets
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from nova import errors, failures

MARK = "aesgcm:"  # prefix of encrypted secrets; a secret has no colon
KEY_BYTES, NONCE_BYTES = 32, 12


def new_key() -> str:
    """Return a new key for ``[conductor]host_secret_key``."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


class SecretWrap:
    """Encryption with several keys. The first of ``keys`` encrypts, all of them decrypt, so that a new key can be added
    in front of the old one. A secret encrypted for one host cannot be decrypted for another: its text cannot be moved
    to another host's row."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raise config.HostSecretKey if keys are missing or malformed."""
        if not keys:
            raise errors.config.HostSecretKey(reason="is not set")
        self._ciphers = [AESGCM(_decoded(key)) for key in keys]

    def wrapped(self, host: str, secret: str) -> str:
        """Return the encrypted text for the database; empty for an empty secret."""
        if not secret:
            return ""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, secret.encode(), host.encode())
        return MARK + base64.urlsafe_b64encode(nonce + sealed).decode()

    def opened(self, host: str, kept: str) -> str:
        """Return the decrypted secret. A secret that an earlier release stored unencrypted is returned as it is. Raises
        host.SecretSealed if no key decrypts it, if it was changed, or if it belongs to another host."""
        if not kept.startswith(MARK):
            return kept
        with failures.replaced((binascii.Error, ValueError), lambda _: errors.host.SecretSealed(host=host)):
            sealed = base64.urlsafe_b64decode(kept.removeprefix(MARK))
        for cipher in self._ciphers:
            with contextlib.suppress(InvalidTag, ValueError):  # ValueError: it is too short
                return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], host.encode()).decode()
        raise errors.host.SecretSealed(host=host)


def _decoded(key: str) -> bytes:
    decoded = b""
    with contextlib.suppress(binascii.Error, ValueError):  # its own message may reveal the key
        decoded = base64.urlsafe_b64decode(key)
    if len(decoded) != KEY_BYTES:
        raise errors.config.HostSecretKey(reason="has a key that is not 32 bytes in URL-safe base64")
    return decoded
