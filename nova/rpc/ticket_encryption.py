"""Encryption of image tickets: only holders of a key of ``[image_proxy]key`` can create and read them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from nova import decoding, errors, failures
from nova.model.image.image_tickets import TicketFacts

LONGEST = 4096  # characters of a ticket; longer ones are refused unread


class TicketCipher:
    """Encryption and decryption of tickets. ``keys``: the first one encrypts, any of them decrypts. For a key rotation,
    put the new key in front of the old one."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Load the keys. Raises config.ImageProxyKey without any key, or if a key is malformed."""
        if not keys:
            raise errors.config.ImageProxyKey(reason="is not set")
        # its message may reveal the key
        with failures.replaced(ValueError,
                lambda _: errors.config.ImageProxyKey(reason="has a key that is not 32 bytes in URL-safe base64")):
            self._fernet = MultiFernet([Fernet(key.encode()) for key in keys])

    def encrypt(self, facts: TicketFacts) -> str:
        """Return the facts as text that only holders of a key can read."""
        return self._fernet.encrypt(msgspec.msgpack.encode(facts)).decode("ascii")

    def open(self, sealed: str) -> TicketFacts:
        """Return the facts of a ticket. Raises image.TicketInvalid if it was not made with one of the keys, or was
        altered."""
        if len(sealed) > LONGEST:
            raise errors.image.TicketInvalid()
        with failures.replaced((InvalidToken, msgspec.MsgspecError, UnicodeError),
                lambda _: errors.image.TicketInvalid()):
            return decoding.from_msgpack(self._fernet.decrypt(sealed.encode()), TicketFacts)
