"""``nova-manage orphan``, and doctor's line about strangers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova import errors
from nova.manage import doctor, orphan_commands
from nova.manage.main import parser
from nova.model.guest.orphans import FoundOrphan, OrphanKind, OrphanReport, StoredGuest
from nova.model.server.states import PowerState
from nova.rpc import transport
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud
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
        given = parser().parse_args(["orphan", *words])
        return given.command.run(options(), given), capsys.readouterr().out
    return run


def report(cloud: SmallCloud, host: str, *uuids: str) -> None:
    cloud.hosts.report_strangers(host, OrphanReport(host=host, found=tuple(
        FoundOrphan(kind=OrphanKind.GUEST, server_uuid=uuid) for uuid in uuids)))


def test_list_when_there_are_some_then_each_is_a_row_with_why(cloud: SmallCloud, manage: Any) -> None:
    assert manage("list")[1].startswith("No orphans")
    one, other = new_uuid(), new_uuid()
    report(cloud, "a", one)
    report(cloud, "b", other)
    text = manage("list")[1]
    assert one in text and other in text and "its server has no record" in text and "kept" in text
    assert one not in manage("list", "--host", "b")[1]
    [row] = json.loads(manage("list", "--host", "a", "--json")[1])
    assert (row["kind"], row["server_uuid"], row["ordered_at"]) == ("guest", one, None)
    report(cloud, "a")
    assert one not in manage("list")[1] and "gone by itself" in manage("list", "--all")[1]


def test_remove_without_confirmation_then_it_is_only_shown(cloud: SmallCloud, manage: Any) -> None:
    report(cloud, "a", new_uuid())
    [one] = cloud.control.list_strangers(False)
    code, text = manage("remove", str(one.id))
    assert code == 1 and one.server_uuid in text and "--yes" in text
    assert cloud.control.list_strangers(False)[0].ordered_at is None
    assert manage("remove", "77")[0] == 1
    code, text = manage("remove", str(one.id), "--yes")
    assert code == 0 and "a removes it" in text and "removal ordered" in manage("list")[1]
    with pytest.raises(errors.NotFound):
        manage("remove", "77", "--yes")


def test_adopt_without_confirmation_then_it_is_only_shown(cloud: SmallCloud, manage: Any) -> None:
    [uuid] = cloud.active(1)
    was = cloud.server(uuid).host
    there, order = {"a": "b", "b": "a"}[was], cloud.computes[was].guests[uuid]
    report(cloud, there, uuid)
    cloud.hosts.report_strangers(there, OrphanReport(host=there, found=(FoundOrphan(
        kind=OrphanKind.GUEST, server_uuid=uuid, power_state=PowerState.RUNNING),)))
    cloud.computes[there].given(kept_guest=StoredGuest(order=order, power_state=PowerState.RUNNING))
    cloud.computes[was].given(device_places=errors.guest.NotFound(uuid=uuid, host=was))
    [one] = cloud.control.list_strangers(False)
    code, text = manage("adopt", str(one.id))
    assert code == 1 and f"has it on {was}: that" in text and there in text and order.name in text
    assert cloud.server(uuid).host == was
    assert manage("adopt", str(one.id), "--yes")[0] == 0 and cloud.server(uuid).host == there


def test_list_when_hosts_are_to_look_now_then_each_is_asked_twice(cloud: SmallCloud, manage: Any, monkeypatch: Any
                                                                 ) -> None:
    monkeypatch.setattr(orphan_commands, "LOOK_S", 0.0)
    manage("list", "--now", "--host", "a")
    manage("list", "--now")
    asked = {host: [call.name for call in compute.done].count("look_for_strangers")
             for host, compute in cloud.computes.items()}
    assert asked == {"a": 4, "b": 2}


def test_doctor_when_there_are_strangers_then_it_counts_them_by_host(cloud: SmallCloud, manage: Any) -> None:
    assert doctor.cloud.strangers(options()).state == doctor.OK
    report(cloud, "a", new_uuid(), new_uuid())
    finding = doctor.cloud.strangers(options())
    assert finding.state == doctor.WARN and "2 guest on a" in finding.what
    assert "nova-manage orphan list" in finding.cure
