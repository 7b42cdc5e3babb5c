"""Sessions with the three clients: addresses of consoles, and what is told of those that cannot be had."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.functional.clients import Failed, User, Worker
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(6, 10)

TOKEN = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NOVNC = rf"http://127.0.0.1:6080/vnc_auto.html\?path=%3Ftoken%3D{TOKEN}"
#: type -> its address
URLS = {"novnc": NOVNC, "xvpvnc": rf"http://127.0.0.1:6081/console\?token={TOKEN}",
        "spice-html5": rf"http://127.0.0.1:6082/spice_auto.html\?token={TOKEN}",
        "spice-direct": rf"http://127.0.0.1:13002/nova\?token={TOKEN}", "serial": rf"ws://127.0.0.1:6083/\?token={TOKEN}",
        "webmks": rf"http://127.0.0.1:6090/\?token={TOKEN}"}
#: option of the `openstack` command -> (type, version it needs)
OPTIONS = {"--novnc": ("novnc", "2.6"), "--spice": ("spice-html5", "2.6"), "--serial": ("serial", "2.6"),
           "--mks": ("webmks", "2.8"), "--spice-direct": ("spice-direct", "2.99"), "--xvpvnc": ("xvpvnc", "2.104")}
#: command of `nova` -> (type, version it is sent at)
COMMANDS = {"get-vnc-console vm novnc": ("novnc", "2.1"), "get-vnc-console vm xvpvnc": ("xvpvnc", "2.87"),
            "get-spice-console vm spice-html5": ("spice-html5", "2.5"), "get-serial-console vm": ("serial", "2.1"),
            "get-mks-console vm": ("webmks", "2.87")}


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    return make_cloud(Plan(computes=1, consoles=True, upstream=False, options={"consoleauth": {"workers": 2}})).start()


@pytest.fixture(scope="module")
def vm(worker: Worker) -> Iterator[str]:
    """The uuid of demo's running server ``vm``."""
    user = User(worker, "demo")
    yield user.openstack("server create --flavor m1.tiny --image tiny --nic auto --wait", "vm")["id"]
    user.do("server delete --wait vm")


def token_of(url: str) -> str:
    return url[-36:]


@pytest.mark.parametrize("option", OPTIONS)
def test_console_url_show_when_a_type_is_asked_for_then_its_address(demo, vm, option: str) -> None:
    type, version = OPTIONS[option]
    shown = demo.at(version).openstack(f"console url show {option} vm")
    assert shown["type"] == type and re.fullmatch(URLS[type], shown["url"]), shown


def test_console_url_show_when_nothing_is_said_then_novnc(demo, vm) -> None:
    assert re.fullmatch(NOVNC, demo.openstack("console url show vm")["url"])


@pytest.mark.parametrize("line", COMMANDS)
def test_nova_get_console_when_a_type_is_asked_for_then_its_address(demo, vm, line: str) -> None:
    type, version = COMMANDS[line]
    [row] = demo.at(version).table(line)
    assert row["Type"] == type and re.fullmatch(URLS[type], row["Url"]), row


def test_rdp_console_when_asked_for_then_every_client_is_told_that_there_is_none(demo, vm) -> None:
    for ask in (lambda: demo.openstack("console url show --rdp vm"),
                lambda: demo.at("2.5").nova("get-rdp-console vm rdp-html5"),
                lambda: demo.at("2.87").nova("get-rdp-console vm rdp-html5")):
        with pytest.raises(Failed, match="Unavailable console type rdp-html5"):
            ask()


def test_sdk_when_a_console_is_opened_then_an_administrator_sees_where_it_leads(demo, admin, vm) -> None:
    made: dict[str, Any] = demo.sdk("create_server_remote_console", vm, protocol="spice", type="spice-direct")
    assert (made["type"], made["protocol"]) == ("spice-direct", "spice")
    assert re.fullmatch(URLS["spice-direct"], made["url"])
    assert demo.sdk("create_console", vm, "novnc")["url"].startswith("http://127.0.0.1:6080/")
    found = admin.sdk("validate_console_auth_token", token_of(made["url"]))
    assert found["instance_uuid"] == vm and found["host"] == "127.0.0.1" and found["port"] and found["tls_port"]
    with pytest.raises(Failed) as refused:
        demo.sdk("validate_console_auth_token", token_of(made["url"]))
    assert refused.value.status == 403


def test_console_connection_show_when_the_server_is_stopped_then_its_token_is_nothing_any_more(demo, admin, vm
                                                                                               ) -> None:
    token = token_of(demo.openstack("console url show --serial vm")["url"])
    shown = admin.openstack("console connection show", token)
    assert shown["instance_uuid"] == vm and shown["port"]
    demo.do("server stop vm")
    wait_until("it is off", lambda: demo.openstack("server show vm")["status"] == "SHUTOFF", 20, 0.2)
    with pytest.raises(Failed, match="404|no longer valid"):
        admin.openstack("console connection show", token)
    with pytest.raises(Failed, match="409|not running|SHUTDOWN"):
        demo.openstack("console url show vm")
    demo.do("server start vm")
    wait_until("it is on", lambda: demo.openstack("server show vm")["status"] == "ACTIVE", 20, 0.2)


def test_service_list_when_nova_consoleauth_runs_then_it_is_shown_up(admin) -> None:
    rows = admin.openstack("compute service list --service nova-consoleauth")
    assert [(row["Binary"], row["Host"], row["Zone"], row["State"]) for row in rows] == [
        ("nova-consoleauth", "ctl", "internal", "up")]


def test_console_when_nova_consoleauth_does_not_run_then_503_says_which_and_another_one_serves(
        cloud: Cloud, demo, vm) -> None:
    """Any of several serves: what one gave out, another one checks, for neither keeps anything."""
    cloud.daemons["consoleauth"].kill()
    with pytest.raises(Failed, match="503|consoleauth"):
        demo.openstack("console url show vm")
    cloud.daemons["consoleauth"].start().ready()
    assert demo.openstack("console url show --serial vm")["type"] == "serial"
