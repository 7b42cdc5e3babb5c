"""Limits of the database, written to Keystone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nova import errors
from nova.clients import keystone as clients
from nova.clients import session
from nova.clients.keystone import ProjectLimits
from nova.clients.session import Credentials
from nova.db import flavors
from nova.db.models import api as models
from nova.db.quota import quotas
from nova.db.sql.engine import Database
from nova.manage import limits_commands, main
from nova.manage.limits_commands import LimitsMigration, migrate
from nova.model.flavor.flavors import NewFlavor
from tests.fakes.rows import add_ledger
from tests.unit.manage.test_doctor import options

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
        assert code == 0 and said == ["1 users have their own limits in a project. Keystone has no such limits: "
                                      "they will not apply."]
        assert keystone.registered == {"servers": 10, "class:VCPU": 40, "class:MEMORY_MB": 51200,
                                       "server_key_pairs": 100}
        assert keystone.own == {"one": {"servers": 5, "class:MEMORY_MB": -1}, "two": {"servers": 7}}


def test_migration_when_keystone_has_some_then_they_stay_and_are_told(api: Database) -> None:
    keystone, told = Keystone(servers=99), []
    keystone.own = {"two": {"servers": 8}}
    assert run(api, keystone, tell=told.append)[0] == 0
    assert keystone.registered["servers"] == 99 and keystone.own["two"] == {"servers": 8}
    assert "all projects: servers stays 99, Keystone's value; nova's value is 10" in told
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


# -- resources without a registered limit

@pytest.fixture
def flavored(api: Database) -> Database:
    """A flavor with a class of its own, a private one with another, and a server whose flavor is gone."""
    for name, spec, public in (("gpu", "resources:CUSTOM_GPU", True), ("fpga", "resources:FPGA", False)):
        api.transact(lambda tx, name=name, public=public: flavors.insert(tx, NewFlavor(
            name=name, flavorid=name, memory_mb=512, vcpus=1, root_gb=1, is_public=public)))
        api.transact(lambda tx, name=name, spec=spec: flavors.set_specs(tx, name, {spec: "1"}))
    add_ledger(api, 2, classes={"VCPU": 1, "CUSTOM_OLD": 2})
    return api


@pytest.mark.parametrize(("registered", "embedded", "missing"), [
    ((), True, ["CUSTOM_GPU", "CUSTOM_OLD", "DISK_GB", "FPGA", "MEMORY_MB", "VCPU"]),
    ((), False, ["CUSTOM_GPU", "DISK_GB", "FPGA", "MEMORY_MB", "VCPU"]),
    (("VCPU", "MEMORY_MB", "DISK_GB"), False, ["CUSTOM_GPU", "FPGA"]),
    (("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GPU", "FPGA"), True, ["CUSTOM_OLD"]),
    (("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GPU", "FPGA"), False, [])])
def test_scan_when_flavors_need_resources_then_those_without_a_registered_limit_are_named(
        flavored: Database, registered: tuple[str, ...], embedded: bool, missing: list[str]) -> None:
    keystone = Keystone(**{f"class:{name}": 1 for name in registered})
    assert limits_commands.unregistered(flavored, keystone, embedded) == [f"class:{name}" for name in missing]


def test_scan_when_there_are_several_pages_of_flavors_then_each_is_read(api: Database) -> None:
    for number in range(limits_commands.PAGE + 1):
        api.transact(lambda tx, number=number: flavors.insert(tx, NewFlavor(
            name=f"f{number}", flavorid=f"{number:04}", memory_mb=1, vcpus=1, root_gb=number // limits_commands.PAGE)))
    assert limits_commands.unregistered(api, Keystone(), False) == ["class:DISK_GB", "class:MEMORY_MB", "class:VCPU"]


def command(flavored: Database, keystone: Keystone | None, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(limits_commands, "synced", lambda _options, _schema: flavored)
    monkeypatch.setattr(clients, "of_groups", lambda _group, _credentials: keystone)
    monkeypatch.setattr(session, "load", lambda _options, _section: Credentials(None, keystone))
    given = main.parser().parse_args(["limits", "migrate_to_unified_limits", *words])
    return given.command.run(options(), given)


@pytest.mark.parametrize(("words", "code", "rows"), [
    ((), 3, ["class:CUSTOM_GPU", "class:CUSTOM_OLD", "class:DISK_GB", "class:FPGA"]),
    (("--no-embedded-flavor-scan",), 3, ["class:CUSTOM_GPU", "class:DISK_GB", "class:FPGA"]),
    (("--dry-run", "--verbose"), 3, ["class:CUSTOM_GPU", "class:CUSTOM_OLD", "class:DISK_GB", "class:FPGA"]),
    (("--quiet",), 3, []), (("--quiet", "--verbose", "--dry-run"), 3, [])])
def test_command_when_limits_are_missing_then_3_and_a_row_each_that_scripts_find(
        flavored: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...],
        code: int, rows: list[str]) -> None:
    assert command(flavored, Keystone(), monkeypatch, *words) == code
    text = capsys.readouterr().out
    assert [line.split()[1] for line in text.splitlines() if "missing" in line] == rows
    assert (text == "") == ("--quiet" in words)


def test_command_when_nothing_is_missing_then_0(flavored: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("CUSTOM_GPU", "CUSTOM_OLD", "DISK_GB", "FPGA")
    assert command(flavored, Keystone(**{f"class:{name}": 1 for name in names}), monkeypatch) == 0


def test_command_when_there_are_no_credentials_then_1_and_said_even_if_quiet(
        flavored: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(flavored, None, monkeypatch, "--quiet") == 1
    assert "[oslo_limit]auth_type" in capsys.readouterr().out
