"""Derived clients and checked servers, joined within the process: all of a call but the broker."""

from __future__ import annotations

import logging
import math
import threading
from typing import Any

import pytest

from nova import context, errors
from nova.context import RequestContext
from nova.model.base import Value
from nova.rpc import codec
from nova.rpc.client import Peers, Sender, derive
from nova.rpc.interface import Contract, call, cast
from nova.rpc.local import LocalBus, connect
from nova.rpc.server import Receiver


class Cake(Value):
    name: str
    pieces: int = 8


class KitchenRPC(Contract):
    topic, version, addressed_by = "kitchen", "1.2", "host"

    @call()
    def bake(self, host: str, cake: Cake, degrees: int = 180) -> tuple[Cake, ...]:
        """Bake it."""

    @call(since="1.2")
    def freeze(self, host: str) -> str:
        """New."""

    @cast()
    def smell(self, host: str) -> None:
        """Of cake."""


class CellarRPC(Contract):
    topic, version = "cellar-host", "1.0"

    @call()
    def fetch(self, host: str) -> str:
        """For hosts only: who is named is who asks."""


class BurntCake(errors.Conflict):
    code, message = "cake.burnt", "The {name} is burnt."


class Kitchen:
    def __init__(self) -> None:
        self.seen: list[tuple] = []

    def bake(self, host, cake, degrees=180):
        self.seen.append((cake, degrees, context.current()))
        if degrees > 250:
            raise BurntCake(name=cake.name, cake=cake)
        return (cake, Cake(name="crumbs", pieces=degrees))

    def freeze(self, host):
        raise ZeroDivisionError("secret innards")

    def smell(self, host):
        self.seen.append(("smell", host, None))


class Cellar:
    def fetch(self, host):
        return f"wine for {host}"


class Recorder:
    """Sends into a receiver, and keeps the envelopes; ``change`` may forge them on the way."""

    def __init__(self, receiver, change=None):
        self.receiver, self.change, self.envelopes = receiver, change or dict, []

    def client(self, contract, host="h", peers=None):
        return derive(contract, Sender(host, peers or Peers(), self._send))

    def _send(self, contract, method, server, envelope):
        self.envelopes.append((method.name, server, envelope))
        return self.receiver.handle(method.name, self.change(envelope))


@pytest.fixture
def kitchen():
    return Kitchen()


def test_call_gives_values_there_and_back(kitchen):
    cake = Cake(name="Linzer")
    assert connect(KitchenRPC, kitchen).bake("h", cake, degrees=200) == (cake, Cake(name="crumbs", pieces=200))
    assert connect(KitchenRPC, kitchen).bake(host="h", cake=cake)[1].pieces == 180


def test_call_carries_the_callers_context(kitchen):
    alice = RequestContext(request_id="req-1", user_id="alice", roles=("member",), token="t")
    with context.entered(alice):
        connect(KitchenRPC, kitchen).bake("h", Cake(name="x"))
    assert kitchen.seen[0][2] == alice.without_token()
    assert context.current_or_none() is None


def test_call_when_the_arguments_do_not_fit_then_type_error_before_anything_is_sent(kitchen):
    bus = LocalBus()
    bus.serve(KitchenRPC, kitchen)
    with pytest.raises(TypeError):
        bus.client(KitchenRPC).bake("h")
    assert bus.messages == 0


def test_call_when_an_argument_has_a_wrong_type_then_the_server_refuses_it(kitchen, caplog):
    with pytest.raises(errors.Bug, match="does not match the RPC contract") as error:
        connect(KitchenRPC, kitchen).bake("h", Cake(name=7))
    assert error.value.code == "rpc.malformed"
    assert kitchen.seen == [] and "refused" in caplog.text


def test_call_when_it_fails_then_the_error_comes_back_as_its_kind(kitchen):
    with pytest.raises(errors.Conflict, match="The Linzer is burnt.") as error:
        connect(KitchenRPC, kitchen).bake("h", Cake(name="Linzer"), 300)
    assert type(error.value) is errors.Conflict
    assert (error.value.code, error.value.data["name"]) == ("cake.burnt", "Linzer")


