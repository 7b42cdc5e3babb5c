"""``nova-manage placement`` as it is called, and the doctor's line about hosts that gave more than they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models import api
from nova.db.sql.engine import Database
from nova.manage import doctor, main
from tests.fakes.databases import as_if_synced
from tests.fakes.rows import add_provider, new_uuid


class Options(SimpleNamespace):
    """Of both databases, as ``nova.conf`` would give them."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    made = {}
    for name, section in (("api", "api_database"), ("cell", "database")):
        as_if_synced(name, Database(f"sqlite:///{tmp_path}/{name}")).dispose()
        made[section] = SimpleNamespace(connection=f"sqlite:///{tmp_path}/{name}", max_pool_size=2, max_overflow=0,
                                        connection_recycle_time=10)
    return Options(**made)


@pytest.fixture
def stores(options: Options) -> Iterator[Database]:
    made = Database(options.api_database.connection)
    yield made
    made.dispose()


def run(options: Options, *words: str) -> int:
    given = main.parser().parse_args(["placement", *words])
    return given.command.run(options, given)


def give(database: Database, amount: int) -> str:
    """Something is held of host1 by nobody; by what uuid."""
    provider, consumer = add_provider(database, "host1"), new_uuid()
    database.transact(lambda tx: tx.execute(sa.insert(api.allocations).values(
        provider_id=provider, consumer=consumer, resource_class="VCPU", used=amount)))
    return consumer


@pytest.mark.parametrize(("words", "code", "said"), [
    (["audit"], 0, "Every allocation belongs"), (["audit", "--verbose", "--delete"], 0, "Every allocation"),
    (["audit", "--resource_provider", new_uuid()], 127, "could not be found"),
    (["heal_allocations"], 4, "Nothing to heal"), (["heal_allocations", "--max-count", "0"], 127, "at least 1"),
    (["heal_allocations", "--dry-run", "--skip-port-allocations", "--cell", "c", "--force"], 4, "Nothing to heal"),
    (["heal_allocations", "--instance", new_uuid()], 127, "could not be found"),
    (["sync_aggregates", "--verbose"], 0, "Nothing to do"), (["rebuild"], 0, "Nothing to change"),
    (["rebuild", "--dry-run"], 0, "Nothing to change")])
def test_command_when_the_cloud_is_empty_then_its_exit_code_says_so(
        options: Options, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str) -> None:
    assert run(options, *words) == code
    assert said in capsys.readouterr().out


def test_audit_when_something_is_held_by_nobody_then_3_and_4_when_it_is_deleted(
        options: Options, stores: Database, capsys: pytest.CaptureFixture[str]) -> None:
    consumer = give(stores, 1)
    assert run(options, "audit") == 3
    assert consumer in capsys.readouterr().out
    assert run(options, "audit", "--delete") == 4
    assert run(options, "audit") == 0


def test_doctor_when_a_host_gave_more_than_it_has_then_it_is_named(options: Options, stores: Database) -> None:
    assert doctor.capacity(options).state == doctor.OK
    give(stores, 9)
    finding = doctor.capacity(options)
    assert finding.state == doctor.WARN and "host1 (9 of 4 VCPU)" in finding.what and "drain" in finding.cure
