"""Keys that conductors generate where none is configured, and share by a database."""

from __future__ import annotations

import base64
import contextlib
import logging
import secrets
from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from nova import errors
from nova.db.host.generated_keys import KeyCopies
from nova.db.sql.engine import Connection, Database
from nova.model.security.secret_wrap import KEY_BYTES, SecretWrap, new_key

LOG = logging.getLogger(__name__)

NAME = "host_secret_key"  # name under which copies of the generated key are encrypted
SALT_BYTES, BETWEEN = 16, "$"
#: RFC 7914 scrypt parameters: 16 MiB of memory and some 50 ms for each password.
SCRYPT_N, SCRYPT_R, SCRYPT_P = 2 ** 14, 8, 1


def generated_key(database: Database, key_copies: KeyCopies, passwords: Mapping[str, str]) -> str:
    """Return the key that the first conductor generated. ``passwords``: the password that encrypts each copy of the
    key, by the copy's name. At least one of them must be unchanged since the last start. Raises ``key_copies.lost`` if
    none is."""
    def agree(tx: Connection) -> str:
        key_copies.lock(tx)
        copies = key_copies.kept(tx)
        opened = {name: _opened(copies.get(name, ""), password) for name, password in passwords.items()}
        key = next(filter(None, opened.values()), "") or ("" if copies else new_key())
        if not key:
            raise key_copies.lost()
        missing = {name: _wrapped(key, passwords[name]) for name, found in opened.items() if found != key}
        if missing:
            key_copies.keep(tx, missing)
        return key
    return database.transact(agree)


def kept_key(database: Database, key_copies: KeyCopies, passwords: Mapping[str, str]) -> tuple[str, ...]:
    """Return a key that was generated before others were configured; empty if there is none, or if no password decrypts
    it."""
    with database.reading() as tx:
        copies = key_copies.kept(tx)
    found = [_opened(copies.get(name, ""), password) for name, password in passwords.items()] if copies else []
    if copies and not any(found):
        LOG.warning("a generated key in the %s database, from the time before [conductor]host_secret_key was set, "
                    "cannot be decrypted because the passwords have changed: run 'nova-manage host wrap-secrets', "
                    "which lists the hosts to readmit and the cells to record again", database.schema)
    return tuple(filter(None, found))[:1]


def keep_key(database: Database, key_copies: KeyCopies, passwords: Mapping[str, str], keys: Sequence[str]) -> None:
    """Store the first of these keys as if it had been generated, so that conductors without the others have it too."""
    copies = {name: _wrapped(keys[0], password) for name, password in passwords.items()}
    database.transact(lambda tx: key_copies.keep(tx, copies))


def _wrapped(key: str, password: str) -> str:
    salt = secrets.token_bytes(SALT_BYTES)
    return base64.urlsafe_b64encode(salt).decode() + BETWEEN + _wrap(password, salt).wrapped(NAME, key)


def _opened(copy: str, password: str) -> str:
    """Return the decrypted copy; "" if it is missing or this password does not decrypt it."""
    salt, between, wrapped = copy.partition(BETWEEN)
    if not between:
        return ""
    with contextlib.suppress(errors.host.SecretSealed, ValueError):
        return _wrap(password, base64.urlsafe_b64decode(salt)).opened(NAME, wrapped)
    return ""


def _wrap(password: str, salt: bytes) -> SecretWrap:
    derived = Scrypt(salt, KEY_BYTES, SCRYPT_N, SCRYPT_R, SCRYPT_P).derive(password.encode())
    return SecretWrap((base64.urlsafe_b64encode(derived).decode(),))
