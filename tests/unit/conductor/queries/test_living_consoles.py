"""Tokens of consoles over whole compute hosts: which actions end them, and which leave them good."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from nova import context, errors
from nova.model.guest.consoles import ConsoleRequest, ConsoleType, TokenCheck, token_hash
from nova.model.server.servers import LockChange
from nova.model.server.states import ENDS_CONSOLES, PowerState
from tests.fakes import living_cloud
from tests.fakes.living_cloud import LivingCloud
from tests.fakes.ready_servers import ordered, prepared
from tests.fakes.small_cloud import DEMO, until
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import IMAGES, walking_cloud

pytestmark = pytest.mark.one_in(5)  # whole clouds
SERIAL = ConsoleType.SERIAL
#: Actions that begin with a running guest, and end its console.
ENDED = ("delete", "stop", "suspend", "rescue", "unrescue", "rebuild", "shelve", "resize", "migrate", "revertResize",
         "live-migration")
ALIVE = ("soft_reboot", "pause", "changePassword", "trigger_crash_dump", "createImage", "createBackup",
         "confirmResize")


@pytest.fixture
def walk(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    living_cloud.impatient(monkeypatch)
    with walking_cloud(tmp_path, templates, ("host1", "host2")) as cloud:
        cloud.deps.settings = dataclasses.replace(cloud.deps.settings, shelved_offload_time=-1)
        yield Walk(cloud, 1, ("2",), IMAGES)


def opened(cloud: LivingCloud, uuid: str, type: ConsoleType = SERIAL) -> str:
    """A token, as the address in its user's hands has it."""
    with context.entered(DEMO):
        url = cloud.consoles.open_console(ConsoleRequest(server_uuid=uuid, type=type)).url
    query = parse_qs(urlsplit(url).query)
    return query["token"][0] if "token" in query else unquote(query["path"][0]).removeprefix("?token=")


def check(cloud: LivingCloud, token: str, redeem: bool = True) -> Any:
    return cloud.consoles.check_token(TokenCheck(token_hash=token_hash(token), types=(SERIAL,), redeem=redeem))


def refused(cloud: LivingCloud, token: str) -> str:
    with pytest.raises(errors.NovaError) as caught:
        check(cloud, token)
    return caught.value.code


def done(walk: Walk, uuid: str, action: str) -> None:
    ordered(walk, uuid, action)
    until(lambda: not walk.cloud.deps.runner.running, "the operation ends")
    walk.cloud.settle(uuid)
    assert walk.cloud.server(uuid).vm_state != "error", walk.cloud.server(uuid).fault


def test_actions_of_this_test_are_those_that_end_consoles() -> None:
    elsewhere = {"soft_delete", "stop_deleted", "shelveOffload", "unshelve", "evacuate", "create_image_stopped"}
    assert set(ENDED) | elsewhere == set(ENDS_CONSOLES) and ENDS_CONSOLES.isdisjoint(ALIVE)


@pytest.mark.parametrize("action", ENDED)
def test_token_after_what_ends_consoles_then_it_is_dead(walk: Walk, action: str) -> None:
    uuid = prepared(walk, action)
    token = opened(walk.cloud, uuid)
    assert check(walk.cloud, token).server_uuid == uuid
    done(walk, uuid, action)
    assert refused(walk.cloud, token) == "console.ended"
    with pytest.raises(errors.NotFound):
        walk.cloud.consoles.show_token(token_hash(token))


@pytest.mark.parametrize("action", ALIVE)
def test_token_after_what_leaves_the_guest_then_it_is_good(walk: Walk, action: str) -> None:
    uuid = prepared(walk, action)
    token = opened(walk.cloud, uuid)
    before = check(walk.cloud, token)
    done(walk, uuid, action)
    assert check(walk.cloud, token) == before


def test_token_of_a_server_that_is_locked_then_it_is_good(walk: Walk) -> None:
    uuid = prepared(walk, "stop")
    token = opened(walk.cloud, uuid)
    with context.entered(DEMO):
        walk.cloud.control.lock_server(LockChange(uuid=uuid, by="owner"))
    assert check(walk.cloud, token).server_uuid == uuid and check(walk.cloud, opened(walk.cloud, uuid))


@pytest.mark.parametrize("there, back", [("stop", "start"), ("resize", "revertResize"), ("rescue", "unrescue"),
                                         ("suspend", "resume"), ("shelve", "unshelve")])
def test_token_when_its_server_is_back_where_it_was_then_it_is_dead_and_a_new_one_is_good(walk: Walk, there: str,
                                                                                          back: str) -> None:
    uuid = prepared(walk, there)
    host, token = walk.cloud.server(uuid).host, opened(walk.cloud, uuid)
    done(walk, uuid, there)
    done(walk, uuid, back)
    assert walk.cloud.server(uuid).host == host
    assert refused(walk.cloud, token) == "console.ended"
    assert check(walk.cloud, opened(walk.cloud, uuid)).server_uuid == uuid


