"""What conductors agree on by the database: the cloud's security mode, and a key that nobody configured."""

from __future__ import annotations

import base64
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

NAME = "host_secret_key"  # what a copy of the generated key is wrapped as
SALT_BYTES, BETWEEN = 16, "$"
#: RFC 7914: 16 MiB of memory and some 50 ms a password.
SCRYPT_N, SCRYPT_R, SCRYPT_P = 2 ** 14, 8, 1


def agree_on_mode(cell: Database, asked: SecurityMode) -> SecurityMode:
    """The mode on record; the first conductor records the one that its configuration asks for. A cloud in upstream mode
    whose conductors are given options of bounded mode is on its way there, host by host.
    config.LeavesBoundedMode: a bounded cloud, and none of its options."""
    recorded = cell.transact(lambda tx: security.record_first(tx, asked))
    if recorded is SecurityMode.BOUNDED and asked is SecurityMode.UPSTREAM:
        raise errors.config.LeavesBoundedMode(others=", [conductor]host_secret_key and [image_proxy]key")
    if recorded is not asked:
        LOG.warning("This configuration asks for %s mode, and the cloud is in %s mode still. Move each host with "
                    "'nova-manage host isolate HOST', and end with 'nova-manage host isolate --all'", asked, recorded)
    return recorded


def generated_key(cell: Database, passwords: Mapping[str, str]) -> str:
    """The key of hosts' secrets that the first conductor generated. ``passwords``: what wraps each copy of it, by the
    copy's name; of several, all but one may have changed since the last start. config.GeneratedKey: all have."""
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
    """A key that was generated when the cloud was in upstream mode; none where the database has none any more, or
    no password opens it."""
    with cell.reading() as tx:
        copies = security.key_copies(tx)
    found = [_opened(copies.get(name, ""), password) for name, password in passwords.items()] if copies else []
    if copies and not any(found):
        LOG.warning("the key of hosts' secrets that was generated in upstream mode cannot be opened, as the passwords "
                    "have changed: run 'nova-manage host wrap-secrets', which names hosts that have to be readmitted")
    return tuple(filter(None, found))[:1]


def keep_key(cell: Database, passwords: Mapping[str, str], keys: Sequence[str]) -> None:
    """Keep the first of these keys as if it had been generated: conductors without the others have it, too."""
    copies = {name: _wrapped(keys[0], password) for name, password in passwords.items()}
    cell.transact(lambda tx: security.keep_key_copies(tx, copies))


def _wrapped(key: str, password: str) -> str:
    salt = secrets.token_bytes(SALT_BYTES)
    return base64.urlsafe_b64encode(salt).decode() + BETWEEN + _wrap(password, salt).wrapped(NAME, key)


def _opened(copy: str, password: str) -> str:
    """Empty: there is no copy, or this password does not open it."""
    salt, between, wrapped = copy.partition(BETWEEN)
    if not between:
        return ""
    try:
        return _wrap(password, base64.urlsafe_b64decode(salt)).opened(NAME, wrapped)
    except (errors.host.SecretSealed, ValueError):
        return ""


def _wrap(password: str, salt: bytes) -> SecretWrap:
    derived = Scrypt(salt, KEY_BYTES, SCRYPT_N, SCRYPT_R, SCRYPT_P).derive(password.encode())
    return SecretWrap((base64.urlsafe_b64encode(derived).decode(),))
