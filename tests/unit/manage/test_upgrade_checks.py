"""nova-status upgrade check: what stands in an upgrade's way."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from oslo_config import cfg

from nova import conf, configuration, errors, version
from nova.clients import session
from nova.clients.session import Credentials
from nova.cmd import tool_log
from nova.db.host import hosts
from nova.db.host.services import RunningRelease
from nova.db.models.cell import nodes, services
from nova.db.schema import migrate
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from nova.manage import status, upgrade_checks
from nova.manage.doctor.finding import BAD, OK, Finding
from nova.manage.upgrade_checks import Result, UpgradeFinding
from nova.model.image.images import Image
from tests.fakes.databases import QuickDatabase, as_if_synced
from tests.fakes.rows import add_servers, new_uuid, server_row
from tests.fakes.small_cloud import SmallCloud
from tests.unit.manage.test_doctor import options

WELL = UpgradeFinding(Result.SUCCESS)
#: Section of a database -> its schema.
SECTIONS = {"api_database": "api", "database": "cell"}


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program reads no file, and leaves this process's logging alone."""
    monkeypatch.setattr(configuration, "load", lambda *_: options())
    monkeypatch.setattr(tool_log, "set_up", lambda *_: None)


def test_table_when_upstreams_tools_read_it_then_it_has_their_form() -> None:
    found = [("Cells v2", WELL), ("Older than N-1 computes", UpgradeFinding(Result.FAILURE, "one two " * 20))]
    lines = upgrade_checks.table(found).split("\n")
    assert len({len(line) for line in lines}) == 1 and lines[0].startswith("+--") and lines[0].endswith("--+")
    assert lines[1].strip("| ") == "Upgrade Check Results"
    assert [line.strip("| ") for line in lines[3:6]] == ["Check: Cells v2", "Result: Success", "Details: None"]
    assert "Result: Failure" in lines[8] and lines[9].startswith("| Details: one two") and lines[10].startswith("|   ")


def test_json_then_each_result_is_a_number() -> None:
    said = json.loads(upgrade_checks.as_json([("Cells v2", WELL), ("Options", UpgradeFinding(Result.WARNING, "x"))]))
    assert said == {"name": "Upgrade Check Results", "checks": [
        {"check": "Cells v2", "result": 0, "details": None}, {"check": "Options", "result": 1, "details": "x"}]}


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(("results", "code"), [((0, 0), 0), ((0, 1), 1), ((1, 2, 0), 2)])
def test_end_then_it_is_the_worst_result(monkeypatch, capsys, results: tuple[int, ...], code: int) -> None:
    found = [(f"check {number}", UpgradeFinding(Result(one))) for number, one in enumerate(results)]
    monkeypatch.setattr(upgrade_checks, "check", lambda options: found)
    assert status.main(["upgrade", "check"]) == code
    assert "Check: check 1" in capsys.readouterr().out


@pytest.mark.usefixtures("configured")
def test_end_when_the_database_is_away_then_255_and_why(monkeypatch, capsys) -> None:
    def away(options: object) -> None:
        raise errors.Unavailable("The database does not answer.")
    monkeypatch.setattr(upgrade_checks, "check", away)
    assert status.main(["upgrade", "check", "--json"]) == 255
    assert capsys.readouterr() == ("", "nova-status: The database does not answer.\n")


@pytest.mark.parametrize(("theirs", "result"), [
    ("1.4.0", 0), ("1.3.0", 0), ("1.3.2", 0), ("1.2.9", 2), ("0.9.0", 2), ("1.5.0", 0), ("", 0), ("odd", 2)])
def test_computes_when_a_daemon_is_older_then_only_those_that_work_beside_are_fine(monkeypatch, theirs, result) -> None:
    monkeypatch.setattr(version, "OLDEST_BESIDE", "1.3.0")
    found = upgrade_checks.too_old([RunningRelease("cn1", "nova-compute", theirs)])
    assert found.result == result and ("nova-compute on cn1" in (found.details or "")) == (result == 2)


NEUTRON, SENT = "[neutron]\nauth_type = password\n", "[service_user]\nsend_service_user_token = true\n"


@pytest.mark.parametrize(("text", "token"), [("", ""), (NEUTRON, "send_service_user_token is off"),
                                             (NEUTRON + SENT, "")])