def test_token_when_its_server_is_evacuated_then_it_is_dead_also_once_the_old_host_is_back(walk: Walk) -> None:
    uuid = prepared(walk, "evacuate")
    cloud, host = walk.cloud, walk.cloud.server(uuid).host
    token = opened(cloud, uuid)
    cloud.computes[host].kill()
    assert refused(cloud, token) == "console.cannot_tell"
    done(walk, uuid, "evacuate")
    assert cloud.server(uuid).host != host and refused(cloud, token) == "console.ended"
    new = opened(cloud, uuid)
    walk._revive()
    assert refused(cloud, token) == "console.ended" and check(cloud, new).server_uuid == uuid


def test_console_asked_for_while_a_move_begins_then_none_is_given_out(walk: Walk) -> None:
    uuid = prepared(walk, "resize")
    cloud, host = walk.cloud, walk.cloud.server(uuid).host
    cloud.computes[host].on_call = once("find_console", "after", lambda: ordered(walk, uuid, "resize"))
    with pytest.raises(errors.WrongState):
        opened(cloud, uuid)
    cloud.settle(uuid)
    assert check(cloud, opened(cloud, uuid)).server_uuid == uuid


def once(method: str, when: str, act: Callable[[], Any]) -> Callable[[str, str], None]:
    left = [act]

    def on_call(called: str, at: str) -> None:
        if (called, at) == (method, when) and left:
            left.pop()()
    return on_call


def test_token_whose_port_is_another_guest_s_by_now_then_it_is_dead(walk: Walk) -> None:
    """A guest went down by itself, so that no operation ended its consoles; another one boots on its port."""
    cloud = walk.cloud
    uuid, other = cloud.boot(2, image_id=IMAGES[0], host="host1")
    cloud.settle(uuid, other)
    token, driver = opened(cloud, uuid), cloud.computes["host1"].driver
    assert check(cloud, token).server_uuid == uuid
    port = check(cloud, token).address.port
    driver.hypervisor.change_power(uuid, PowerState.SHUTDOWN)
    until(lambda: cloud.server(uuid).vm_state == "stopped", "the conductor knows")
    assert refused(cloud, token) == "console.off"
    assert check(cloud, opened(cloud, other)).address.port == port  # taken by the next one that is looked at
    with pytest.raises(errors.NotFound):  # by the records all is well: but an outer proxy goes where this sends it
        cloud.consoles.show_token(token_hash(token))
    done(walk, uuid, "start")
    assert refused(cloud, token) == "console.ended"


def test_host_that_is_silent_then_503_words_and_the_token_lives(walk: Walk) -> None:
    uuid = prepared(walk, "stop")
    cloud = walk.cloud
    token, compute = opened(cloud, uuid), cloud.computes[cloud.server(uuid).host]
    compute.silent = True
    assert refused(cloud, token) == "console.cannot_tell"
    with pytest.raises(errors.Unavailable, match="does not answer"):
        opened(cloud, uuid)
    compute.silent = False
    assert check(cloud, token).server_uuid == uuid


def test_tokens_that_serve_once_then_a_second_connection_is_refused(walk: Walk) -> None:
    uuid = prepared(walk, "stop")
    walk.cloud.tokens.single_use_tokens = True
    token = opened(walk.cloud, uuid)
    assert check(walk.cloud, token, redeem=False) and check(walk.cloud, token)
    assert refused(walk.cloud, token) == "console.used"


@pytest.mark.parametrize("type", [ConsoleType.SPICE_HTML5, ConsoleType.WEBMKS, ConsoleType.RDP_HTML5,
                                  ConsoleType.UNKNOWN])
def test_console_of_a_type_that_the_host_has_not_then_invalid(walk: Walk, type: ConsoleType) -> None:
    uuid = prepared(walk, "stop")
    with pytest.raises(errors.Invalid, match="Unavailable console type"):
        opened(walk.cloud, uuid, type)


def test_console_opened_and_used_then_no_log_has_its_token(walk: Walk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    uuid = prepared(walk, "stop")
    tokens = [opened(walk.cloud, uuid, type) for type in (SERIAL, ConsoleType.NOVNC)]
    check(walk.cloud, tokens[0])
    assert refused(walk.cloud, tokens[1]) == "console.other_kind"
    done(walk, uuid, "delete")
    assert refused(walk.cloud, tokens[0]) == "console.ended"
    said = caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    for token in tokens:
        assert len(token) == 36 and token not in said and token_hash(token) not in said
        assert token_hash(token)[:8] in said
