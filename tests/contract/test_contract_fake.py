"""Fakes are derived from the contracts that they serve: they cannot answer, or be asked, what those do not have."""

from __future__ import annotations

from typing import Any

import pytest

from nova import context, errors
from nova.model.network.floating import FloatingPool
from nova.model.server.servers import ServerQuery
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.server import check_signatures
from tests.fakes.conductor import FakeConductor
from tests.fakes.contract import ContractFake
from tests.golden import shapes


@pytest.mark.parametrize("contract", shapes.contracts(), ids=lambda contract: contract.__name__)
def test_fake_of_any_contract_keeps_it(contract: Any) -> None:
    check_signatures(contract, ContractFake(contract))


def test_call_when_it_is_given_a_value_an_error_or_a_function_then_that_is_the_answer() -> None:
    fake = ContractFake(NetworkRPC, ping="net1", serve_networks=errors.Unavailable("away"),
                        check_floating_interface=lambda host, interface: errors.Bug())
    client = fake.client()
    assert client.ping("net1") == "net1"
    with pytest.raises(errors.Unavailable, match="away"):
        client.serve_networks("net1", ())
    fake.given(ping=lambda host: host.upper())
    assert client.ping("net1") == "NET1" and fake.asked("ping") == ["net1", "net1"]


def test_call_when_nothing_is_given_then_it_is_done_or_not_supported() -> None:
    client = ContractFake(NetworkRPC).client()
    assert client.refresh_networks("net1") is None
    with pytest.raises(errors.NotSupported, match="ping"):
        client.ping("net1")


def test_calls_are_kept_with_who_called() -> None:
    fake = ContractFake(NetworkRPC)
    who = context.RequestContext(request_id="req-1", user_id="joe", project_id="demo")
    with context.entered(who):
        fake.client().serve_networks("net1", ())
    [call] = fake.calls
    assert (call.name, call.arguments, call.context.user_id) == (
        "serve_networks", {"host": "net1", "networks": ()}, "joe")
    assert call.said == ("net1", ())


@pytest.mark.parametrize("use", [
    lambda: ContractFake(NetworkRPC, start=None), lambda: ContractFake(NetworkRPC).given(start=None),
    lambda: ContractFake(NetworkRPC).asked("start")])
def test_call_that_the_contract_has_not_is_refused(use: Any) -> None:
    with pytest.raises(TypeError, match="NetworkRPC has no start"):
        use()
    with pytest.raises(AttributeError):
        ContractFake(NetworkRPC).client().start("net1")


def test_value_of_another_type_than_the_contract_s_is_refused_both_ways() -> None:
    client = ContractFake(NetworkRPC, ping=7).client()
    with pytest.raises(errors.daemon.RpcMalformed):
        client.ping("net1")
    with pytest.raises(errors.Bug):
        client.serve_networks("net1", ("a network",))


def test_class_when_its_parts_or_parameters_are_not_the_contract_s_then_it_is_no_class() -> None:
    class Part:
        def list_floating_pool(self) -> tuple[FloatingPool, ...]:
            return ()

    with pytest.raises(TypeError, match="ConductorRPC has no list_floating_pool"):
        class Misnamed(Part, ContractFake, contract=ConductorRPC):
            pass
    with pytest.raises(TypeError, match="is not called with"):
        class Misled(ContractFake, contract=NetworkRPC):
            def ping(self, name: str) -> str:
                return name


def test_class_when_a_part_answers_then_it_is_asked_and_a_test_s_answer_stands_above_it() -> None:
    fake = FakeConductor()
    server = fake.add_server()
    client, query = fake.client(), ServerQuery(uuid=server.uuid)
    assert client.get_server(query) == server and fake.asked("get_server") == [query]
    fake.given(get_server=errors.NotFound("gone"))
    with pytest.raises(errors.NotFound, match="gone"):
        client.get_server(query)
    assert client.get_target(query).uuid == server.uuid  # which looks by itself, not through the call
    assert [call.name for call in fake.calls] == ["get_server", "get_server", "get_target"]


def test_class_of_a_class_may_answer_another_way() -> None:
    class Later(FakeConductor):
        def ping(self, host: str) -> str:
            return f"SQLite for {host}"

    fake = Later()
    assert fake.client().ping("ctl") == "SQLite for ctl" and fake.asked("ping") == ["ctl"]
