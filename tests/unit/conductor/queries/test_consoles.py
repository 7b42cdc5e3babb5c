"""Tokens of consoles as the conductor keeps and checks them: what comes in between, what is over, who is away."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.queries import consoles as rules
from nova.conductor.upkeep import periodic
from nova.db.host import enrolments
from nova.db.models import cell as tables
from nova.db.server import consoles
from nova.db.server import servers as server_rows
from nova.model.guest.consoles import (
    ConsoleAddress,
    ConsoleConnection,
    ConsoleGrant,
    ConsoleRequest,
    ConsoleType,
    TokenCheck,
    token_hash,
)
from nova.model.host.services import ServiceUpdate
from nova.model.server.server_orders import UnshelveServer
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.interface import Timeout
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.queries.test_statement_counts import statements

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

TYPE = ConsoleType.NOVNC
TOKENS = tables.console_tokens
NOWHERE = "99999999-2222-4333-8444-555555555555"


def keep(cloud: SmallCloud, uuid: str, token: str = "t", type: ConsoleType = TYPE, ttl_s: int = 600) -> ConsoleAddress:
    with context.entered(DEMO):
        return cloud.control.keep_console(ConsoleGrant(wish=ConsoleRequest(server_uuid=uuid, type=type),
                                                       token_hash=token_hash(token), ttl_s=ttl_s))


def check(cloud: SmallCloud, token: str = "t", redeem: bool = False,
          types: tuple[ConsoleType, ...] = ()) -> ConsoleConnection:
    return cloud.control.check_console(TokenCheck(token_hash=token_hash(token), types=types, redeem=redeem))


def refusal(cloud: SmallCloud, token: str = "t", **options: Any) -> str:
    with pytest.raises(errors.NovaError) as caught:
        check(cloud, token, **options)
    assert caught.value.message and "nova-" not in caught.value.message  # words for a page, that name no machine
    return caught.value.code


def kept(cloud: SmallCloud) -> list[Any]:
    return cloud.rows("cell", sa.select(TOKENS).order_by(TOKENS.c.id))


def change(cloud: SmallCloud, uuid: str, **values: Any) -> None:
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(**values))


# -- given out

def test_console_kept_then_its_hash_alone_stands_there_and_a_check_finds_it(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    address = keep(cloud, uuid, "a token")
    [row] = kept(cloud)
    assert row.token_hash == token_hash("a token") and "a token" not in str(row)
    assert (row.server_uuid, row.host, row.user_id, row.address) == (uuid, "a", "joe", address)
    found = check(cloud, "a token")
    assert (found.type, found.server_uuid, found.user_id, found.project_id, found.address) == (
        TYPE, uuid, "joe", "demo", address)
    assert found.host == "a"  # what an address of loopback is an address of
    assert abs(found.expires_at - row.expires_at) == 0
    assert cloud.control.get_console(token_hash("a token")) == found


def test_console_calls_then_few_statements(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    with statements(cloud) as seen:
        keep(cloud, uuid)
    assert len(seen) <= 6, seen
    with statements(cloud) as seen:
        check(cloud)
    assert len(seen) == 2, seen
    with statements(cloud) as seen:
        check(cloud, redeem=True)
    assert len(seen) == 3, seen


@pytest.mark.parametrize(("values", "kind", "word"), [
    ({"host": None}, errors.Conflict, "not ready"), ({"task_state": "deleting"}, errors.WrongState, "deleting"),
    ({"task_state": "migrating"}, errors.WrongState, "migrating"), ({"deleted": 1}, errors.NotFound, "could not")])
def test_console_of_a_server_that_has_none_then_refused_and_its_host_is_not_asked(
        cloud: SmallCloud, values: dict[str, Any], kind: type[errors.NovaError], word: str) -> None:
    uuid, = cloud.active()
    change(cloud, uuid, **values)
    with pytest.raises(kind, match=word):
        keep(cloud, uuid)
    assert kept(cloud) == [] and cloud.computes["a"].asked("find_console") == []


@pytest.mark.parametrize(("said", "kind", "words"), [
    (errors.NotFound("no"), errors.Conflict, "not ready"),
    (errors.Conflict("it does not run"), errors.Conflict, "it does not run"),
    (errors.Invalid("no"), errors.Invalid, "Unavailable console type novnc."),
    (errors.NotSupported("no"), errors.NotSupported, "no novnc consoles"),
    (errors.PeerTooOld("a"), errors.Unavailable, "older release"),
    (errors.HostRefused("libvirt on a is down"), errors.Unavailable, "does not answer"),
    (errors.Unavailable("nova-compute on a did not answer"), errors.Unavailable, "does not answer")])
def test_console_when_its_host_says_no_then_words_for_its_user(cloud: SmallCloud, said: errors.NovaError,
                                                               kind: type[errors.NovaError], words: str) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].on_find = throwing(said)
    with pytest.raises(kind, match=words) as caught:
        keep(cloud, uuid)
    assert kept(cloud) == [] and " on a " not in caught.value.message


def throwing(error: Exception) -> Any:
    def act() -> None:
        raise error
    return act


def test_console_when_its_host_is_known_to_be_down_then_nobody_waits_for_it(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    asked = len(cloud.computes["a"].asked("find_console"))
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=True))
    with pytest.raises(errors.Unavailable, match="does not answer"):
        keep(cloud, uuid, "another")
    assert refusal(cloud) == "console.cannot_tell" and len(cloud.computes["a"].asked("find_console")) == asked
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=False))
    assert check(cloud).server_uuid == uuid  # a token outlives its host's silence


@pytest.mark.parametrize("action", ["delete", "stop", "resize"])
def test_console_when_its_server_begins_to_go_while_the_host_is_asked_then_nothing_is_kept(cloud: SmallCloud,
                                                                                          action: str) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].on_find = lambda: change(cloud, uuid, epoch=7, console_epoch=7)  # what begin() writes for these
    with pytest.raises(errors.WrongState, match="request its console again"):
        keep(cloud, uuid)
    assert kept(cloud) == []


@pytest.mark.parametrize("values", [{"host": "b"}, {"deleted": 1}])
def test_console_when_its_server_is_elsewhere_once_the_host_has_answered_then_nothing_is_kept(
        cloud: SmallCloud, values: dict[str, Any]) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].on_find = lambda: change(cloud, uuid, **values)
    with pytest.raises((errors.WrongState, errors.NotFound)):
        keep(cloud, uuid)
    assert kept(cloud) == []


def test_console_while_a_harmless_operation_begins_then_it_is_kept_and_good(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].on_find = lambda: change(cloud, uuid, epoch=7)  # a reboot, or a takeover
    keep(cloud, uuid)
    assert check(cloud).server_uuid == uuid


def test_console_when_the_conductor_dies_before_it_is_kept_then_the_address_is_nothing_and_another_is_given(
        cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.computes["a"].on_find = throwing(KeyboardInterrupt())  # as near to a kill as one thread comes
    with pytest.raises(KeyboardInterrupt):
        rules.ConsoleQueries(cloud.deps).keep_console(ConsoleGrant(
            wish=ConsoleRequest(server_uuid=uuid, type=TYPE), token_hash=token_hash("lost"), ttl_s=600))
    cloud.computes["a"].on_find = None
    assert refusal(cloud, "lost") == "console.unknown"
    keep(cloud, uuid)
    assert check(cloud).server_uuid == uuid


# -- shown again

def test_console_when_its_host_names_another_hosts_address_then_nobody_is_led_there(
        cloud: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    """A stolen host with a tenant's server would have that tenant type into its neighbour's guests."""
    uuid, = cloud.active()
    own, theirs = keep(cloud, uuid).host, "10.99.0.2"
    cloud.cell.transact(lambda tx: enrolments.keep_addresses(tx, "a", [str(own)]))
    assert keep(cloud, uuid, "u").host == own
    cloud.computes["a"].given(find_console=ConsoleAddress(access_url_base="http://x/", host=theirs, port=5900))
    with pytest.raises(errors.Unavailable, match="does not belong to the host") as refused:
        keep(cloud, uuid, "v")
    assert theirs not in refused.value.message and f"host a reports a console of its guest at {theirs}" in caplog.text
    assert refusal(cloud, "u") == "console.elsewhere"
    cloud.computes["a"].given(find_console=ConsoleAddress(access_url_base="http://x/", socket_path="/run/x"))
    assert keep(cloud, uuid, "w").socket_path == "/run/x", "a socket is on its own machine, which the proxy checks"


def test_token_when_unknown_expired_or_of_another_kind_then_each_is_told(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    assert refusal(cloud) == "console.unknown"
    keep(cloud, uuid, "old", ttl_s=0)
    assert refusal(cloud, "old") == "console.expired"
    keep(cloud, uuid)
    with pytest.raises(errors.Invalid, match=r"another console type \(novnc\)"):
        check(cloud, types=(ConsoleType.SERIAL,))
    assert check(cloud, types=(ConsoleType.SERIAL, TYPE)).type is TYPE


@pytest.mark.parametrize("values", [{"console_epoch": 9}, {"host": "b"}, {"host": None}, {"deleted": 1}])
def test_token_when_its_server_has_gone_from_there_then_it_is_dead_for_all(cloud: SmallCloud,
                                                                           values: dict[str, Any]) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    change(cloud, uuid, **values)
    asked = len(cloud.computes["a"].asked("find_console"))
    assert refusal(cloud) == "console.ended" and len(cloud.computes["a"].asked("find_console")) == asked
    with pytest.raises(errors.NotFound):
        cloud.control.get_console(token_hash("t"))


def test_token_given_out_while_its_server_is_shelved_then_dead_when_it_is_back_on_its_host(cloud: SmallCloud) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, shelved_offload_time=0)
    uuid, = cloud.active()
    keep(cloud, uuid)
    home = cloud.server(uuid).host
    cloud.order(uuid, "shelve")
    cloud.ended(uuid)
    gone = cloud.server(uuid)
    assert gone.host is None
    cloud.write("cell", sa.update(TOKENS).values(epoch=gone.console_epoch))
    assert refusal(cloud) == "console.ended"
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
    cloud.ended(uuid)
    change(cloud, uuid, host=home)
    assert refusal(cloud) == "console.ended"


@pytest.mark.parametrize("field", [{"port": 6000}, {"host": "elsewhere"}, {"port": None, "socket_path": "/x"},
                                   {"tls_port": 1}])
def test_token_when_its_port_has_changed_hands_then_it_is_dead(cloud: SmallCloud, field: dict[str, Any]) -> None:
    uuid, = cloud.active()
    address = keep(cloud, uuid)
    values = {name: getattr(address, name) for name in ConsoleAddress.__struct_fields__} | field
    cloud.write("cell", sa.update(TOKENS).values(address=ConsoleAddress(**values)))
    assert refusal(cloud, redeem=True) == "console.ended"
    assert kept(cloud)[0].used_at is None


@pytest.mark.parametrize(("said", "code"), [
    (errors.NotFound("no guest"), "console.ended"), (errors.Conflict("off"), "console.off"),
    (errors.Invalid("not any more"), "console.ended"), (errors.PeerTooOld("a"), "console.cannot_tell"),
    (errors.Unavailable("nova-compute on a is silent"), "console.cannot_tell"),
    (errors.HostRefused("libvirt on a is down"), "console.cannot_tell")])
def test_token_when_the_host_does_not_confirm_it_then_words_and_it_is_not_used_up(
        cloud: SmallCloud, said: errors.NovaError, code: str) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    cloud.computes["a"].on_find = throwing(said)
    assert refusal(cloud, redeem=True) == shown(cloud) == code and kept(cloud)[0].used_at is None
    cloud.computes["a"].on_find = None
    if code == "console.ended":  # for good: nobody knows whose its port was meanwhile
        assert refusal(cloud, redeem=True) == shown(cloud) == code and kept(cloud)[0].used_at is None
    else:
        assert cloud.control.get_console(token_hash("t")) == check(cloud, redeem=True)


def shown(cloud: SmallCloud, token: str = "t") -> str:
    """The refusal to show a token to an administrator."""
    with pytest.raises(errors.NovaError) as caught:
        cloud.control.get_console(token_hash(token))
    return caught.value.code


def test_token_whose_port_is_another_guest_s_by_now_then_no_administrator_s_proxy_is_sent_there(
        cloud: SmallCloud) -> None:
    """It connects by itself to what it is told (CVE-2013-0335)."""
    uuid, other = cloud.active(2)
    address, elsewhere = keep(cloud, uuid), keep(cloud, other, "other's")
    ports = cloud.computes["a"].ports
    ports[uuid], ports[other] = ports[other], ports[uuid]
    assert shown(cloud) == "console.ended" and address != elsewhere
    ports[uuid], ports[other] = ports[other], ports[uuid]
    assert shown(cloud) == refusal(cloud) == "console.ended"  # for good


def test_token_shown_while_its_host_is_down_then_503_at_once_and_the_token_lives(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    asked = len(cloud.computes["a"].asked("find_console"))
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=True))
    assert shown(cloud) == "console.cannot_tell" and len(cloud.computes["a"].asked("find_console")) == asked
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", forced_down=False))
    assert cloud.control.get_console(token_hash("t")).server_uuid == uuid


def test_token_when_its_server_begins_to_go_while_it_is_shown_then_it_is_dead(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    cloud.computes["a"].on_find = lambda: change(cloud, uuid, epoch=9, console_epoch=9)
    assert shown(cloud) == "console.ended"


@pytest.mark.parametrize("redeem", [False, True])
def test_token_when_its_server_begins_to_go_while_the_host_confirms_then_it_is_dead_and_not_used(
        cloud: SmallCloud, redeem: bool) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    cloud.computes["a"].on_find = lambda: change(cloud, uuid, epoch=9, console_epoch=9)
    assert refusal(cloud, redeem=redeem) == "console.ended"
    assert kept(cloud)[0].used_at is None


def test_token_redeemed_twice_then_once(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    assert check(cloud) == check(cloud)  # a look uses nothing up
    assert check(cloud, redeem=True).server_uuid == uuid
    assert refusal(cloud, redeem=True) == refusal(cloud) == "console.used"
    with pytest.raises(errors.NotFound):
        cloud.control.get_console(token_hash("t"))


def test_token_redeemed_by_two_at_once_then_by_one(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    barrier, results = threading.Barrier(2, timeout=10), []
    cloud.computes["a"].on_find = barrier.wait  # both stand between the first look and the swap

    def use() -> None:
        try:
            results.append(check(cloud, redeem=True).server_uuid)
        except errors.NovaError as error:
            results.append(error.code)
    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(results) == sorted([uuid, "console.used"])


@pytest.mark.parametrize("hash", ["", "x" * 64, token_hash("t").upper(), "\0", "é" * 64, "0" * 5000])
def test_token_s_hash_that_is_none_then_not_known(cloud: SmallCloud, hash: str) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid)
    with pytest.raises(errors.NotFound):
        cloud.control.check_console(TokenCheck(token_hash=hash))
    with pytest.raises(errors.NotFound):
        cloud.control.get_console(hash)


# -- what is over

def test_expired_tokens_then_dropped_in_batches_and_those_that_hold_stay(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid, "good")
    row = dict(kept(cloud)[0]._mapping)
    cloud.write("cell", sa.insert(TOKENS).values([
        {**row, "id": None, "token_hash": token_hash(str(number)), "expires_at": 1} for number in range(450)]))
    assert rules.drop_expired(cloud.deps) == 450
    assert [one.token_hash for one in kept(cloud)] == [token_hash("good")]
    assert rules.drop_expired in [job for _seconds, job, _name in periodic.jobs()]


def test_token_given_out_then_its_server_s_expired_ones_go(cloud: SmallCloud) -> None:
    one, other = cloud.active(2)
    for uuid in (one, other):
        keep(cloud, uuid, f"old of {uuid}", ttl_s=0)
    keep(cloud, one)
    assert {row.token_hash for row in kept(cloud)} == {token_hash("t"), token_hash(f"old of {other}")}


def test_tokens_of_one_server_beyond_the_bound_then_the_oldest_go(cloud: SmallCloud) -> None:
    uuid, other = cloud.active(2)
    keep(cloud, other, "other's")
    keep(cloud, uuid, "0")
    row = dict(kept(cloud)[1]._mapping)
    cloud.write("cell", sa.insert(TOKENS).values([
        {**row, "id": None, "token_hash": token_hash(str(number))}
        for number in range(1, consoles.MOST_OF_A_SERVER)]))
    keep(cloud, uuid, "newest")
    assert len(kept(cloud)) == consoles.MOST_OF_A_SERVER + 1
    assert refusal(cloud, "0") == "console.unknown"
    for token in ("1", "newest"):
        assert check(cloud, token).server_uuid == uuid
    assert check(cloud, "other's").server_uuid == other


def test_server_purged_then_its_tokens_too(cloud: SmallCloud) -> None:
    uuid, other = cloud.active(2)
    keep(cloud, uuid, "its")
    keep(cloud, other, "other's")
    cloud.delete(uuid)
    change(cloud, uuid, deleted_at=sa.text("'2000-01-01 00:00:00'"))
    assert cloud.cell.transact(lambda tx: server_rows.purge(tx, 60, 10)) == 1
    assert [row.server_uuid for row in kept(cloud)] == [other]


def test_console_asked_of_a_host_then_by_a_call_of_its_own(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    keep(cloud, uuid, type=ConsoleType.SERIAL)
    assert cloud.computes["a"].asked("find_console") == [("a", uuid, ConsoleType.SERIAL)]
    found = ComputeRPC.methods["find_console"]
    assert found.since == "1.2" and found.timeout is Timeout.SHORT  # the user's page waits for it, 20 s at most
    slow = (ConductorRPC.methods["get_console"], ConductorRPC.methods["check_console"],
            ConsoleAuthRPC.methods["show_token"], ConsoleAuthRPC.methods["check_token"])
    assert {method.timeout for method in slow} == {Timeout.NORMAL}  # they wait for that
    with pytest.raises(errors.NotFound):
        keep(cloud, NOWHERE)
