"""Limits of the database, written to Keystone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nova import errors
from nova.clients.keystone import ProjectLimits
from nova.db import quotas
from nova.db.engine import Database
from nova.db.models import api as models
from nova.manage.limits_commands import LimitsMigration, migrate

DEFAULTS = {"instances": 10, "cores": 20, "ram": 51200, "key_pairs": 100}


class Keystone:
    """What it was told; ``gone``: a project that it does not know."""

    def __init__(self, **registered: int) -> None:
        self.registered, self.own = dict(registered), dict[str, dict[str, int]]()
        self.gone, self.away = "", False

    def limits(self, project_id: str) -> ProjectLimits:
        return ProjectLimits(dict(self.registered), dict(self.own.get(project_id, {})))

    def register(self, limits: Mapping[str, int]) -> None:
        self.registered |= limits

    def limit(self, project_id: str, limits: Mapping[str, int]) -> None:
        if self.away:
            raise errors.service.Unavailable(service="identity", reason="it is away")
        if project_id == self.gone:
            raise errors.service.Invalid(service="identity", reason="no such project")
        self.own.setdefault(project_id, {}).update(limits)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/api")
    models.metadata.create_all(made.engine)
    made.transact(lambda tx: quotas.write_class(tx, "default", {"cores": 40, "fixed_ips": 3}))
    made.transact(lambda tx: quotas.write(tx, "one", None, {"instances": 5, "ram": -1}))
    made.transact(lambda tx: quotas.write(tx, "two", None, {"instances": 7}))
    made.transact(lambda tx: quotas.write(tx, "two", "joe", {"instances": 1}))
    yield made
    made.dispose()


def run(api: Database, keystone: Keystone, **asked: object) -> tuple[int, list[str]]:
    said: list[str] = []
    code = migrate(api, keystone, DEFAULTS, LimitsMigration(**asked), said.append)  # type: ignore[arg-type]
    return code, said


def test_migration_when_keystone_has_nothing_then_it_has_all_by_its_names_and_again_is_nothing(api: Database) -> None:
    keystone = Keystone()
    for _twice in range(2):
        code, said = run(api, keystone)
        assert code == 0 and said == ["1 users have limits of their own in a project: Keystone has no such limits: "
                                      "they will not count."]
        assert keystone.registered == {"servers": 10, "class:VCPU": 40, "class:MEMORY_MB": 51200,
                                       "server_key_pairs": 100}
        assert keystone.own == {"one": {"servers": 5, "class:MEMORY_MB": -1}, "two": {"servers": 7}}


def test_migration_when_keystone_has_some_then_they_stay_and_are_told(api: Database) -> None:
    keystone, told = Keystone(servers=99), []
    keystone.own = {"two": {"servers": 8}}
    assert run(api, keystone, tell=told.append)[0] == 0
    assert keystone.registered["servers"] == 99 and keystone.own["two"] == {"servers": 8}
    assert "all projects: servers stays 99, as Keystone has it; here it is 10" in told
    assert "project one: servers = 5" in told


def test_migration_when_it_is_dry_then_nothing_is_written(api: Database) -> None:
    keystone, told = Keystone(), []
    assert run(api, keystone, dry=True, tell=told.append)[0] == 0
    assert not keystone.registered and not keystone.own and len(told) == 7


def test_migration_when_one_project_is_asked_for_then_no_other_is_written(api: Database) -> None:
    keystone = Keystone()
    assert run(api, keystone, project_id="two")[0] == 0
    assert set(keystone.own) == {"two"} and keystone.registered["servers"] == 10


def test_migration_when_keystone_refuses_a_project_then_the_others_are_written_and_1(api: Database) -> None:
    keystone = Keystone()
    keystone.gone = "one"
    code, said = run(api, keystone)
    assert code == 1 and keystone.own == {"two": {"servers": 7}}
    assert any("project one: " in line for line in said) and any("limits of 1 projects" in line for line in said)
    keystone.gone = ""
    assert run(api, keystone)[0] == 0 and set(keystone.own) == {"one", "two"}


def test_migration_when_keystone_is_away_then_that_is_raised(api: Database) -> None:
    keystone = Keystone()
    keystone.away = True
    with pytest.raises(errors.Unavailable):
        run(api, keystone)
