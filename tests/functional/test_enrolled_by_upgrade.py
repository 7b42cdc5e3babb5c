"""The upgrade of a cloud whose hosts were believed at first sight: they are enrolled, by the secrets that they told."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.host import enrolments
from nova.db.models import cell
from nova.db.schema import migrate
from nova.db.sql.engine import Database
from nova.model.security.secret_wrap import SecretWrap, new_key
from tests.functional.backends import KINDS, Absent

pytestmark = pytest.mark.in_turn(4, 10)

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


def service(number: int, host: str, binary: str, secret: str, deleted: int = 0) -> dict[str, Any]:
    return {"uuid": f"{number:08}-0000-4000-8000-000000000000", "host": host, "binary": binary, "secret": secret,
            "host_id": "", "disabled": False, "forced_down": False, "version": 1, "release": "", "created_at": NOW,
            "deleted": deleted}


@pytest.mark.parametrize("kind", list(KINDS))
def test_sync_when_hosts_told_secrets_then_they_are_enrolled_for_what_they_run(backends: Any, kind: str) -> None:
    try:
        database = Database(backends.database(kind).create("enrolled"))
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    migrate.sync("cell", database, "0006")
    rows = [service(1, "c1", "nova-compute", "1" * 64), service(2, "c1", "nova-network", "1" * 64),
            service(3, "c2", "nova-compute", "2" * 64), service(4, "ctl", "nova-conductor", ""),
            service(5, "ctl", "nova-metadata", ""), service(6, "gone", "nova-compute", "3" * 64, deleted=6)]
    database.transact(lambda tx: tx.execute(sa.insert(cell.services), rows))
    for _twice in range(2):  # a sync that died may come again
        migrate.sync("cell", database)
        with database.reading() as tx:
            listed = {one.host: one for one in enrolments.listed(tx, SecretWrap((new_key(),)))}
            assert enrolments.in_clear(tx) == ("c1", "c2")
            assert {host: one.runs for host, one in listed.items()} == {
                "c1": ("nova-compute", "nova-network"), "c2": ("nova-compute",)}
            assert all(one.joined_at and not one.waits and not one.expelled_at for one in listed.values())
            assert enrolments.keys(tx, "c1").secret == "1" * 64 and enrolments.keys(tx, "gone").secret == ""
    _wrapped(database)
    for claim, newly in ({"VCPU": 4}, ()), ({"VCPU": 9}, ("VCPU",)), ({"VCPU": 9}, ()):
        believed = database.transact(lambda tx, claim=claim: enrolments.note_capacity(tx, "c1", claim))
        assert believed == ({"VCPU": 8}, newly)
    assert database.transact(lambda tx: enrolments.accept_capacity(tx, "c1", {"VCPU": 9})) == {"VCPU": 18}
    database.dispose()


def _wrapped(database: Database) -> None:
    """What stood in clear has room to be wrapped, and is the same secret then; by one key and by the next."""
    old, new = new_key(), new_key()
    for wrap in (SecretWrap((old,)), SecretWrap((new, old)), SecretWrap((new,))):
        for host in ("c1", "c2"):
            database.transact(lambda tx, host=host, wrap=wrap: enrolments.rewrap(tx, host, wrap))
        with database.reading() as tx:
            assert enrolments.in_clear(tx) == () and enrolments.with_secrets(tx) == ("c1", "c2")
            assert wrap.opened("c2", enrolments.keys(tx, "c2").secret) == "2" * 64
    database.transact(lambda tx: enrolments.keep_secret(tx, "c1", "4" * 64, wrap, keep_former=True))
    with database.reading() as tx:
        found = enrolments.keys(tx, "c1")
    assert [wrap.opened("c1", kept) for kept in (found.secret, found.former)] == ["4" * 64, "1" * 64]
