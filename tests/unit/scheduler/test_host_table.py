"""The hosts in memory: whatever the order in which messages come, the newest of each part counts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.scheduling.decisions import Resources
from nova.scheduler.snapshot import HostTable, merged_state
from tests.fakes.scheduling import NOW, Clock, host_state, later, table_of

NEED = Resources(vcpus=2, memory_mb=1000, disk_gb=5)


def message(*states, at=0.0, **fields):
    return HostStates(states=states, now=later(at), **fields)


def hosts_of(table):
    return {host.host: host for host in table.snapshot().hosts}


@pytest.mark.parametrize(("newer", "expected"), [
    ({"generation": 2, "vcpus_used": 5}, {"vcpus_used": 5, "zone": "nova", "enabled": True}),
    ({"generation": 1, "vcpus_used": 5}, {"vcpus_used": 0}),
    ({"service_version": 2, "enabled": False, "vcpus_used": 5}, {"enabled": False, "vcpus_used": 0}),
    ({"service_version": 0, "enabled": False}, {"enabled": True}),
    ({"aggregates_version": 2, "zone": "b", "aggregate_metadata": {"ssd": ("1",)}, "enabled": False},
     {"zone": "b", "aggregate_metadata": {"ssd": ("1",)}, "enabled": True}),
    ({"generation": 2, "service_version": 2, "aggregates_version": 2, "vcpus_used": 1, "zone": "c"},
     {"vcpus_used": 1, "zone": "c"}),
    ({"provider_id": 2, "generation": 0, "vcpus_used": 3}, {"provider_id": 2, "vcpus_used": 3}),
    ({"provider_id": 0, "generation": 9, "vcpus_used": 3}, {"provider_id": 1, "vcpus_used": 0}),
])
def test_merged_state_takes_each_part_with_a_newer_stamp(newer, expected):
    merged = merged_state(host_state(), host_state(**newer))
    assert {field: getattr(merged, field) for field in expected} == expected


def test_every_field_of_a_state_belongs_to_a_part():
    from nova.scheduler.snapshot import PARTS
    known = {name for stamp, fields in PARTS.items() for name in (stamp, *fields)}
    assert set(host_state().__struct_fields__) - known == {"host", "node", "provider_id", "last_seen_at"}


def test_update_when_a_host_is_new_then_it_is_there():
    table = table_of(host_state("cn1"))
    table.update(message(host_state("cn2"), at=1))
    assert set(hosts_of(table)) == {"cn1", "cn2"}
    assert NodeStamp(host="cn2", node="cn2", generation=1, service_version=1, aggregates_version=1,
                     provider_id=1) in table.stamps()


def amounts(provider_id, generation, vcpus_used):
    """As the conductor tells it right after a claim."""
    return host_state("", provider_id=provider_id, generation=generation, vcpus_used=vcpus_used, service_version=0,
                      aggregates_version=0, last_seen_at=None, vcpus_total=0, supported=())


def test_update_when_only_amounts_are_told_then_the_rest_stays_and_the_sweep_asks_for_it():
    table = table_of(host_state("cn1", provider_id=1), host_state("cn2", provider_id=2))
    table.update(message(amounts(2, 5, 3), amounts(9, 5, 3), at=1))
    (host,) = (host for host in table.snapshot().hosts if host.host == "cn2")
    assert (host.free_vcpus, host.usable, host.state.vcpus_total, len(table)) == (13, True, 16, 2)
    assert [stamp.generation for stamp in table.stamps()] == [1, -1]
    whole = host_state("cn2", provider_id=2, generation=5, vcpus_used=3, instances=7)
    table.update(message(amounts(2, 4, 9), whole, at=2))
    assert hosts_of(table)["cn2"].state.instances == 7
    assert [stamp.generation for stamp in table.stamps()] == [1, 5]


def test_update_when_the_provider_is_another_then_amounts_of_the_old_one_say_nothing():
    table = table_of(host_state("cn1", provider_id=1))
    table.update(message(host_state("cn1", provider_id=7), at=1))
    table.update(message(amounts(1, 9, 9), at=2))
    assert hosts_of(table)["cn1"].free_vcpus == 16
    table.update(message(at=3, gone=(("cn1", "cn1"),)))
    table.update(message(amounts(7, 9, 9), at=4))
    assert len(table) == 0


def test_update_when_a_complete_list_lacks_a_host_then_it_is_gone():
    table = table_of(host_state("cn1"), host_state("cn2"))
    table.update(message(host_state("cn2"), at=5, complete=True))
    assert set(hosts_of(table)) == {"cn2"}


def test_update_when_a_host_came_after_the_complete_list_was_made_then_it_stays():
    table = table_of(host_state("cn1"))
    table.update(message(host_state("cn2"), at=7))
    table.update(message(host_state("cn1"), at=5, complete=True))
    assert set(hosts_of(table)) == {"cn1", "cn2"}


def test_update_when_a_late_message_names_a_host_that_is_gone_then_it_stays_gone():
    table = table_of(host_state("cn1"), host_state("cn2"))
    table.update(message(host_state("cn1"), at=5, complete=True))
    table.update(message(host_state("cn2", generation=9), at=4))
    assert set(hosts_of(table)) == {"cn1"}
    table.update(message(host_state("cn2", generation=9), at=6))
    assert set(hosts_of(table)) == {"cn1", "cn2"}


def test_update_when_told_that_a_node_is_gone_then_it_is_even_if_an_older_message_comes_later():
    table = table_of(host_state("cn1"), host_state("cn2"))
    table.update(message(at=5, gone=(("cn2", "cn2"), ("never", "known"))))
    table.update(message(host_state("cn2"), at=4))
    assert set(hosts_of(table)) == {"cn1"}


messages = st.lists(st.builds(
    lambda at, versions, gone, complete, hosts: HostStates(
        now=later(at), complete=complete,
        gone=tuple((name, name) for name in gone),
        states=tuple(host_state(name, generation=versions[0], vcpus_used=versions[0], service_version=versions[1],
                                enabled=bool(versions[1] % 2), aggregates_version=versions[2],
                                zone=f"z{versions[2]}", last_seen_at=later(at)) for name in hosts)),
    st.integers(0, 20), st.tuples(*[st.integers(0, 3)] * 3), st.sets(st.sampled_from("ab"), max_size=1),
    st.booleans(), st.sets(st.sampled_from("cde"), max_size=3)), min_size=1, max_size=6,
    unique_by=lambda message: message.now)


def consistent(found):
    """As one database would tell it: stamps never fall as time goes on."""
    highest = (0, 0, 0)
    for message in sorted(found, key=lambda message: message.now):
        states = []
        for state in message.states:
            stamps = (state.generation, state.service_version, state.aggregates_version)
            highest = tuple(max(pair) for pair in zip(highest, stamps, strict=True))
            states.append(host_state(
                state.host, generation=highest[0], vcpus_used=highest[0], service_version=highest[1],
                enabled=bool(highest[1] % 2), aggregates_version=highest[2], zone=f"z{highest[2]}",
                last_seen_at=message.now))
        yield HostStates(now=message.now, complete=message.complete, gone=message.gone, states=tuple(states))


@settings(max_examples=300, deadline=None)
@given(messages, st.randoms(use_true_random=False))
def test_update_when_messages_are_reordered_and_doubled_then_the_snapshot_is_the_same(found, rng):
    in_order = list(consistent(found))
    mixed = in_order + [message for message in in_order if rng.random() < 0.5]
    rng.shuffle(mixed)

    def after(reported_):
        table = HostTable(90, Clock())
        for message in reported_:
            table.update(message)
        return {host.host: (host.free_vcpus, host.usable, host.zone) for host in table.snapshot().hosts}

    assert after(mixed) == after(in_order)


def test_snapshot_when_a_host_is_silent_then_it_is_down_and_up_again_after_a_heartbeat():
    clock = Clock()
    table = table_of(host_state("cn1"), host_state("cn2"), clock=clock)
    clock.seconds += 80
    table.update(message(at=80, alive=(("cn2", later(79)), ("unknown", later(79)))))
    assert all(host.usable for host in hosts_of(table).values())
    clock.seconds += 11
    assert {name: host.up for name, host in hosts_of(table).items()} == {"cn1": False, "cn2": True}
    table.update(message(at=91, alive=(("cn1", later(91)),)))
    assert hosts_of(table)["cn1"].usable


def test_snapshot_when_nobody_tells_anything_then_the_last_judgement_stands():
    clock = Clock()
    table = table_of(host_state("cn1"), clock=clock)
    clock.seconds += 1000
    assert hosts_of(table)["cn1"].up


def test_snapshot_when_a_message_was_long_under_way_then_the_clock_is_not_put_back():
    clock = Clock()
    table = table_of(host_state("cn1"), clock=clock)
    clock.seconds += 95
    table.update(message(host_state("cn2", last_seen_at=later(94)), at=94))
    table.update(message(at=5))
    assert {name: host.up for name, host in hosts_of(table).items()} == {"cn1": False, "cn2": True}


def test_snapshot_when_a_host_was_never_seen_then_it_is_down():
    assert not hosts_of(table_of(host_state(last_seen_at=None)))["cn1"].up


def test_snapshot_stays_as_it_is_when_states_change():
    table = table_of(host_state())
    before = table.snapshot()
    table.update(message(host_state(generation=2, vcpus_used=9), at=1))
    assert before.hosts[0].free_vcpus == 16
    assert table.snapshot().hosts[0].free_vcpus == 7


def test_count_when_decided_then_taken_until_it_expires():
    clock = Clock()
    table = table_of(host_state(), clock=clock)
    table.count("s1", ("cn1", "cn1"), NEED)
    table.count("s2", ("cn1", "cn1"), NEED)
    host = hosts_of(table)["cn1"]
    assert (host.free_vcpus, host.free_memory_mb, host.free_disk_gb) == (12, 14384, 90)
    clock.seconds += 9.9
    assert hosts_of(table)["cn1"].free_vcpus == 12
    clock.seconds += 0.2
    assert hosts_of(table)["cn1"].free_vcpus == 16


def test_count_when_the_server_was_counted_elsewhere_then_only_once():
    table = table_of(host_state("cn1"), host_state("cn2"))
    table.count("s1", ("cn1", "cn1"), NEED)
    table.count("s1", ("cn2", "cn2"), NEED)
    assert {name: host.free_vcpus for name, host in hosts_of(table).items()} == {"cn1": 16, "cn2": 14}


def test_count_when_the_host_is_gone_then_nothing():
    table = table_of(host_state("cn1"))
    table.count("s1", ("cn9", "cn9"), NEED)
    table.count("s2", ("cn1", "cn1"), NEED)
    table.update(message(at=1, complete=True))
    table.forget(("s1", "s2"))
    assert hosts_of(table) == {}


def test_update_when_a_state_contains_the_claim_then_it_counts_once():
    table = table_of(host_state())
    table.count("s1", ("cn1", "cn1"), NEED)
    table.update(message(host_state(generation=2, vcpus_used=2), at=1, claimed=("s1",)))
    assert hosts_of(table)["cn1"].free_vcpus == 14


def test_forget_doubtful_forgets_only_where_the_state_changed_since():
    table = table_of(host_state("cn1"), host_state("cn2"))
    table.count("s1", ("cn1", "cn1"), NEED)
    table.count("s2", ("cn2", "cn2"), NEED)
    assert not table.forget_doubtful()
    table.update(message(host_state("cn1", generation=2, vcpus_used=2), at=1))
    assert table.forget_doubtful()
    assert {name: host.free_vcpus for name, host in hosts_of(table).items()} == {"cn1": 14, "cn2": 14}


def test_update_without_a_time_counts_as_told_now():
    clock = Clock()
    table = table_of(host_state("cn1"), clock=clock)
    clock.seconds += 1
    table.update(HostStates(states=(host_state("cn2", last_seen_at=NOW),)))
    assert set(hosts_of(table)) == {"cn1", "cn2"}


# -- silence that is ours

def ups(table):
    return {name: host.up for name, host in hosts_of(table).items()}


def test_hosts_when_nobody_told_us_anything_for_long_then_they_get_time_to_report_and_a_dead_one_is_found():
    clock = Clock()
    table = table_of(host_state("cn1"), host_state("cn2"), host_state("dead", last_seen_at=later(-200)), clock=clock)
    assert ups(table) == {"cn1": True, "cn2": True, "dead": False}
    clock.seconds += 600
    table.update(message(at=600,
                         alive=(("cn1", NOW), ("cn2", NOW), ("dead", later(-200)))))  # a sweep, before any report
    assert ups(table) == {"cn1": True, "cn2": True, "dead": False}
    clock.seconds += 30
    table.update(message(at=630, alive=(("cn1", later(630)),)))
    assert ups(table) == {"cn1": True, "cn2": True, "dead": False}
    clock.seconds += 20
    table.update(message(at=650, alive=(("cn1", later(650)),)))
    assert ups(table) == {"cn1": True, "cn2": False, "dead": False}


def test_hosts_when_all_are_dead_then_they_are_excused_once_for_their_silence():
    clock = Clock()
    table = table_of(host_state("cn1"), clock=clock)
    for at, up in ((100, True), (160, False), (220, False), (400, False)):
        clock.seconds = 1000 + at
        table.update(message(at=at, alive=(("cn1", NOW),)))
        assert ups(table) == {"cn1": up}, at


def test_hosts_when_the_scheduler_began_while_all_were_silent_then_they_get_time_to_report():
    clock = Clock()
    table = HostTable(90, clock)
    old = later(-600)
    table.update(HostStates(states=(host_state("cn1", last_seen_at=old), host_state("cn2", last_seen_at=later(-700))),
                            now=NOW, complete=True))
    assert ups(table) == {"cn1": True, "cn2": False}
    clock.seconds += 50
    table.update(message(at=50))
    assert ups(table) == {"cn1": False, "cn2": False}
