"""State that conductors share by the database: the cloud's security mode, and a generated key if none is configured."""

from __future__ import annotations

import base64
import contextlib
import logging
import secrets
from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from nova import errors
from nova.db.host import security
from nova.db.sql.engine import Connection, Database
from nova.model.security.secret_wrap import KEY_BYTES, SecretWrap, new_key
from nova.model.security.security_modes import SecurityMode

LOG = logging.getLogger(__name__)

NAME = "host_secret_key"  # name under which copies of the generated key are encrypted
SALT_BYTES, BETWEEN = 16, "$"
#: RFC 7914 scrypt parameters: 16 MiB of memory and some 50 ms for each password.
SCRYPT_N, SCRYPT_R, SCRYPT_P = 2 ** 14, 8, 1


def agree_on_mode(cell: Database, asked: SecurityMode) -> SecurityMode:
    """Return the recorded mode; the first conductor records the mode of its configuration. Options of bounded mode in
    an upstream cloud mean that it is moving there, host by host. Raises config.LeavesBoundedMode if the cloud is
    bounded and none of that mode's options is set."""
    recorded = cell.transact(lambda tx: security.record_first(tx, asked))
    if recorded is SecurityMode.BOUNDED and asked is SecurityMode.UPSTREAM:
        raise errors.config.LeavesBoundedMode(others=", [conductor]host_secret_key and [image_proxy]key")
    if recorded is not asked:
        LOG.warning("This configuration requests %s mode, but the cloud is still in %s mode. Move each host with "
                    "'nova-manage host isolate HOST', and finish with 'nova-manage host isolate --all'",
                    asked, recorded)
    return recorded


def generated_key(cell: Database, passwords: Mapping[str, str]) -> str:
    """Return the key of hosts' secrets that the first conductor generated. ``passwords``: the password that encrypts
    each copy of the key, by the copy's name. At least one of them must be unchanged since the last start. Raises
    config.GeneratedKey if none is."""
    def agree(tx: Connection) -> str:
        security.lock(tx)
        copies = security.key_copies(tx)
        opened = {name: _opened(copies.get(name, ""), password) for name, password in passwords.items()}
        key = next(filter(None, opened.values()), "") or ("" if copies else new_key())
        if not key:
            raise errors.config.GeneratedKey()
        missing = {name: _wrapped(key, passwords[name]) for name, found in opened.items() if found != key}
        if missing:
            security.keep_key_copies(tx, missing)
        return key
    return cell.transact(agree)


def kept_key(cell: Database, passwords: Mapping[str, str]) -> tuple[str, ...]:
    """Return a key that was generated in upstream mode; empty if the database has none, or no password decrypts it."""
    with cell.reading() as tx:
        copies = security.key_copies(tx)
    found = [_opened(copies.get(name, ""), password) for name, password in passwords.items()] if copies else []
    if copies and not any(found):
        LOG.warning("the generated key of hosts' secrets, from upstream mode, cannot be decrypted because the "
                    "passwords have changed: run 'nova-manage host wrap-secrets', which lists the hosts to readmit")
    return tuple(filter(None, found))[:1]


def keep_key(cell: Database, passwords: Mapping[str, str], keys: Sequence[str]) -> None:
    """Store the first of these keys as if it had been generated, so that conductors without the others have it too."""
    copies = {name: _wrapped(keys[0], password) for name, password in passwords.items()}
    cell.transact(lambda tx: security.keep_key_copies(tx, copies))


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
