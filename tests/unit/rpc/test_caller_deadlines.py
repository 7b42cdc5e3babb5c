"""What only reads is asked a second time, soon; what changes something never is."""

from __future__ import annotations

import pytest

from nova import errors
from nova.conductor.engine.announce import calls
from nova.rpc import bus, server
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.placement import PlacementRPC
from nova.rpc.interface import Contract, Method, Timeout, call

#: Calls named like reads that are none: a host may be asked, which takes as long as it takes, or a row is made.
NO_READS = {"get_console_output", "get_diagnostics", "get_console", "list_security_groups"}


class Office(Contract):
    topic, version = "office", "1.0"

    @call(reads=True)
    def look(self) -> int:
        """Read."""

    @call()
    def write(self) -> int:
        """Write."""

    @call(reads=True, timeout=Timeout.LONG)
    def study(self) -> int:
        """Read for long, with heartbeats."""


class Lossy:
    """Loses the first ``lost`` messages."""

    def __init__(self, lost: int) -> None:
        self.lost = lost
        self.waited: list[int] = []

    def once(self, seconds: int) -> str:
        self.waited.append(seconds)
        if len(self.waited) <= self.lost:
            raise errors.daemon.RpcNoAnswer(topic="office", where="", method="look", seconds=seconds)
        return "answer"


def method(name: str) -> Method:
    return Office.methods[name]


def test_read_when_the_first_message_is_lost_then_it_is_answered_soon() -> None:
    office = Lossy(1)
    assert bus.ask(bus.tries(method("look"), 60), office.once, "look") == "answer"
    assert office.waited == [9, 51], "the sum is what one call would have waited"


def test_read_when_nobody_answers_then_it_fails_after_the_second() -> None:
    office = Lossy(9)
    with pytest.raises(errors.daemon.RpcNoAnswer):
        bus.ask(bus.tries(method("look"), 60), office.once, "look")
    assert len(office.waited) == 2


@pytest.mark.parametrize(("name", "seconds"), [("write", 60), ("study", 1800), ("look", 5)])
def test_call_that_changes_something_or_has_no_time_to_share_is_asked_once(name: str, seconds: int) -> None:
    office = Lossy(9)
    with pytest.raises(errors.daemon.RpcNoAnswer):
        bus.ask(bus.tries(method(name), seconds), office.once, name)
    assert office.waited == [seconds]


def test_second_asking_when_the_server_gives_up_itself_then_its_reason_arrives_in_time() -> None:
    assert 1 - bus.FIRST_PART > server.PART


@pytest.mark.parametrize("contract", [ConductorRPC, PlacementRPC])
def test_reads_of_a_contract_are_its_lists_and_gets_and_nothing_else(contract: type[Contract]) -> None:
    named = {name for name in contract.methods if name.startswith(("get_", "list_")) or name == "ping"}
    assert {name for name, one in contract.methods.items() if one.reads} == named - NO_READS


def test_reads_tell_nobody_of_a_change() -> None:
    assert not {name for name in calls.CALLS if ConductorRPC.methods[name].reads}
