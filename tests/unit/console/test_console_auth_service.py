"""nova-consoleauth over a conductor: what is kept, what is refused, and what is logged."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.cmd.consoleauth import base_urls
from nova.console.service import ConsoleAuthService
from nova.model.guest.consoles import (
    ConsoleAddress,
    ConsoleConnection,
    ConsoleGrant,
    ConsoleRequest,
    ConsoleType,
    TokenCheck,
    token_hash,
)
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.local import connect

REQUEST = ConsoleRequest(server_uuid="11111111-2222-4333-8444-555555555555", type=ConsoleType.SERIAL)

BASES = {ConsoleType.SERIAL: "wss://cloud.example:6083/"}
EVIL = "https://phish.example/"  # what a stolen host says of it


class Keeper:
    """The conductor's part. ``error`` is what it says to everything."""

    def __init__(self) -> None:
        self.grants: list[ConsoleGrant] = []
        self.checks: list[TokenCheck] = []
        self.error: Exception | None = None

    def keep_console(self, grant: ConsoleGrant) -> ConsoleAddress:
        if self.error:
            raise self.error
        self.grants.append(grant)
        return ConsoleAddress(access_url_base=EVIL, host="10.0.0.1", port=10000)

    def check_console(self, check: TokenCheck) -> ConsoleConnection:
        self.checks.append(check)
        return self.get_console(check.token_hash)

    def get_console(self, token_hash: str) -> ConsoleConnection:
        if self.error:
            raise self.error
        return ConsoleConnection(type=REQUEST.type, server_uuid=REQUEST.server_uuid, user_id="joe", project_id="demo",
                                 address=ConsoleAddress(access_url_base=EVIL), expires_at=1)


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


def service(keeper: Keeper, **settings: Any) -> Any:
    group = SimpleNamespace(**{"token_ttl": 600, "single_use_tokens": False, **settings})
    return connect(ConsoleAuthRPC, ConsoleAuthService(keeper, group, BASES))


def test_console_opened_then_its_hash_is_kept_and_its_token_only_answered(
        keeper: Keeper, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = service(keeper, token_ttl=60).open_console(REQUEST)
    [token] = parse_qs(urlsplit(made.url).query)["token"]
    assert keeper.grants == [ConsoleGrant(wish=REQUEST, token_hash=token_hash(token), ttl_s=60)]
    assert token not in caplog.text and token_hash(token) not in caplog.text
    assert token_hash(token)[:8] in caplog.text and "serial" in caplog.text


def test_console_opened_then_its_address_is_the_configured_one_whatever_the_host_says(keeper: Keeper) -> None:
    client = service(keeper)
    assert client.open_console(REQUEST).url.startswith("wss://cloud.example:6083/?token=")
    for found in (client.check_token(TokenCheck(token_hash="0" * 64)), client.show_token("0" * 64)):
        assert found.address.access_url_base == "wss://cloud.example:6083/"


def test_console_of_a_type_without_an_address_then_refused_and_nothing_is_kept(keeper: Keeper) -> None:
    with pytest.raises(errors.Invalid, match="^Unavailable console type xvpvnc.$"):
        service(keeper).open_console(msgspec.structs.replace(REQUEST, type=ConsoleType.XVPVNC))
    assert keeper.grants == []


def test_base_urls_when_nothing_is_set_then_all_but_the_java_viewers() -> None:
    options = conf.register(cfg.ConfigOpts())
    options([], project="nova", default_config_files=[])
    found = base_urls(options)
    assert set(ConsoleType) - set(found) == {ConsoleType.XVPVNC, ConsoleType.RDP_HTML5, ConsoleType.UNKNOWN}
    options.set_override("xvpvncproxy_base_url", "http://x:6081/console", "vnc")
    assert base_urls(options)[ConsoleType.XVPVNC] == "http://x:6081/console"


def test_console_opened_twice_then_two_tokens(keeper: Keeper) -> None:
    client = service(keeper)
    assert client.open_console(REQUEST).url != client.open_console(REQUEST).url


@pytest.mark.parametrize(("single", "redeem", "uses_up"), [
    (False, True, False), (True, True, True), (True, False, False), (False, False, False)])
def test_token_checked_then_it_is_used_up_where_tokens_serve_once(keeper: Keeper, single: bool, redeem: bool,
                                                                  uses_up: bool) -> None:
    check = TokenCheck(token_hash="0" * 64, types=(ConsoleType.SERIAL,), redeem=redeem)
    found = service(keeper, single_use_tokens=single).check_token(check)
    assert found.user_id == "joe"
    assert [(one.redeem, one.types) for one in keeper.checks] == [(uses_up, (ConsoleType.SERIAL,))]


@pytest.mark.parametrize("error", [errors.NotFound("old"), errors.Conflict("used"), errors.Invalid("another kind")])
def test_token_refused_then_the_conductor_s_words(keeper: Keeper, error: errors.NovaError) -> None:
    keeper.error = error
    with pytest.raises(type(error), match=error.message):
        service(keeper).check_token(TokenCheck(token_hash="0" * 64))


@pytest.mark.parametrize("reason", ["The database does not answer: (2003, 'db1.internal')",
                                    "nova-conductor has no queue"])
def test_token_that_cannot_be_checked_then_the_page_names_nothing_of_the_cloud_and_the_log_does(
        keeper: Keeper, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    keeper.error = errors.Unavailable(reason)
    with pytest.raises(errors.Unavailable) as caught:
        service(keeper).check_token(TokenCheck(token_hash="0" * 64))
    assert "db1" not in caught.value.message and "queue" not in caught.value.message
    assert "Try again in a minute" in caught.value.message and reason in caplog.text


def test_console_when_the_conductor_cannot_be_reached_then_it_says_so(keeper: Keeper) -> None:
    keeper.error = errors.Unavailable("nova-conductor did not answer")
    with pytest.raises(errors.Unavailable, match="nova-conductor"):
        service(keeper).open_console(REQUEST)


def test_token_whose_host_is_away_then_the_conductor_s_words_are_the_page_s(keeper: Keeper) -> None:
    """They are one refusal, whoever says it: known by its code on either side of the wire."""
    keeper.error = errors.console.CannotTell(away="the server's host")
    with pytest.raises(errors.Unavailable, match="the server's host does not answer") as caught:
        service(keeper).check_token(TokenCheck(token_hash="0" * 64))
    keeper.error = errors.Unavailable("nova-conductor did not answer")
    with pytest.raises(errors.Unavailable, match="a part of the cloud does not answer") as other:
        service(keeper).check_token(TokenCheck(token_hash="0" * 64))
    assert caught.value.code == other.value.code == errors.console.CannotTell.code
