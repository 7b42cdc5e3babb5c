"""Heartbeats: most are told, some ask."""

from __future__ import annotations

import pytest

from nova import errors
from nova.compute.reports.heartbeat import ASKS_EVERY, Heartbeats
from nova.model.host.services import Alive, Heartbeat
from nova.rpc.client import Peers
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.rpc_watchdog import RpcWatchdog
from tests.fakes.contract import ContractFake

BEAT = Heartbeat(host="cn1", binary="nova-compute")


@pytest.fixture
def conductor() -> ContractFake:
    return ContractFake(ConductorHostRPC, heartbeat=Alive(cleanups_pending=True))


def names(conductor: ContractFake) -> list[str]:
    return [call.name for call in conductor.calls]


def test_beat_when_all_is_well_then_every_fourth_asks_and_the_first_one_does(conductor):
    heard = []
    beats = Heartbeats(conductor.client("cn1"), BEAT, heard.append, RpcWatchdog())
    for _ in range(2 * ASKS_EVERY):
        beats()
    assert names(conductor) == ["heartbeat", *["still_here"] * 3] * 2 and len(heard) == 2 and heard[0].cleanups_pending


def test_beat_when_a_question_had_no_answer_then_the_next_one_asks_again(conductor):
    heard = []
    beats = Heartbeats(conductor.client("cn1"), BEAT, heard.append, RpcWatchdog())
    conductor.away = True
    for _ in range(2):
        with pytest.raises(errors.Unavailable):
            beats()
    conductor.away = False
    beats()
    beats()
    assert names(conductor) == [*["heartbeat"] * 3, "still_here"] and len(heard) == 1


def test_beat_when_a_conductor_is_too_old_to_be_told_then_it_is_asked(conductor):
    old = Peers(pins={ConductorHostRPC.topic: "1.1"})
    beats = Heartbeats(conductor.client("cn1", old), BEAT, lambda alive: None, RpcWatchdog())
    for _ in range(3):
        beats()
    assert names(conductor) == ["heartbeat"] * 3


def test_beat_when_an_echo_is_on_its_way_and_never_comes_then_the_host_says_for_how_long_it_is_deaf(conductor):
    now = [100.0]
    watchdog = RpcWatchdog(lambda: now[0])
    conductor.given(heartbeat=Alive(echoed=True))
    beats = Heartbeats(conductor.client("cn1"), BEAT, lambda alive: None, watchdog)
    beats()
    now[0] += 30
    beats()
    with watchdog.message():
        pass
    beats()
    assert [call.arguments["beat"].rpc_silent_s for call in conductor.calls] == [0, 30, 0]
    assert [call.arguments["beat"].wants_echo for call in conductor.calls] == [True, False, False]
