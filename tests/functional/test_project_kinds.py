"""What projects use, own and may have, on each kind of database for real: sums, audits, quotas, long texts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.queries import usage as queries
from nova.db import certificates, flavors, keypairs
from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.operation import runners
from nova.db.quota import quotas, usage, usage_audits
from nova.db.schema import migrate
from nova.db.sql.engine import Database
from nova.model.base import Page, Scope, utcnow
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.quota.usage import DONE, HostAudit, UsageQuery
from nova.model.security.certificates import CertificateQuery, CertificateRecord
from nova.model.server.keypairs import NewKeypair
from tests.fakes.racing import together
from tests.fakes.rows import add_servers, server_row
from tests.functional.backends import KINDS, Absent

HOUR = datetime.timedelta(hours=1)
START = datetime.datetime(2026, 3, 1, 0, 0, 0, 250000)
BIG = Flavor(flavorid="2", name="m2", memory_mb=2048, vcpus=4, root_gb=10, ephemeral_gb=5)
PERIOD = (START, START + 24 * HOUR)


@pytest.fixture(scope="module", params=list(KINDS))
def stores(backends, request: pytest.FixtureRequest) -> Iterator[tuple[Database, Database]]:
    """Both schemas as an operator makes them: by the migrations."""
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = [Database(server.create(f"projects_{schema}")) for schema in ("api", "cell")]
    for schema, database in zip(("api", "cell"), made, strict=True):
        migrate.sync(schema, database)
    yield made[0], made[1]
    for database in made:
        database.dispose()


def lived(begin: float, end: float | None = None, **fields: Any) -> dict[str, Any]:
    return server_row(launched_at=START + begin * HOUR, terminated_at=None if end is None else START + end * HOUR,
                      **fields)


def test_sums_are_the_same_in_sql_and_over_pages(stores: tuple[Database, Database]) -> None:
    _api, cell = stores
    add_servers(cell, lived(-5, 1.5), lived(2, flavor=BIG), lived(30), lived(1, 2, project_id="zoe", flavor=BIG))
    query = UsageQuery(start=START, end=START + 24 * HOUR, servers=True)
    with cell.reading() as tx:
        summed = usage.sums(tx, query)
        rows = usage.page(tx, query, 100)
        after = UsageQuery(start=query.start, end=query.end, page=Page(marker=rows[0].uuid))
        rest = usage.page(tx, after, 100, usage.project_of(tx, after))
    assert [row.uuid for row in rest] == [row.uuid for row in rows[1:]]
    demo, zoe = summed
    assert (demo.hours, demo.vcpu_hours, demo.local_gb_hours) == pytest.approx((23.5, 1.5 + 88, 1.5 + 330), rel=1e-7)
    assert (zoe.project_id, zoe.memory_mb_hours) == ("zoe", pytest.approx(2048))
    for one, same in zip(summed, queries._by_project(query, rows), strict=True):
        assert (one.hours, one.memory_mb_hours) == pytest.approx((same.hours, same.memory_mb_hours), rel=1e-7)


def test_audit_is_one_runners_until_its_lease_ends(stores: tuple[Database, Database]) -> None:
    _api, cell = stores
    mine, theirs = (cell.transact(lambda tx: runners.new_runner(tx, "r", 60)) for _ in range(2))
    assert cell.transact(lambda tx: usage_audits.take(tx, "h1", PERIOD, mine))
    assert cell.transact(lambda tx: usage_audits.take(tx, "h1", PERIOD, mine))  # after a failure of its own
    assert not cell.transact(lambda tx: usage_audits.take(tx, "h1", PERIOD, theirs))
    cell.transact(lambda tx: tx.execute(sa.delete(tables.runners).where(tables.runners.c.id == mine)))
    assert cell.transact(lambda tx: usage_audits.take(tx, "h1", PERIOD, theirs))
    done = HostAudit(host="h1", state=DONE, servers=3, message="done")
    assert not cell.transact(lambda tx: usage_audits.write(tx, done, PERIOD, mine))
    assert cell.transact(lambda tx: usage_audits.write(tx, done, PERIOD, theirs))
    with cell.reading() as tx:
        assert usage_audits.of_period(tx, PERIOD) == {"h1": done} and usage_audits.open_hosts(tx, PERIOD, mine) == []
    assert cell.transact(lambda tx: usage_audits.purge(tx, PERIOD[1] + HOUR, 0, 100)) == 1


def test_limits_of_all_levels_come_in_their_order(stores: tuple[Database, Database]) -> None:
    api, _cell = stores
    api.transact(lambda tx: quotas.write_class(tx, "default", {"cores": 1, "ram": 2}))
    api.transact(lambda tx: quotas.write(tx, "demo", None, {"cores": 3}))
    api.transact(lambda tx: quotas.write(tx, "demo", "joe", {"cores": 4}))
    with api.reading() as tx:
        assert quotas.limits(tx, "demo", "joe") == ({"cores": 1, "ram": 2}, {"cores": 3}, {"cores": 4})
        assert quotas.used(tx, "demo", "joe") == {"server_groups": 0, "key_pairs": 0}


def test_keypairs_are_counted_and_names_differ_by_case(stores: tuple[Database, Database]) -> None:
    api, _cell = stores
    key = NewKeypair(name="Key", user_id="joe", fingerprint="f", public_key="k")
    api.transact(lambda tx: keypairs.insert(tx, key))
    with api.reading() as tx:
        assert (keypairs.count(tx, "joe", "Key"), keypairs.count(tx, "joe", "key")) == ((1, True), (1, False))
        assert keypairs.count(tx, "eve", "Key") == (0, False)


def test_flavors_of_one_name_when_they_are_made_at_once_then_the_name_is_what_is_taken(
        stores: tuple[Database, Database]) -> None:
    api, _cell = stores

    def make(number: int) -> None:
        one = NewFlavor(name="alike", flavorid=f"alike{number}", memory_mb=1, vcpus=1, root_gb=1)
        api.transact(lambda tx: flavors.insert(tx, one))
    made = together([lambda number=number: make(number) for number in range(8)])
    assert [type(one) for one in made if one] == [errors.flavor.NameTaken] * 7, made
    api.transact(lambda tx: tx.execute(sa.delete(api_tables.flavors)))


def test_flavors_hold_the_longest_description_and_sort_by_any_factor(stores: tuple[Database, Database]) -> None:
    api, _cell = stores
    longest = "\N{SNOWMAN}" * 65535
    for number in range(4):
        flavor = NewFlavor(name=f"f{number}", flavorid=f"f{number}", memory_mb=1, vcpus=1, root_gb=1, rxtx_factor=1.1,
                           description=longest if number == 0 else None)
        api.transact(lambda tx, flavor=flavor: flavors.insert(tx, flavor))
    seen: list[str] = []
    while True:
        page = Page(marker=seen[-1] if seen else None)
        with api.reading() as tx:
            found = flavors.select(tx, FlavorQuery(sort_key="rxtx_factor", page=page), 2)
        seen += [one.flavorid for one in found]
        if len(found) < 2:
            break
        assert len(seen) <= 4, seen
    assert seen == ["f0", "f1", "f2", "f3"]
    with api.reading() as tx:
        assert flavors.get(tx, "f0", Scope()).description == longest


def test_certificate_when_its_row_is_written_again_then_it_is_the_newer_ones_until_it_goes(
        stores: tuple[Database, Database]) -> None:
    api, _cell = stores
    mine = CertificateRecord(user_id="joe", project_id="demo", file_name="/CA/newcerts/10.pem",
                             ends_at=utcnow() + HOUR)
    hers = CertificateRecord(user_id="ann", project_id="demo", file_name=mine.file_name, ends_at=utcnow() - 2 * HOUR)
    other = CertificateRecord(user_id="Joe", project_id="demo", file_name="/CA/newcerts/11.pem", ends_at=mine.ends_at)
    for one in (mine, mine, other):
        api.transact(lambda tx, one=one: certificates.put(tx, one))

    def found(user: str) -> tuple[CertificateRecord, ...]:
        with api.reading() as tx:
            return certificates.select(tx, CertificateQuery(user_id=user), 10)
    assert found("joe") == (mine,) and found("Joe") == (other,)  # letters' case counts everywhere
    api.transact(lambda tx: certificates.put(tx, hers))
    assert found("joe") == () and found("ann") == (hers,)
    assert [api.transact(lambda tx: certificates.purge(tx, 3600, 10)) for _ in range(2)] == [1, 0]
    api.transact(lambda tx: certificates.delete(tx, (other.file_name, "/CA/newcerts/12.pem")))
    assert found("Joe") == () == found("ann")


def test_certificates_when_two_write_one_row_at_once_then_there_is_one(stores: tuple[Database, Database]) -> None:
    api, _cell = stores
    rows = [CertificateRecord(user_id=user, project_id="race", file_name="/CA/newcerts/20.pem", ends_at=utcnow())
            for user in ("joe", "ann")]
    together([lambda one=one: api.transact(lambda tx: certificates.put(tx, one)) for one in rows])
    with api.reading() as tx:
        assert len(certificates.select(tx, CertificateQuery(project_id="race"), 10)) == 1
