"""``nova-manage volume_attachment``, and the doctor's line about attachments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db import volumes as rows
from nova.db.models import cell as tables
from nova.manage import doctor
from nova.manage.main import parser
from nova.rpc import transport
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud
from tests.unit.conductor.actions.test_volumes import check_settled, check_whole, overdue, with_volume
from tests.unit.manage.test_doctor import options


@pytest.fixture
def manage(cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """``monkeypatch``: the bus is made of options, and there is no broker."""
    class Bus:
        def __init__(self, *args: object) -> None: ...

        def client(self, contract: type) -> object:
            return cloud.control
    monkeypatch.setattr(transport, "Bus", Bus)

    def run(*words: str) -> tuple[int, str]:
        given = parser().parse_args(["volume_attachment", *words])
        return given.command.run(options(), given), capsys.readouterr().out
    return run


def off(cloud: SmallCloud) -> tuple[str, str]:
    """A server that is stopped, with a volume."""
    uuid, volume = with_volume(cloud)
    cloud.order(uuid, "stop")
    assert cloud.ended(uuid).vm_state == "stopped"
    overdue(cloud)
    return uuid, volume


def attachment(cloud: SmallCloud, uuid: str) -> str:
    found: str = cloud.server(uuid).volumes[0].attachment_id
    return found


def test_show_when_the_server_has_the_volume_then_its_record_else_a_status(cloud: SmallCloud, manage: Any) -> None:
    uuid, volume = with_volume(cloud)
    status, text = manage("show", uuid, volume)
    assert status == 0 and attachment(cloud, uuid) in text and "/dev/vdb" in text
    assert json.loads(manage("show", uuid, volume, "--json")[1])["volume_id"] == volume
    assert manage("show", uuid, new_uuid())[0] == 3
    assert manage("show", new_uuid(), volume)[0] == 2


def test_get_connector_then_it_is_the_hosts_own(cloud: SmallCloud, manage: Any) -> None:
    assert json.loads(manage("get_connector", "a")[1]) == {"host": "a", "ip": "192.0.2.7"}
    with pytest.raises(errors.Unavailable):
        manage("get_connector", "nobody")


@pytest.mark.parametrize("named", [True, False])
def test_refresh_when_the_server_is_off_then_it_has_a_new_attachment_of_its_host(cloud: SmallCloud, manage: Any,
                                                                               tmp_path: Path, named: bool) -> None:
    uuid, volume = off(cloud)
    old = attachment(cloud, uuid)
    path = tmp_path / "connector.json"
    path.write_text(json.dumps({"host": "stolen", "ip": "192.0.2.9", "initiator": "iqn.new"}))
    status, text = manage("refresh", uuid, volume, *([str(path)] if named else []))
    new = attachment(cloud, uuid)
    assert status == 0 and new in text and new != old and list(cloud.volume_service.attachments) == [new]
    assert cloud.volume_service.hosts(volume) == [cloud.server(uuid).host]
    cloud.order(uuid, "start")
    cloud.ended(uuid)
    check_whole(cloud, uuid, volume)


def test_refresh_when_the_server_runs_or_has_no_such_volume_then_a_status_and_nothing_changes(cloud: SmallCloud,
                                                                                            manage: Any) -> None:
    uuid, volume = with_volume(cloud)
    old = attachment(cloud, uuid)
    status, text = manage("refresh", uuid, volume)
    assert status == 4 and "is active" in text and list(cloud.volume_service.attachments) == [old]
    assert manage("refresh", uuid, new_uuid())[0] == 3 and manage("refresh", new_uuid(), volume)[0] == 2


@pytest.mark.parametrize("text", ["no json", "[]"])
def test_refresh_when_the_connector_cannot_be_read_then_a_status(cloud: SmallCloud, manage: Any, tmp_path: Path,
                                                                  text: str) -> None:
    uuid, volume = off(cloud)
    (tmp_path / "bad").write_text(text)
    for path in (tmp_path / "bad", tmp_path / "missing"):
        assert manage("refresh", uuid, volume, str(path))[0] == 5
    assert list(cloud.volume_service.attachments) == [attachment(cloud, uuid)]


@pytest.mark.parametrize("call", ["attach", "complete"])
def test_refresh_when_the_volume_service_fails_then_the_old_attachment_stays(cloud: SmallCloud, manage: Any, call: str
                                                                           ) -> None:
    uuid, volume = off(cloud)
    old = attachment(cloud, uuid)
    cloud.volume_service.fails[call] = errors.volume.Refused(reason="no")
    with pytest.raises(errors.Invalid):
        manage("refresh", uuid, volume)
    assert attachment(cloud, uuid) == old and list(cloud.volume_service.attachments) == [old]
    check_whole(cloud, uuid, volume)


def test_refresh_when_the_host_does_not_answer_then_nothing_changes(cloud: SmallCloud, manage: Any) -> None:
    uuid, volume = off(cloud)
    cloud.computes[cloud.server(uuid).host].given(volume_connector=errors.Unavailable("down"))
    with pytest.raises(errors.Unavailable):
        manage("refresh", uuid, volume)
    check_whole(cloud, uuid, volume)


def test_refresh_when_the_server_is_started_meanwhile_then_it_keeps_what_it_has(cloud: SmallCloud, manage: Any) -> None:
    uuid, volume = off(cloud)
    old, real = attachment(cloud, uuid), cloud.volume_service.complete

    def starts(attachment_id: str, **kwargs: Any) -> None:
        real(attachment_id, **kwargs)
        cloud.volume_service.complete = real  # type: ignore[method-assign]
        cloud.order(uuid, "start")
        cloud.ended(uuid)
    cloud.volume_service.complete = starts  # type: ignore[method-assign]
    assert manage("refresh", uuid, volume)[0] == 4
    assert attachment(cloud, uuid) == old
    check_whole(cloud, uuid, volume)


def test_refresh_when_the_conductor_dies_half_way_then_the_new_attachment_goes(cloud: SmallCloud, manage: Any) -> None:
    uuid, volume = off(cloud)
    cloud.volume_service.lost["attach"] = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        manage("refresh", uuid, volume)
    assert len(cloud.volume_service.attachments) == 2
    cloud.volume_service.lost.clear()
    overdue(cloud)
    check_whole(cloud, uuid, volume)


def test_doctor_when_records_and_cinder_agree_then_all_is_well_else_each_difference_is_named(cloud: SmallCloud,
                                                                                           manage: Any) -> None:
    finding = doctor.cloud.attachments(options())
    assert (finding.state, "0 servers" in finding.what) == (doctor.OK, True)
    uuid, volume = with_volume(cloud)
    other, lost = with_volume(cloud)
    overdue(cloud)
    assert doctor.cloud.attachments(options()).state == doctor.OK
    cloud.volume_service.reserve(extra := cloud.volume_service.add(), uuid)
    for one in cloud.volume_service.of_server(other):
        cloud.volume_service.delete_attachment(one.id)
    finding = doctor.cloud.attachments(options())
    assert finding.state == doctor.WARN and "differ about 2 attachments" in finding.what
    assert f"an attachment that no record has (server {uuid}, volume {extra})" in finding.what
    assert f"has no attachment (server {other}, volume {lost})" in finding.what and "--hard" in finding.cure
    check_settled(cloud, uuid)
    assert volume in cloud.volume_service.volumes


def test_doctor_when_there_are_many_servers_then_it_asks_for_so_many_alone_and_each_time_for_others(cloud: SmallCloud,
                                                                                                  ) -> None:
    uuids = [with_volume(cloud)[0] for _ in range(4)]
    cloud.volume_service.calls.clear()
    found = cloud.control.compare_attachments(2)
    assert (found.servers, found.whole) == (2, False) and len(cloud.volume_service.calls) == 2
    with cloud.cell.reading() as tx:
        seen = [rows.servers_with_volumes(tx, 2, start / 4) for start in range(4)]
        assert rows.servers_with_volumes(tx, 5, 0.9) == (uuids[3:] + uuids[:3], True)
    assert {uuid for servers, _whole in seen for uuid in servers} == set(uuids)


def test_doctor_when_something_works_on_a_server_then_it_is_not_compared(cloud: SmallCloud) -> None:
    uuid, _volume = with_volume(cloud)
    gone = cloud.volume_service.of_server(uuid)[0].id
    cloud.volume_service.delete_attachment(gone)
    cloud.write("cell", sa.update(tables.operations).where(tables.operations.c.server_uuid == uuid)
                .values(finished_at=None, runner_id=cloud.deps.journal.runner_id))
    assert cloud.control.compare_attachments(9).differences == ()
    cloud.write("cell", sa.update(tables.operations).where(tables.operations.c.server_uuid == uuid)
                .values(finished_at=sa.text("'2020-01-01 00:00:00'")))
    assert len(cloud.control.compare_attachments(9).differences) == 1