def test_check_when_the_tables_are_new_then_each_check_looks_and_all_is_well(tmp_path, text: str, token: str) -> None:
    urls = {section: f"sqlite:///{tmp_path}/{schema}.db" for section, schema in SECTIONS.items()}
    for section, schema in SECTIONS.items():
        migrate.sync(schema, Database(urls[section]))
    path = tmp_path / "nova.conf"
    path.write_text(text + "".join(f"[{section}]\nconnection = {url}\n" for section, url in urls.items()))
    configured = conf.register(cfg.ConfigOpts())
    configured([], default_config_files=[str(path)])
    found = dict(upgrade_checks.check(configured))
    assert list(found) == [name for name, _check in upgrade_checks.CHECKS]
    assert {one.result for one in found.values()} == {Result.SUCCESS}
    assert token in (found["Service User Token Configuration"].details or "")
    assert "No compute host" in (found["Cells v2"].details or "")


# -- machine types

@pytest.mark.parametrize(("hypervisor", "properties", "told"), [
    ("QEMU", {}, True), ("QEMU", {"hw_machine_type": "q35"}, False), ("fake", {}, False)])
def test_machine_types_when_a_server_of_libvirt_has_none_then_it_is_counted(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch, hypervisor: str, properties: dict[str, str],
        told: bool) -> None:
    cell = cloud.deps.cell
    monkeypatch.setattr(upgrade_checks, "serving", lambda _options, _schema: cell)
    with cell.reading() as tx:
        row = hosts.node_rows(tx)[0]
    facts = msgspec.structs.replace(row.facts, hypervisor_type=hypervisor)
    cell.transact(lambda tx: tx.execute(sa.update(nodes).where(nodes.c.id == row.id).values(facts=facts)))
    add_servers(cell, server_row(host=row.host, image=Image(id="i", properties=properties)),
                server_row(host=None, image=Image(id="i")), server_row(host=row.host, image=None, deleted=7))
    found = upgrade_checks.machine_types(None)
    assert found.result == Result.SUCCESS
    assert (found.details or "").startswith("1 servers have no hw_machine_type") is told


# -- hosts that are not enrolled

@pytest.mark.parametrize(("key", "result"), [("", Result.SUCCESS), ("a-key", Result.WARNING)])
def test_hosts_when_they_are_not_enrolled_then_it_is_no_failure(tmp_path: Path, key: str, result: Result) -> None:
    database = as_if_synced("cell", QuickDatabase(tmp_path / "cell"))
    with database.engine.begin() as tx:
        tx.execute(sa.insert(services).values(host="compute1", binary="nova-compute", uuid=new_uuid(),
                                              created_at=utc_now()))
    database.dispose()
    configured = options(database__connection=f"sqlite:///{tmp_path}/cell", conductor__host_secret_key=key)
    found = upgrade_checks.enrolled(configured)
    assert found.result == result and "compute1" in (found.details or "")


# -- Cinder

@pytest.mark.parametrize(("auth", "answer", "result", "words"), [
    (None, None, Result.SUCCESS, "No credentials for Cinder"), ("some", Finding(OK, "answers"), 0, None),
    ("some", Finding(BAD, "Keystone refuses the credentials in [cinder]", "correct [cinder]username"), Result.WARNING,
     "Keystone refuses the credentials in [cinder]. Correct [cinder]username.")])
def test_cinder_when_there_are_credentials_then_it_is_asked(
        monkeypatch: pytest.MonkeyPatch, auth: str | None, answer: Finding | None, result: int, words: str | None
        ) -> None:
    monkeypatch.setattr(session, "load", lambda _options, _section: Credentials(None, auth))
    monkeypatch.setattr(upgrade_checks.doctor_services, "cinder", lambda _options: answer)
    found = upgrade_checks.cinder(None)
    assert found.result == result and (found.details or "").startswith(words or "")


def test_options_when_some_are_not_read_then_they_are_told_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding(BAD, "[DEFAULT]bindir is not read", "take it out")
    monkeypatch.setattr(upgrade_checks.config_options, "unread", lambda _options: found)
    assert upgrade_checks.unread(None) == UpgradeFinding(Result.SUCCESS, "[DEFAULT]bindir is not read. Take it out.")
