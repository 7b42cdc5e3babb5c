"""The seal of image tickets: whoever has a key of ``[image_proxy]key`` makes and reads them, and nobody else."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from nova import decoding, errors
from nova.model.image.image_tickets import TicketFacts

LONGEST = 4096  # characters of a ticket; no more are looked at


class TicketSeal:
    """``keys``: the first seals, all of them open, so that a new one can be put in front of the old one."""

    def __init__(self, keys: Sequence[str]) -> None:
        """config.ImageProxyKey: there is none, or one is malformed."""
        if not keys:
            raise errors.config.ImageProxyKey(reason="is not set")
        try:
            self._fernet = MultiFernet([Fernet(key.encode()) for key in keys])
        except ValueError:  # its own message may tell of the key
            raise errors.config.ImageProxyKey(reason="has a key that is not 32 bytes in URL-safe base64") from None

    def seal(self, facts: TicketFacts) -> str:
        """The facts as text that only the keys' owners can read."""
        return self._fernet.encrypt(msgspec.msgpack.encode(facts)).decode("ascii")

    def open(self, sealed: str) -> TicketFacts:
        """The facts of a ticket. image.TicketInvalid: it was not made with one of the keys, or was changed since."""
        if len(sealed) > LONGEST:
            raise errors.image.TicketInvalid()
        try:
            return decoding.from_msgpack(self._fernet.decrypt(sealed.encode()), TicketFacts)
        except (InvalidToken, msgspec.MsgspecError, UnicodeError):
            raise errors.image.TicketInvalid() from None
