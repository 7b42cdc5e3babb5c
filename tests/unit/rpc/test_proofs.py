"""Proofs of calls, orders and answers between a host and a conductor, with everything in between forged in turn."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.rpc import codec
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.interface import Contract, call, cast
from nova.rpc.local import LocalBus
from nova.rpc.proofs import WINDOW_S, AuthenticatedMethod, Proofs
from nova.rpc.server import Receiver

SECRETS = {"h1": ("s1",), "h2": ("s2",)}


class CellarRPC(Contract):
    topic, version, with_hosts = "cellar-host", "1.2", True

    @call()
    def fetch(self, host: str) -> str:
        """For hosts only."""

    @call(introduces=True)
    def enter(self, host: str) -> str:
        """Who has a token may."""

    @cast()
    def knock(self, host: str) -> None:
        """Nobody answers."""

    @call(repeatable=True)
    def look(self, host: str) -> str:
        """Harmless, as often as it comes."""


class ButlerRPC(Contract):
    topic, version, addressed_by, with_hosts = "butler", "1.0", "host", True

    @call()
    def serve(self, host: str) -> str:
        """An order to a host."""


class Cellar:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def fetch(self, host: str) -> str:
        self.seen.append(host)
        return f"wine for {host}"

    def enter(self, host: str) -> str:
        return "welcome"

    def look(self, host: str) -> str:
        return "many bottles"

    def knock(self, host: str) -> None:
        self.seen.append(f"{host} knocks")

    def serve(self, host: str) -> str:
        return f"served at {host}"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def keys(known: Mapping[str, tuple[str, ...]], tokens: Mapping[str, str] = {}) -> Any:
    def of(host: str, introducing: bool = False) -> tuple[str, ...]:
        return (*known.get(host, ()), *([tokens[host]] if introducing and host in tokens else ()))
    return of


def own(*secrets: str) -> Any:
    return lambda host, introducing=False: secrets


class Wire:
    """A bus on which somebody changes messages and answers, and keeps what went by."""

    def __init__(self, conductor: Proofs) -> None:
        self.cellar = Cellar()
        self.receiver = Receiver(CellarRPC, self.cellar, conductor)
        self.change: Callable[[dict[str, Any]], dict[str, Any]] = dict
        self.change_answer: Callable[[str], str] = str
        self.passed: list[tuple[str, dict[str, Any]]] = []

    def client(self, host: str, proofs: Proofs) -> Any:
        def send(contract: Any, method: Any, server: str | None, envelope: dict[str, Any]) -> Any:
            send_it = functools.partial(self._pass, method.name)
            return proofs.ask(AuthenticatedMethod(contract, method, host), envelope, "q", send_it)
        return derive(CellarRPC, Sender(host, Peers(), send))

    def _pass(self, name: str, envelope: dict[str, Any]) -> str:
        self.passed.append((name, envelope))
        return self.change_answer(self.receiver.handle(name, self.change(envelope)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wire(clock: Clock) -> Wire:
    return Wire(Proofs(keys(SECRETS), clock))


def host(wire: Wire, clock: Clock, name: str = "h1", *secrets: str) -> Any:
    return wire.client(name, proofs=Proofs(own(*(secrets or SECRETS[name])), clock))


def test_call_when_the_secret_fits_then_it_is_answered_and_no_secret_is_in_it(wire: Wire, clock: Clock) -> None:
    assert host(wire, clock).fetch("h1") == "wine for h1"
    host(wire, clock).knock("h1")
    assert wire.cellar.seen == ["h1", "h1 knocks"] and "s1" not in str(wire.passed)


@pytest.mark.parametrize("change", [
    {"sender": "h2"}, {"sender": "unknown"}, {"proof": None}, {"proof": "\N{SNOWMAN}"}, {"proof": ""},
    {"body": codec.to_text(b"other")}, {"reply_to": "reply_h2_x"}, {"id": "another"}, {"at": "1001.000"},
    {"contract": "1.1"}], ids=str)
def test_call_when_anything_in_it_is_changed_then_refused(wire: Wire, clock: Clock, change: dict[str, Any]) -> None:
    wire.change = lambda envelope: {**envelope, **change}
    with pytest.raises((errors.Forbidden, errors.Unavailable)) as error:
        host(wire, clock).fetch("h1")
    assert error.value.code in ("rpc.not_proven", "rpc.not_enrolled") and wire.cellar.seen == []


def test_call_when_its_proof_is_of_another_method_then_refused(wire: Wire, clock: Clock) -> None:
    host(wire, clock).knock("h1")
    _name, envelope = wire.passed[0]
    answer = wire.receiver.handle("fetch", {**envelope, "id": "new"})
    with pytest.raises(errors.Forbidden):
        Proofs.opened("s1", "new", answer)


@pytest.mark.parametrize("secrets", [("s2",), ("other",)])
def test_call_when_the_secret_is_anothers_then_refused_and_logged_with_the_name(
        wire: Wire, clock: Clock, secrets: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(errors.Forbidden, match="host_secret"):
        host(wire, clock, "h1", *secrets).fetch("h1")
    assert "fetch from h1 refused" in caplog.text and "s2" not in caplog.text


def test_call_when_the_host_is_not_enrolled_then_the_cure_is_said(wire: Wire, clock: Clock) -> None:
    with pytest.raises(errors.Unavailable, match="nova-manage host enroll h3"):
        host(wire, clock, "h3", "s3").fetch("h3")
    with pytest.raises(errors.Unavailable, match="nova-manage host enroll h3"):  # nor is anything sent there
        wire.client("h3", proofs=Proofs(keys(SECRETS), clock)).fetch("h3")


def test_call_when_it_comes_again_then_refused_as_often_as_it_comes(wire: Wire, clock: Clock) -> None:
    host(wire, clock).fetch("h1")
    for later_s in (0.0, WINDOW_S - 1):
        clock.now = 1000 + later_s
        answer = wire.receiver.handle(*wire.passed[0])
        with pytest.raises(errors.Forbidden, match="second time"):
            Proofs.opened("s1", wire.passed[0][1]["id"], answer)
    assert wire.cellar.seen == ["h1"]


@pytest.mark.parametrize("off_s, taken", [(0, True), (59, True), (-59, True), (61, False), (-61, False)])
def test_call_when_clocks_differ_then_a_minute_is_allowed(wire: Wire, clock: Clock, off_s: int, taken: bool) -> None:
    theirs = Clock()
    theirs.now += off_s
    client = host(wire, theirs)
    if taken:
        assert client.fetch("h1")
    else:
        with pytest.raises(errors.Forbidden, match=r"differ by -?61 s.*NTP"):
            client.fetch("h1")


@pytest.mark.parametrize("said", ["nan", "inf", "soon", "", "1e400"])
def test_call_when_the_host_says_no_time_then_refused(wire: Wire, clock: Clock, said: str) -> None:
    """A stolen host proves what it likes: its own messages are no exception to the window."""
    class Odd(Clock):
        def __format__(self, spec: str) -> str:
            return said
    proofs = Proofs(own("s1"), lambda: Odd())  # type: ignore[arg-type, return-value]
    with pytest.raises(errors.NovaError) as error:
        wire.client("h1", proofs=proofs).fetch("h1")
    assert error.value.code in ("rpc.wrong_time", "rpc.malformed") and wire.cellar.seen == []


def test_ids_when_they_are_long_over_then_they_are_forgotten(wire: Wire, clock: Clock) -> None:
    proofs = wire.receiver.proofs
    assert proofs is not None
    for turn in range(50):
        clock.now = 1000 + turn * WINDOW_S
        host(wire, clock).fetch("h1")
    assert proofs.remembers() <= 6


@pytest.mark.parametrize("forge", [
    lambda answer: answer.partition(".")[2],  # without its proof
    lambda answer: "0" * 64 + "." + answer.partition(".")[2],
    lambda answer: answer.partition(".")[0] + "." + codec.to_text(codec.pack(codec.CallReply())),
    lambda answer: codec.to_text(codec.pack(codec.CallReply(error=("conflict", "x.y", "no", {}))))])
def test_answer_when_it_is_forged_then_not_believed(wire: Wire, clock: Clock, forge: Callable[[str], str]) -> None:
    wire.change_answer = forge
    with pytest.raises(errors.Unavailable, match="not signed") as error:
        host(wire, clock).fetch("h1")
    assert error.value.code == errors.daemon.RpcAnswerNotProven.code


def test_answer_when_it_is_to_another_call_then_not_believed(wire: Wire, clock: Clock) -> None:
    kept: list[str] = []

    def keep(answer: str) -> str:
        kept.append(answer)
        return kept[0]
    wire.change_answer = keep
    client = host(wire, clock)
    assert client.fetch("h1")
    with pytest.raises(errors.Unavailable, match="not signed"):
        client.fetch("h1")


def test_answer_when_the_call_fails_then_its_error_is_proven_too(wire: Wire, clock: Clock) -> None:
    def full(host: str) -> str:
        raise errors.Conflict("the cellar is locked")
    wire.receiver.implementation.fetch = full  # type: ignore[attr-defined]
    with pytest.raises(errors.Conflict, match="locked"):
        host(wire, clock).fetch("h1")


# -- tokens

@pytest.mark.parametrize("method, allowed", [("enter", True), ("fetch", False)])
def test_token_proves_an_introduction_and_nothing_else(clock: Clock, method: str, allowed: bool) -> None:
    wire = Wire(Proofs(keys({}, {"h1": "token"}), clock))
    client = host(wire, clock, "h1", "token")
    if allowed:
        assert getattr(client, method)("h1") == "welcome"
    else:
        with pytest.raises(errors.Unavailable):
            getattr(client, method)("h1")


# -- orders

def orders(clock: Clock, conductor: Any, hosts: tuple[str, ...] = ("s1",)) -> Any:
    bus = LocalBus()
    bus.serve(ButlerRPC, Cellar(), "h1", proofs=Proofs(own(*hosts), clock))
    return bus.client(ButlerRPC, "ctl", proofs=Proofs(conductor, clock))


@pytest.mark.parametrize("hosts", [("s1",), ("new", "s1")])
def test_order_when_it_is_proven_by_the_hosts_secret_then_done(clock: Clock, hosts: tuple[str, ...]) -> None:
    assert orders(clock, keys(SECRETS), hosts).serve("h1") == "served at h1"


def test_order_when_it_is_another_hosts_or_nobodys_then_the_host_is_as_good_as_away(clock: Clock) -> None:
    for conductor in (keys({"h1": ("s2",)}), keys({"h1": ("guess",)})):
        with pytest.raises(errors.Unavailable) as error:
            orders(clock, conductor).serve("h1")
        assert error.value.code == errors.daemon.RpcOrderNotProven.code
    with pytest.raises(errors.Unavailable, match="not enrolled"):
        orders(clock, keys({})).serve("h1")


# -- one host's share

def test_calls_when_one_host_has_its_share_under_way_then_others_are_answered(clock: Clock) -> None:
    proofs, inner = Proofs(keys(SECRETS), clock), []

    class Slow(Cellar):
        def fetch(self, host: str) -> str:
            if host == "h1" and len(inner) < 2:
                inner.append(host)
                return str(client("h1").fetch("h1"))
            return f"wine for {host}, and for others: {client('h2').enter('h2')}"
    bus = LocalBus()
    bus.serve(CellarRPC, Slow(), proofs=proofs, at_once=2)

    def client(name: str) -> Any:
        return bus.client(CellarRPC, name, proofs=Proofs(own(*SECRETS[name]), clock))
    with pytest.raises(errors.Unavailable, match="'h1' already has 2 calls in progress"):
        client("h1").fetch("h1")
    assert client("h2").fetch("h2").endswith("welcome")
    inner[:] = ["h1", "h1"]
    assert client("h1").fetch("h1"), "its share is free again"


# -- several conductors

def conductors(clock: Clock, taken: set[tuple[str, str]], count: int = 3) -> list[tuple[Cellar, Receiver]]:
    """Each with a memory of its own, as another process has; ``taken``: what they have in common."""
    def take(host: str, message_id: str) -> bool:
        new = (host, message_id) not in taken
        taken.add((host, message_id))
        return new
    made = [Cellar() for _ in range(count)]
    return [(one, Receiver(CellarRPC, one, Proofs(keys(SECRETS), clock), take=take)) for one in made]


def test_message_when_it_comes_again_to_another_conductor_then_none_takes_it(wire: Wire, clock: Clock) -> None:
    host(wire, clock).knock("h1")
    name, envelope = wire.passed[0]
    several = conductors(clock, set())
    refused = [codec.unpack(codec.from_text(receiver.handle(name, envelope)), codec.CallReply).error
               for _cellar, receiver in several for _twice in range(2) if "." not in receiver.handle(name, envelope)]
    assert [one.seen for one, _receiver in several] == [["h1 knocks"], [], []]
    assert refused and {one[1] for one in refused if one} == {errors.daemon.RpcReplayed.code}


def test_message_when_it_is_harmless_then_each_conductor_may_answer_it(wire: Wire, clock: Clock) -> None:
    assert host(wire, clock).look("h1") == "many bottles"
    name, envelope = wire.passed[0]
    taken: set[tuple[str, str]] = set()
    answers = [receiver.handle(name, envelope) for _cellar, receiver in conductors(clock, taken)]
    assert taken == set() and all(Proofs.opened("s1", envelope["id"], answer) for answer in answers)


def test_message_when_two_hosts_choose_the_same_id_then_both_are_taken(wire: Wire, clock: Clock) -> None:
    [(cellar, receiver)] = conductors(clock, set(), 1)
    for name in ("h1", "h2"):
        host(wire, clock, name).knock(name)
        receiver.handle("knock", wire.passed[-1][1])
    assert cellar.seen == ["h1 knocks", "h2 knocks"]


# -- a host that starts again

def order(clock: Clock, conductor: Proofs | None = None) -> dict[str, Any]:
    """An order to h1 as a conductor sends it."""
    sent: list[dict[str, Any]] = []

    def keep(envelope: dict[str, Any]) -> str:
        sent.append(envelope)
        return Proofs.sealed("s1", envelope["id"], "")
    spoken = AuthenticatedMethod(ButlerRPC, ButlerRPC.methods["serve"], "h1")
    (conductor or Proofs(own("s1"), clock)).ask(spoken, {"sender": "ctl", "contract": "1.0", "body": "x"}, "q", keep)
    return sent[0]


def check(proofs: Proofs, envelope: dict[str, Any]) -> None:
    proofs.check(AuthenticatedMethod(ButlerRPC, ButlerRPC.methods["serve"], ""), envelope)


def test_order_when_the_host_has_started_again_then_it_is_not_taken_a_second_time(clock: Clock, tmp_path: Path) -> None:
    envelope = order(clock)
    check(Proofs(own("s1"), clock, tmp_path), envelope)
    again = Proofs(own("s1"), clock, tmp_path)
    with pytest.raises(errors.Forbidden, match="second time"):
        check(again, envelope)
    check(again, order(clock))
    [file] = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_orders_when_they_are_old_then_the_file_forgets_them(clock: Clock, tmp_path: Path) -> None:
    proofs = Proofs(own("s1"), clock, tmp_path)
    for _number in range(50):
        check(proofs, order(clock))
        clock.now += WINDOW_S / 4
    [file] = tmp_path.iterdir()
    assert len(file.read_text().split()) <= proofs.remembers() <= 20


@pytest.mark.parametrize("damage", ["", "a\nb\n", "\x00\x01", "torn"])
def test_file_when_it_is_damaged_then_orders_are_taken_and_known_again(clock: Clock, tmp_path: Path, damage: str
                                                                       ) -> None:
    (tmp_path / "taken.butler").write_text(damage)
    envelope, proofs = order(clock), Proofs(own("s1"), clock, tmp_path)
    check(proofs, envelope)
    for one in (proofs, Proofs(own("s1"), clock, tmp_path)):
        with pytest.raises(errors.Forbidden):
            check(one, envelope)


def test_file_when_it_cannot_be_written_then_that_is_said_once_and_orders_are_taken(
        clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "taken.butler").mkdir()
    proofs = Proofs(own("s1"), clock, tmp_path)
    for _number in range(3):
        check(proofs, order(clock))
    assert len([one for one in caplog.records if "cannot write" in one.getMessage()]) == 1


@pytest.mark.parametrize("name", ["id", "at"])
def test_message_when_its_own_sender_leaves_a_part_out_then_it_is_malformed_without_a_traceback(
        wire: Wire, clock: Clock, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A thief proves what it likes with its own secret."""
    def proven(envelope: dict[str, Any]) -> dict[str, Any]:
        left = {key: value for key, value in envelope.items() if key not in (name, "proof")}
        said = [str(left.get(key)) for key in ("sender", "contract", "reply_to", "id", "at", "body")]
        return {**left, "proof": codec.proof("s1", "message", CellarRPC.topic, "knock", *said)}
    wire.change = proven
    host(wire, clock).knock("h1")
    assert wire.cellar.seen == [] and "does not match the RPC contract" in caplog.text
    assert not [one for one in caplog.records if one.exc_info]