def test_call_when_it_fails_unexpectedly_then_the_caller_learns_no_innards(kitchen, caplog):
    with pytest.raises(errors.Bug) as error:
        connect(KitchenRPC, kitchen).freeze("h")
    assert "innards" not in str(error.value)
    assert "secret innards" in caplog.text


def test_cast_gives_nothing_and_counts_one_message(kitchen):
    bus = LocalBus()
    bus.serve(KitchenRPC, kitchen, "h")
    client = bus.client(KitchenRPC)
    assert client.smell("h") is None
    assert (kitchen.seen, bus.messages) == ([("smell", "h", None)], 1)
    client.bake("h", Cake(name="x"))
    assert bus.messages == 3


def test_call_goes_to_the_server_that_is_addressed(kitchen):
    bus, other = LocalBus(), Kitchen()
    bus.serve(KitchenRPC, kitchen, "h1")
    bus.serve(KitchenRPC, other, "h2")
    bus.client(KitchenRPC).smell("h2")
    assert (len(kitchen.seen), len(other.seen)) == (0, 1)
    with pytest.raises(errors.daemon.RpcNotDelivered, match="kitchen on h3"):
        bus.client(KitchenRPC).smell("h3")


# versions

@pytest.mark.parametrize(("pins", "lowest", "allowed"), [
    ({}, (), True), ({"kitchen": "1.1"}, (), False), ({"kitchen": "1.2"}, (), True),
    ({}, ("1.1",), False), ({}, ("1.2",), True), ({"kitchen": "1.2"}, ("1.1",), True)])
def test_call_when_the_peer_is_older_than_the_method_then_peer_too_old(kitchen, pins, lowest, allowed):
    peers = Peers(pins)
    peers.learn_hosts({("KitchenRPC", host): version for host, version in (*(("h", one) for one in lowest),
                                                                           ("other", "1.0"))})
    recorder = Recorder(Receiver(KitchenRPC, kitchen))
    with pytest.raises(errors.Bug if allowed else errors.PeerTooOld):
        recorder.client(KitchenRPC, peers=peers).freeze("h")
    assert len(recorder.envelopes) == int(allowed)


def test_call_when_the_peer_is_older_then_older_methods_go_in_its_version(kitchen):
    recorder = Recorder(Receiver(KitchenRPC, kitchen))
    recorder.client(KitchenRPC, peers=Peers({"kitchen": "1.0"})).smell("h")
    assert recorder.envelopes[0][2]["contract"] == "1.0"


@pytest.mark.parametrize(("version", "kind"), [
    ("1.0", None), ("1.9", None), ("2.0", errors.PeerTooOld), ("", errors.Bug), ("x.y", errors.Bug)])
def test_server_serves_every_minor_version_of_its_major(kitchen, version, kind):
    recorder = Recorder(Receiver(KitchenRPC, kitchen), lambda envelope: {**envelope, "contract": version})
    client = recorder.client(KitchenRPC)
    if kind is None:
        assert client.bake("h", Cake(name="x"))
    else:
        with pytest.raises(kind):
            client.bake("h", Cake(name="x"))


# how long callers wait

def test_server_when_callers_wait_for_an_answer_then_what_serves_them_knows_how_long(kitchen):
    class Watching:
        def __getattr__(self, name: str) -> Any:
            def do(*args: Any, **named: Any) -> Any:
                left.append(context.deadline().left_s)
                return getattr(kitchen, name)(*args, **named)
            return do
    left: list[float] = []
    receiver = Receiver(KitchenRPC, kitchen, waits_s=lambda method: 60.0 if method.name == "bake" else math.inf)
    receiver.implementation = Watching()
    client = Recorder(receiver).client(KitchenRPC)
    client.bake("h", Cake(name="x"))
    client.smell("h")
    assert 47 < left[0] <= 48 and left[1] == math.inf and context.deadline().left_s == math.inf


# who asks

def test_host_facing_call_when_another_host_is_named_then_forged():
    client = connect(CellarRPC, Cellar(), host="h1")
    assert client.fetch("h1") == "wine for h1"
    with pytest.raises(errors.Forbidden) as error:
        client.fetch("h2")
    assert error.value.code == errors.daemon.RpcForged.code


