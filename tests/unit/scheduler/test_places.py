"""Aggregates as schedulers learn them: all at one stamp, in one message, whatever the order in which it comes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nova.model.host.aggregates import placed
from nova.model.host.hosts import AggregateMembers, AggregateStates, HostStates
from nova.scheduler.filters import always
from nova.scheduler.snapshot import HostTable
from tests.fakes.scheduling import Clock, host_state, later, placement_request, table_of


def group(*hosts, **metadata):
    return AggregateMembers(hosts=hosts, metadata=metadata)


def message(version, *groups, at=None, states=(), **fields):
    return HostStates(aggregates=AggregateStates(version=version, default_zone="nova", aggregates=groups),
                      now=None if at is None else later(at), states=states, **fields)


def places(table):
    return {view.host: (view.zone, dict(view.state.aggregate_metadata)) for view in table.snapshot().hosts}


def test_placed_gathers_every_value_and_takes_the_oldest_zone():
    assert placed([{"a": "1"}, {"a": "2", "availability_zone": "x"}, {"availability_zone": "y"}], "nova") == (
        "x", {"a": ("1", "2"), "availability_zone": ("x", "y")})
    assert placed([], "nova") == ("nova", {})


def test_update_when_aggregates_come_then_every_host_is_where_they_put_it():
    table = table_of(host_state("cn1"), host_state("cn2"), host_state("cn3"))
    table.update(message(2, group("cn1", "cn2", availability_zone="x", ssd="1"), group("cn2", ssd="2"), group("gone")))
    assert places(table) == {
        "cn1": ("x", {"availability_zone": ("x",), "ssd": ("1",)}),
        "cn2": ("x", {"availability_zone": ("x",), "ssd": ("1", "2")}), "cn3": ("nova", {})}
    assert {stamp.aggregates_version for stamp in table.stamps()} == {2}
    table.update(message(3))
    assert set(map(str, places(table).values())) == {str(("nova", {}))}


def test_update_when_aggregates_are_older_than_what_is_known_then_nothing_changes():
    table = table_of(host_state("cn1", aggregates_version=5, zone="new"))
    table.update(message(4, group("cn1", availability_zone="old")))
    assert places(table)["cn1"][0] == "new"
    table.update(message(6, group("cn1", availability_zone="newest")))
    table.update(message(5, group("cn1", availability_zone="late")))
    assert places(table)["cn1"][0] == "newest"


def test_update_when_a_host_comes_after_the_aggregates_then_it_is_placed_by_them():
    table = HostTable(90, Clock())
    table.update(message(7, group("cn1", availability_zone="x")))
    table.update(HostStates(states=(host_state("cn1", aggregates_version=6, zone="old"),), now=later(0), complete=True))
    assert places(table)["cn1"][0] == "x"
    table.update(HostStates(states=(host_state("cn1", provider_id=9, aggregates_version=6, zone="old"),), now=later(1)))
    assert places(table)["cn1"][0] == "x"


def test_update_when_a_weight_multiplier_is_set_then_weighers_see_it_at_once():
    table = table_of(host_state("cn1"))
    table.update(message(2, group("cn1", cpu_weight_multiplier="2.5"), group("cn1", cpu_weight_multiplier="1.5")))
    view, = table.snapshot().hosts
    assert view.multipliers == {"cpu_weight_multiplier": 1.5}


def test_zone_filter_when_a_host_was_moved_then_it_is_asked_where_it_is_now():
    table = table_of(host_state("cn1"), host_state("cn2"))
    table.update(message(2, group("cn2", availability_zone="x")))
    hosts = table.snapshot().hosts
    for zone, names in (("x", ["cn2"]), ("nova", ["cn1"]), ("y", []), (None, ["cn1", "cn2"])):
        passed = always.passing(hosts, placement_request(availability_zone=zone))
        assert sorted(host.host for host in passed) == names


def reported_at(version):
    """What the database had at a stamp: by number, ``a`` or ``b`` in a zone named after it."""
    return group("ab"[version % 2], availability_zone=f"z{version}")


def state_at(host, version, generation, at):
    zone = f"z{version}" if "ab"[version % 2] == host else "nova"
    metadata = {"availability_zone": (zone,)} if zone != "nova" else {}
    return host_state(host, aggregates_version=version, zone=zone, aggregate_metadata=metadata, generation=generation,
                      vcpus_used=generation, last_seen_at=later(at))


events = st.lists(st.tuples(st.sampled_from(["aggregates", "a", "b", "all"]), st.booleans()), min_size=1, max_size=8)


@settings(max_examples=300, deadline=None)
@given(events, st.randoms(use_true_random=False))
def test_update_when_messages_are_reordered_and_doubled_then_hosts_are_where_the_newest_says(found, rng):
    version, messages = 1, [HostStates(states=(state_at("a", 1, 1, 0), state_at("b", 1, 1, 0)), now=later(0),
                                       complete=True)]
    for at, (kind, changed) in enumerate(found, 1):
        version += changed
        if kind == "aggregates":
            messages.append(message(version, reported_at(version)))
        else:
            hosts = "ab" if kind == "all" else kind
            messages.append(HostStates(states=tuple(state_at(host, version, at, at) for host in hosts), now=later(at),
                                       complete=kind == "all"))
    messages.append(message(version, reported_at(version)))

    def after(reported):
        table = HostTable(90, Clock())
        for one in reported:
            table.update(one)
        return {view.host: (view.zone, dict(view.state.aggregate_metadata), view.free_vcpus)
                for view in table.snapshot().hosts}
    mixed = messages + [one for one in messages if rng.random() < 0.5]
    rng.shuffle(mixed)
    assert after(mixed) == after(messages)
    assert after(mixed)["ab"[version % 2]][0] == f"z{version}"
