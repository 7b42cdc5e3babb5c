"""A daemon that may ask a part of a contract: the part where it is served, the whole of it in the release before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.model.host.services import ContractVersion
from nova.rpc import bus as buses
from nova.rpc.buses import control_bus
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Contract, Timeout, call
from nova.rpc.narrow import NarrowClient, spoken, whole_of
from tests.golden import shapes

PARTS = [contract for contract in shapes.contracts() if contract.part_of]


class Whole(Contract):
    topic, version = "whole", "1.3"

    @call(timeout=Timeout.SHORT)
    def ask(self, number: int) -> str:
        """Who answers."""

    @call(timeout=Timeout.SHORT)
    def rule(self) -> str:
        """What not everybody may."""


class Part(Contract):
    topic, version, part_of = "part", "1.0", Whole

    @call(timeout=Timeout.SHORT)
    def ask(self, number: int) -> str:
        """Who answers."""


class Clerk:
    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, number: int) -> str:
        return f"{self.name} {number}"

    def rule(self) -> str:
        return self.name


@pytest.fixture
def bus(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    class Conf(SimpleNamespace):
        def __contains__(self, name: str) -> bool:
            return False
    monkeypatch.setattr(buses, "ABSENT_S", 0.1)
    made = control_bus(Conf(hosts_transport_url=f"local://{tmp_path}", long_rpc_timeout=60, long_rpc_silence=4), "here")
    yield made
    made.close()


def serve(bus: Any, *contracts: type[Contract]) -> None:
    for contract in contracts:
        bus.server(contract, Clerk(contract.__name__), 2).start()


def learn(bus: Any, *contracts: type[Contract]) -> None:
    bus.peers.learn([ContractVersion(name=one.__name__, version=one.version) for one in contracts])


def test_part_when_it_is_served_then_it_is_asked(bus: Any) -> None:
    serve(bus, Whole, Part)
    client = NarrowClient(bus, Part)
    assert client.ask(1) == "Part 1"
    learn(bus, Whole, Part)
    assert client.ask(number=2) == "Part 2"


def test_part_when_only_the_whole_is_served_then_that_is_asked_before_anything_is_known_and_after(bus: Any) -> None:
    serve(bus, Whole)
    client = NarrowClient(bus, Part)
    assert client.ask(1) == "Whole 1"
    learn(bus, Whole)
    assert client.ask(2) == "Whole 2" and spoken(bus.peers, Part) is Whole


def test_part_when_conductors_were_heard_before_its_server_then_it_is_asked_and_the_whole_is_not(bus: Any) -> None:
    """A console proxy that registers before nova-consoleauth: the broker refuses it the whole, time after time."""
    serve(bus, Whole, Part)
    learn(bus, ConductorRPC)
    assert spoken(bus.peers, Part) is Part and NarrowClient(bus, Part).ask(1) == "Part 1"


def test_part_when_it_was_served_and_its_server_is_away_then_the_whole_is_not_asked(bus: Any) -> None:
    serve(bus, Whole)
    learn(bus, Whole, Part)
    with pytest.raises(errors.daemon.RpcNotDelivered):
        NarrowClient(bus, Part).ask(1)


def test_part_when_its_server_refuses_then_the_whole_is_not_asked(bus: Any) -> None:
    class Refusing(Clerk):
        def ask(self, number: int) -> str:
            raise errors.daemon.NotAControlDaemon(host="here", binary="x")
    serve(bus, Whole)
    bus.server(Part, Refusing("part"), 2).start()
    with pytest.raises(errors.Forbidden):
        NarrowClient(bus, Part).ask(1)


def test_client_when_a_method_is_of_the_whole_alone_then_it_has_none(bus: Any) -> None:
    with pytest.raises(AttributeError):
        NarrowClient(bus, Part).rule()
    with pytest.raises(TypeError):
        whole_of(Whole)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_contract_that_is_a_part_then_the_whole_has_its_methods_as_they_are(part: Any) -> None:
    whole = whole_of(part)
    for name, method in part.methods.items():
        assert method.signature == whole.methods[name].signature and method.timeout is whole.methods[name].timeout


def test_parts_then_the_conductors_are_small() -> None:
    assert {name for part in PARTS if part.part_of is ConductorRPC for name in part.methods} == {
        "register", "heartbeat", "get_host_states"}