@pytest.mark.parametrize("envelope", [
    {}, {"contract": "1.2"}, {"contract": "1.2", "body": 3}, {"contract": "1.2", "body": ""},
    {"contract": "1.2", "body": codec.to_text(b"\xc1")}, {"contract": None, "body": []}])
def test_server_when_the_envelope_is_rubbish_then_it_answers_with_an_error(kitchen, envelope, caplog):
    with caplog.at_level(logging.ERROR):
        answer = codec.unpack(codec.from_text(Receiver(KitchenRPC, kitchen).handle("bake", envelope)), codec.CallReply)
    assert answer.error is not None and answer.error[:2] == ("bug", "rpc.malformed")
    assert len(caplog.records) == 1 and kitchen.seen == []


def test_call_when_the_contract_does_not_carry_tokens_then_the_users_token_stays_behind(kitchen):
    recorder = Recorder(Receiver(KitchenRPC, kitchen))
    client = recorder.client(KitchenRPC)
    with context.entered(context.RequestContext(request_id="r", user_id="joe", token="joe's token")):
        client.smell("h")
    message = codec.unpack(codec.from_text(recorder.envelopes[0][2]["body"]), codec.CallMessage)
    assert (message.context.user_id, message.context.token) == ("joe", None)


# signatures

class WithoutFreeze:
    def bake(self, host, cake, degrees=180): ...
    def smell(self, host): ...


class OtherNames(WithoutFreeze):
    def freeze(self, where): ...


@pytest.mark.parametrize(("implementation", "words"), [
    (WithoutFreeze(), "freeze: missing"), (OtherNames(), r"freeze: takes \(where\), the contract has \(host\)")])
def test_server_when_it_does_not_keep_the_contract_then_it_refuses_to_start(implementation, words):
    with pytest.raises(TypeError, match=words):
        Receiver(KitchenRPC, implementation)


# --- one project's share

class Oven(Kitchen):
    """Each cake takes until ``done``; ``smell`` is over at once."""

    def __init__(self) -> None:
        super().__init__()
        self.done, self.inside, self.most = threading.Event(), 0, 0
        self._lock = threading.Lock()

    def freeze(self, host):
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.done.wait(20)
        with self._lock:
            self.inside -= 1
        return host

    def smell(self, host):
        self.seen.append(host)


@pytest.fixture
def oven(monkeypatch):
    made, bus = Oven(), LocalBus()
    bus.serve(KitchenRPC, made, at_once=2)
    made.client = bus.client(KitchenRPC)
    yield made
    made.done.set()


def of_project(project: str | None, work, results: list) -> threading.Thread:
    def run() -> None:
        with context.entered(RequestContext(request_id="req-1", project_id=project)):
            try:
                results.append(work())
            except errors.NovaError as error:
                results.append(error.code)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def until(condition) -> None:
    for _ in range(400):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


def test_calls_when_one_project_has_its_share_under_way_then_others_are_answered_and_it_waits(oven):
    results, busy = [], []
    threads = [of_project("loud", lambda: oven.client.freeze("h"), busy) for _ in range(5)]
    until(lambda: oven.inside == 2)
    quiet = of_project("quiet", lambda: oven.client.freeze("h"), results)
    until(lambda: oven.inside == 3)
    nobody = of_project(None, lambda: oven.client.freeze("h"), results)
    until(lambda: oven.inside == 4)
    assert oven.most == 4 and busy == []
    oven.done.set()
    for thread in (*threads, quiet, nobody):
        thread.join(20)
    assert busy == ["h"] * 5 and results == ["h", "h"], "those that waited were answered, too"


def test_call_when_its_project_is_busy_for_long_then_it_is_told_so(oven, monkeypatch):
    monkeypatch.setattr("nova.rpc.client.BUSY_S", 0.1)
    results = []
    held = [of_project("loud", lambda: oven.client.freeze("h"), []) for _ in range(2)]
    until(lambda: oven.inside == 2)
    of_project("loud", lambda: oven.client.freeze("h"), results).join(20)
    assert results == ["rpc.project_busy"]
    of_project("loud", lambda: oven.client.smell("h"), results).join(20)
    assert oven.seen == ["h"], "what is not answered is never refused: it would be lost"
    oven.done.set()
    for thread in held:
        thread.join(20)
