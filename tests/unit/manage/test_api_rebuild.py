"""``nova-manage api_db rebuild``: what servers' records prove is made again, and what is there is left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db import flavors, keypairs
from nova.db.host import aggregates
from nova.db.models import api
from nova.db.quota import ledger
from nova.db.sql.engine import Database
from nova.manage import main
from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.server.keypairs import KeypairQuery
from nova.web import keys
from tests.fakes.databases import as_if_synced
from tests.fakes.rows import add_servers, new_uuid, server_row

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHrV5w9yhM6A4j+OXbBw0qTsO9CaQZR1XgG468Fzaov7 joe"
PRIVATE = Flavor(flavorid="9", name="m1.private", memory_mb=1024, vcpus=2, root_gb=5, is_public=False,
                 extra_specs={"hw:cpu_policy": "shared"})


class Options(SimpleNamespace):
    """Of both databases, as ``nova.conf`` would give them."""

    default_availability_zone = "nova"

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


class Cloud(SimpleNamespace):
    options: Options
    api: Database
    cell: Database

    def rebuild(self, *words: str) -> int:
        given = main.parser().parse_args(["api_db", "rebuild", *words])
        return given.command.run(self.options, given)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made, options = {}, {}
    for name, section in (("api", "api_database"), ("cell", "database")):
        url = f"sqlite:///{tmp_path}/{name}"
        made[name] = as_if_synced(name, Database(url))
        options[section] = SimpleNamespace(connection=url, max_pool_size=2, max_overflow=0, connection_recycle_time=10)
    yield Cloud(options=Options(**options), **made)
    for database in made.values():
        database.dispose()


def test_rebuild_when_all_is_lost_then_what_servers_prove_is_there_again(cloud: Cloud, capsys: Any) -> None:
    group = new_uuid()
    [uuid] = add_servers(cloud.cell, server_row(
        flavor=PRIVATE, flavorid="9", key_name="mine", public_key=KEY, host="host1", availability_zone="west",
        epoch=7, scheduler_hints={"group": group}))
    assert cloud.rebuild() == 0
    with cloud.api.reading() as tx:
        row = tx.execute(sa.select(api.ledger).where(api.ledger.c.server_uuid == uuid)).one()
        usage = ledger.usage(tx, "demo", "joe")
        flavor = flavors.get(tx, "9", Scope(project_id="demo"))
        [pair] = keypairs.select(tx, KeypairQuery(user_id="joe"), 10)
        zones = aggregates.zones(tx)
    assert (row.epoch, row.vcpus, row.facts.flavor, row.classes["VCPU"]) == (7, 2, PRIVATE, 2)
    assert usage["project"] == {"instances": 1, "cores": 2, "ram": 1024}
    assert (flavor.name, flavor.is_public, flavor.projects, flavor.extra_specs) == (
        "m1.private", False, ("demo",), PRIVATE.extra_specs)
    assert (pair.name, pair.public_key, pair.fingerprint) == ("mine", KEY, keys.fingerprint("ssh", KEY))
    assert zones == {"host1": "west"}
    said = capsys.readouterr().out
    assert f"lost: server group {group}, of 1 servers" in said and "nova-manage placement rebuild" in said


def test_rebuild_when_it_is_repeated_then_nothing_is_added(cloud: Cloud, capsys: Any) -> None:
    add_servers(cloud.cell, server_row(flavor=PRIVATE, flavorid="9", key_name="mine", public_key=KEY, host="host1",
                                       availability_zone="west"))
    assert cloud.rebuild("--dry-run") == 3
    assert "would create flavor m1.private (9)" in capsys.readouterr().out
    assert counts(cloud.api) == dict.fromkeys(counts(cloud.api), 0)
    assert cloud.rebuild() == 0
    before = counts(cloud.api)
    assert cloud.rebuild() == 0 and counts(cloud.api) == before
    assert cloud.rebuild("--dry-run") == 0
    assert "Nothing to do" in capsys.readouterr().out


def test_rebuild_when_records_are_there_then_they_stay_as_they_are(cloud: Cloud) -> None:
    closed, deleted = add_servers(cloud.cell, server_row(), server_row(deleted=2))
    cloud.api.transact(lambda tx: ledger.open_rows(tx, [
        {"server_uuid": closed, "project_id": "demo", "user_id": "joe", "vcpus": 1, "memory_mb": 512}]))
    cloud.api.transact(lambda tx: ledger.close(tx, {closed: 99}))
    cloud.api.transact(lambda tx: flavors.insert(tx, NewFlavor(flavorid="1", name="other", memory_mb=9, vcpus=9,
                                                               root_gb=9)))
    assert cloud.rebuild() == 0
    with cloud.api.reading() as tx:
        assert ledger.opened(tx, [closed, deleted]) == [closed]
        assert ledger.usage(tx, "demo", None)["project"]["instances"] == 0, "a row that is closed is never opened again"
        assert [one.name for one in flavors.select(tx, FlavorQuery(is_public=None), 10)] == ["other"]


def test_rebuild_when_two_servers_say_different_things_then_the_newer_is_right(cloud: Cloud) -> None:
    old = Flavor(flavorid="9", name="old", memory_mb=1, vcpus=1, root_gb=1)
    add_servers(cloud.cell, server_row(flavor=old, flavorid="9", host="host1", availability_zone="east"),
                server_row(flavor=PRIVATE, flavorid="9", host="host1", availability_zone="nova",
                           pinned_availability_zone="west"))
    assert cloud.rebuild() == 0
    with cloud.api.reading() as tx:
        assert flavors.get(tx, "9", Scope()).name == "m1.private" and aggregates.zones(tx) == {"host1": "west"}


def test_rebuild_when_a_flavors_name_is_taken_then_the_others_are_made_and_it_ends_with_1(cloud: Cloud, capsys: Any
                                                                                         ) -> None:
    taken = NewFlavor(flavorid="2", name="m1", memory_mb=9, vcpus=9, root_gb=9)
    cloud.api.transact(lambda tx: flavors.insert(tx, taken))
    add_servers(cloud.cell, server_row(key_name="mine", public_key=KEY), server_row(key_name="bad", public_key="no"))
    assert cloud.rebuild() == 1
    assert "not created: flavor m1 (1): " in capsys.readouterr().out
    with cloud.api.reading() as tx:
        assert [one.name for one in keypairs.select(tx, KeypairQuery(user_id="joe"), 10)] == ["mine"]


def counts(database: Database) -> dict[str, int]:
    with database.reading() as tx:
        return {table.name: tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for table in api.metadata.sorted_tables}
