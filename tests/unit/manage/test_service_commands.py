"""``nova-manage service``, and ``--json`` of the tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova import errors
from nova.manage import main
from nova.model.base import utcnow
from nova.model.host.services import ContractVersion, Registration, ServiceQuery
from nova.rpc import transport
from tests.fakes.small_cloud import SmallCloud

PROXY = Registration(host="ctl", binary="nova-novncproxy", topic="novncproxy", release="7.1")
SCHEDULER = Registration(host="ctl", binary="nova-scheduler", topic="scheduler", release="7.0",
                         contracts=(ContractVersion(name="SchedulerRPC", version="1.0"),))


@pytest.fixture
def manage(cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """``monkeypatch``: the bus is made of options, and there is no broker."""
    class Bus:
        def __init__(self, *args: object) -> None: ...

        def client(self, contract: type) -> object:
            return cloud.control

    class Options:
        host = "ctl"
    monkeypatch.setattr(transport, "Bus", Bus)

    def run(*words: str) -> tuple[int, str]:
        given = main.parser().parse_args(words)
        return given.command.run(Options(), given), capsys.readouterr().out
    return run


def fall_silent(cloud: SmallCloud) -> None:
    cloud.cell.transact(lambda tx: tx.exec_driver_sql("UPDATE services SET last_seen_at = '2020-01-01 00:00:00'"))


def test_list_then_each_daemon_is_a_row_with_its_release_and_contracts(cloud: SmallCloud, manage: Any) -> None:
    cloud.control.register(PROXY)
    cloud.control.register(SCHEDULER)
    code, text = manage("service", "list")
    rows = {tuple(line.split()[:2]): line for line in text.splitlines()}
    assert code == 0 and ":-)" in rows["nova-novncproxy", "ctl"] and "7.1" in rows["nova-novncproxy", "ctl"]
    assert "SchedulerRPC 1.0" in rows["nova-scheduler", "ctl"] and "7.0" in rows["nova-scheduler", "ctl"]
    assert ("nova-compute", "a") in rows
    assert len(manage("service", "list", "--service", "nova-novncproxy")[1].splitlines()) == 2
    fall_silent(cloud)
    assert "XXX" in manage("service", "list", "--host", "ctl")[1]


def test_list_as_json_then_it_has_every_field_in_types(cloud: SmallCloud, manage: Any) -> None:
    cloud.control.register(SCHEDULER)
    code, text = manage("service", "list", "--json", "--host", "ctl")
    found, = json.loads(text)
    assert code == 0 and (found["binary"], found["up"], found["disabled"]) == ("nova-scheduler", True, False)
    assert found["version"] == "7.0" and found["contracts"] == [{"name": "SchedulerRPC", "version": "1.0"}]
    assert found["last_seen_at"].startswith(str(utcnow().date())) and found["clock_off_s"] is None


@pytest.mark.parametrize("words", [("cleanup", "list", "--json"), ("service", "list", "--json", "--host", "nobody")])
def test_list_as_json_when_there_is_nothing_then_it_is_an_empty_list(manage: Any, words: tuple[str, ...]) -> None:
    assert manage(*words) == (0, "[]\n")


def test_host_list_as_json_then_each_host_has_its_enrolment_and_no_secret(cloud: SmallCloud, manage: Any) -> None:
    code, text = manage("host", "list", "--json")
    found = {one["host"]: one for one in json.loads(text)}
    assert code == 0 and "nova-compute" in found["a"]["enrolled"]["runs"] and found["a"]["zone"] == "nova"
    assert "secret" not in text and "token" not in text


def test_request_show_as_json_then_it_is_the_operations_or_none_and_1(cloud: SmallCloud, manage: Any) -> None:
    uuid, = cloud.active(1)
    code, text = manage("request", "show", "--json", uuid)
    assert code == 0 and [one["action"] for one in json.loads(text)] == ["create"]
    assert manage("request", "show", "--json", "req-none") == (1, "[]\n")


def test_delete_when_it_is_up_then_refused_and_when_it_is_gone_then_forgotten(cloud: SmallCloud, manage: Any) -> None:
    cloud.control.register(PROXY)
    with pytest.raises(errors.Conflict, match="is up"):
        manage("service", "delete", "ctl", "nova-novncproxy")
    fall_silent(cloud)
    assert manage("service", "delete", "ctl", "nova-novncproxy")[0] == 0
    assert not cloud.control.list_services(ServiceQuery(host="ctl", binary="nova-novncproxy", hidden=True))
    assert manage("service", "delete", "ctl", "nova-novncproxy")[0] == 3  # again: there is nothing to do
    assert cloud.control.register(PROXY).service_id  # it registers anew


def test_delete_when_servers_are_on_a_compute_host_then_refused(cloud: SmallCloud, manage: Any) -> None:
    uuid, = cloud.active(1)
    host = cloud.server(uuid).host
    fall_silent(cloud)
    with pytest.raises(errors.Conflict):
        manage("service", "delete", host, "nova-compute")
    assert cloud.control.list_services(ServiceQuery(host=host, binary="nova-compute"))
