from __future__ import annotations

import random
import threading
from collections import Counter
from types import SimpleNamespace

import pytest

from nova import errors
from nova.model.host.hosts import HostStates
from nova.model.scheduling.decisions import Refusal
from nova.rpc import local
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.scheduler import service
from tests.fakes.contract import ContractFake
from tests.fakes.scheduling import NOW, Clock, filter_options, host_state, later, placement_request


class FakeConductor(ContractFake, contract=ConductorRPC):
    """Answers ``get_host_states`` with its hosts; ``fail`` has errors to raise first."""

    def __init__(self, *states) -> None:
        super().__init__()
        self.states = states
        self.fail = []
        self.answered = threading.Semaphore(0)

    def get_host_states(self, known, everything):
        if self.fail:
            raise self.fail.pop(0)
        self.answered.release()
        return HostStates(states=self.states, now=NOW, complete=everything)


def make(*states, sweep_s=60, clock=None, conductor=None):
    settings = service.SchedulerSettings(SimpleNamespace(host_state_sweep_interval=sweep_s), filter_options(), 90)
    made = service.SchedulerService((conductor or FakeConductor(*states)).client(), settings, clock or Clock(),
                                    random.Random(1))
    if conductor is None:
        assert made.sweep()
    return made


def chosen(selections):
    return [selection.hosts[0].host if selection.hosts else None for selection in selections]


def test_select_hosts_over_the_contract():
    scheduler = local.connect(SchedulerRPC, make(host_state("cn1"), host_state("cn2", memory_mb_used=99)))
    (selection,) = scheduler.select_hosts(placement_request())
    assert [choice.host for choice in selection.hosts] == ["cn1", "cn2"]
    scheduler.update_hosts(HostStates(states=(host_state("cn1", service_version=2, enabled=False),), now=later(1)))
    assert chosen(scheduler.select_hosts(placement_request())) == ["cn2"]


def test_select_hosts_when_requests_come_before_the_claims_then_they_spread():
    scheduler = make(*(host_state(f"cn{number}") for number in range(5)))
    found = [chosen(scheduler.select_hosts(placement_request(server_uuids=(f"s{number}",))))[0] for number in range(20)]
    assert set(Counter(found).values()) == {4}


def test_select_hosts_when_parallel_then_no_host_is_given_away_twice():
    scheduler = make(*(host_state(f"cn{number}", vcpus_capacity=2) for number in range(8)))
    found = []

    def ask(name):
        found.extend(chosen(scheduler.select_hosts(placement_request(server_uuids=(f"{name}a", f"{name}b")))))

    threads = [threading.Thread(target=ask, args=(f"t{number}",)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(found) == {**{f"cn{number}": 2 for number in range(8)}, None: 2}


def test_select_hosts_when_asked_again_then_the_first_decision_counts_no_more():
    scheduler = make(host_state("cn1", vcpus_capacity=1), host_state("cn2", vcpus_capacity=1))
    assert chosen(scheduler.select_hosts(placement_request(exclude=("cn2",)))) == ["cn1"]
    assert chosen(scheduler.select_hosts(placement_request(exclude=("cn1",)))) == ["cn2"]
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("other",)))) == ["cn1"]


def test_select_hosts_when_full_only_by_decisions_that_may_be_claimed_by_now_then_the_claim_may_decide():
    scheduler = make(host_state("cn1", vcpus_capacity=2))
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("s1",)))) == ["cn1"]
    scheduler.update_hosts(HostStates(states=(host_state("cn1", vcpus_capacity=2, vcpus_used=1, generation=2),),
                                      now=later(1)))
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("s2", "s3")))) == ["cn1", None]


def test_select_hosts_when_no_host_then_says_why_twice(caplog):
    (selection,) = make(host_state("cn1")).select_hosts(placement_request(vcpus=99))
    assert selection.hosts == ()
    assert selection.reason == "No valid host was found. There are not enough hosts available: " \
                               "not enough vcpus (99 requested)."
    assert (selection.asked, selection.refusals) == (1, (Refusal(
        filter="capacity", hosts=1, reasons={"not enough vcpus": 1}, nearest="needs 99 vcpus, 16 free"),))
    assert selection.details in caplog.text and "16 free on cn1" in selection.details


def test_select_hosts_when_not_told_of_hosts_then_unavailable(monkeypatch):
    monkeypatch.setattr(service, "FIRST_STATES_S", 0.01)  # a constant, so that the test need not wait 5 s
    with pytest.raises(errors.Unavailable, match="nova-conductor"):
        make(conductor=FakeConductor()).select_hosts(placement_request())


def test_sweep_when_the_conductor_is_away_then_it_asks_for_everything_until_it_gets_it():
    conductor = FakeConductor(host_state())
    conductor.fail = [errors.Unavailable("conductor is away"), RuntimeError("odd")]
    scheduler = make(conductor=conductor)
    assert [scheduler.sweep() for _ in range(4)] == [False, False, True, True]
    assert [everything for _, everything in conductor.asked("get_host_states")] == [True, True, True, False]
    assert [(stamp.host, stamp.generation) for stamp in conductor.asked("get_host_states")[3][0]] == [("cn1", 1)]
    assert chosen(scheduler.select_hosts(placement_request())) == ["cn1"]


def test_start_feeds_and_sweeps_until_stopped():
    conductor = FakeConductor(host_state())
    conductor.fail = [errors.Unavailable("conductor is away")]
    scheduler = make(conductor=conductor, sweep_s=0.01)
    scheduler.start()
    for _ in range(3):
        assert conductor.answered.acquire(timeout=10)
    scheduler.stop()
    assert len(conductor.calls) >= 4


def test_busy_hosts_are_the_last_requests_and_weigh():
    scheduler = make(host_state("cn1"), host_state("cn2", provider_id=2))
    for busy, expected in (({"cn1": 2}, "cn2"), ({"cn2": 1}, "cn1"), ({"cn2": 1, "cn1": 2}, "cn2")):
        request = placement_request(server_uuids=("s",), busy=busy)
        assert chosen(scheduler.select_hosts(request)) == [expected]


def test_limit_of_busy_hosts_when_it_is_reached_then_no_more_until_they_rest():
    options = filter_options(enabled_filters=["IoOpsFilter"], max_io_ops_per_host=2)
    settings = service.SchedulerSettings(SimpleNamespace(host_state_sweep_interval=60), options, 90)
    scheduler = service.SchedulerService(FakeConductor(host_state("cn1")).client(), settings, Clock(), random.Random(1))
    assert scheduler.sweep()
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("s1",), busy={"cn1": 2}))) == [None]
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("s1",), busy={"cn1": 1, "cn9": 5}))) == ["cn1"]
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("s2",), busy={"cn1": 1}))) == [None]  # and s1


def test_rebuild_counts_as_no_server_more():
    options = filter_options(enabled_filters=["NumInstancesFilter"], max_instances_per_host=1)
    settings = service.SchedulerSettings(SimpleNamespace(host_state_sweep_interval=60), options, 90)
    scheduler = service.SchedulerService(FakeConductor(host_state("cn1")).client(), settings, Clock(), random.Random(1))
    assert scheduler.sweep()
    rebuild = placement_request(vcpus=0, memory_mb=0, disk_gb=0, server_uuids=("old",), rebuild=True, host="cn1")
    assert chosen(scheduler.select_hosts(rebuild)) == ["cn1"]
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("new",)))) == ["cn1"]
    assert chosen(scheduler.select_hosts(placement_request(server_uuids=("more",)))) == [None]
