"""Whatever becomes of the messages on the way, a scheduler knows the truth after the next sweep.

The truth here is a small model of the databases that tells what the conductor's feed would tell.
"""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.conductor.hosts.feed import _newer
from nova.model.host.hosts import AggregateMembers, AggregateStates, HostState, HostStates
from nova.model.numa.topology import CellClaim, HostCell, HostTopology, TopologyClaim
from nova.model.placement.providers import Amount, ProviderState
from nova.model.scheduling.decisions import Resources
from nova.scheduler.snapshot import AMOUNTS, PARTS, HostTable
from tests.fakes.scheduling import Clock, host_state, later

NAMES = ("cn1", "cn2", "cn3")
ROOM = Amount(capacity=10, max_unit=10)


class Truth:
    """What is in the databases, and what was told of each change of it."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostState] = {}
        self.aggregates = AggregateStates(version=1, default_zone="nova")
        self.providers = 0
        self.seconds = 0.0
        self.reported: list[HostStates] = []

    def _tell(self, *states: HostState, **fields) -> None:
        self.reported.append(HostStates(states=states, **fields))

    def _change(self, name: str, stamp: str, **fields) -> HostState:
        old = self.hosts[name]
        self.hosts[name] = msgspec.structs.replace(old, **{stamp: getattr(old, stamp) + 1}, **fields)
        return self.hosts[name]

    def placed(self, name: str) -> HostState:
        """As the feed reads a host: with what the aggregates make of it now."""
        mine = [one for one in self.aggregates.aggregates if name in one.hosts]
        metadata = {key: (value,) for one in mine for key, value in one.metadata.items()}
        return msgspec.structs.replace(
            self.hosts[name], aggregates_version=self.aggregates.version, aggregate_metadata=metadata,
            zone=metadata.get("availability_zone", ("nova",))[0], aggregate_uuids=tuple(one.uuid for one in mine))

    def whole(self, name: str) -> None:
        self._tell(self.placed(name), now=later(self.seconds))

    # -- what happens

    def come(self, name: str, number: int) -> None:
        if name in self.hosts:
            return
        self.providers += 1
        self.hosts[name] = host_state(name, provider_id=self.providers, provider_uuid=f"uuid-{self.providers}",
                                      last_seen_at=later(self.seconds), vcpus_used=number,
                                      topology=HostTopology(cells=(HostCell(id=0, memory_mb=number),)))
        self.whole(name)

    def go(self, name: str, number: int) -> None:
        if self.hosts.pop(name, None) is not None:
            self._tell(now=later(self.seconds), gone=((name, name),))

    def claim(self, name: str, number: int) -> None:
        """Of a plain provider its amounts are told, and no host is named."""
        state = self._change(name, "generation", vcpus_used=number, instances=number)
        self._tell(HostState(host="", node="", provider_id=state.provider_id, generation=state.generation,
                             **{field: getattr(state, field) for field in AMOUNTS}), claimed=(f"server-{number}",))

    def claim_deep(self, name: str, number: int) -> None:
        """Of one with children or a topology: all that the generation stamps."""
        child = ProviderState(id=100 + number, uuid=f"child-{number}", amounts={"PCI": ROOM})
        packing = TopologyClaim(cells=(CellClaim(id=0, host_cell=0, vcpus=(number,), memory_mb=512),))
        state = self._change(name, "generation", vcpus_used=number, children=(child,), packings=(packing,),
                             amounts={"VGPU": ROOM}, own_traits=(f"CUSTOM_{number}",),
                             own_aggregates=(f"own-{number}",))
        fields = {field: getattr(state, field) for field in PARTS["generation"]}
        self._tell(HostState(host=name, node=name, provider_id=state.provider_id, generation=state.generation,
                             **fields))

    def report(self, name: str, number: int) -> None:
        self._change(name, "generation", vcpus_total=16 + number, vcpus_capacity=16 + number)
        self._change(name, "service_version", metrics={"cpu.percent": float(number)}, failed_builds=number,
                     traits=(f"HW_{number}",), host_ip=f"10.0.0.{number}",
                     topology=HostTopology(cells=(HostCell(id=0, memory_mb=number),)))
        self.whole(name)

    def enable(self, name: str, number: int) -> None:
        self._change(name, "service_version", enabled=bool(number % 2), disabled_reason=f"reason {number}")
        self.whole(name)

    def beat(self, name: str, number: int) -> None:
        self.hosts[name] = msgspec.structs.replace(self.hosts[name], last_seen_at=later(self.seconds))
        self._tell(now=later(self.seconds), alive=((name, later(self.seconds)),))

    def aggregate(self, name: str, number: int) -> None:
        members = AggregateMembers(hosts=(name,), uuid=f"agg-{number}",
                                   metadata={"availability_zone": f"z{number % 3}", "ssd": str(number)})
        self.aggregates = AggregateStates(version=self.aggregates.version + 1, default_zone="nova",
                                          aggregates=(members,))
        self._tell(aggregates=self.aggregates)

    def happen(self, what: str, name: str, number: int) -> None:
        self.seconds += 1
        if what in ("come", "go", "aggregate") or name in self.hosts:
            getattr(self, what)(name, number)

    # -- what a sweep is answered

    def answer(self, stamps=(), everything: bool = False) -> HostStates:
        known = {(stamp.host, stamp.node): stamp for stamp in stamps}
        fresh = everything or any(stamp.aggregates_version != self.aggregates.version for stamp in stamps)
        states = [self.placed(name) for name in self.hosts]
        return HostStates(
            states=tuple(one for one in states if everything or _newer(one, known.get((one.host, one.node)))),
            complete=everything, now=later(self.seconds), aggregates=self.aggregates if fresh else None,
            alive=tuple((one.host, one.last_seen_at) for one in states),
            gone=tuple(sorted(set(known) - {(name, name) for name in self.hosts})))


def known_by(table: HostTable) -> dict[str, tuple]:
    """State and view of every host."""
    rows = {host: msgspec.structs.replace(row.state, last_seen_at=None) for (host, _), row in table._rows.items()}
    views = {one.host: one for one in table.snapshot().hosts}
    assert rows.keys() == views.keys()
    return {host: (state, views[host].usable, views[host].zone, views[host].free_vcpus, views[host].facts.traits)
            for host, state in rows.items()}


happenings = st.lists(st.tuples(
    st.sampled_from(["come", "come", "go", "claim", "claim", "claim_deep", "report", "enable", "beat", "aggregate"]),
    st.sampled_from(NAMES), st.integers(0, 9)), min_size=4, max_size=30)
fates = st.sampled_from(["in time", "in time", "lost", "late", "twice", "after the sweep"])


@settings(max_examples=250, deadline=None)
@given(happenings, st.lists(fates, min_size=1, max_size=30), st.integers(0, 10), st.randoms(use_true_random=False))
def test_sweep_when_messages_were_lost_late_doubled_or_mixed_then_the_truth_is_known(happened, fate, first, rng):
    truth, table = Truth(), HostTable(90, Clock())
    late: list[HostStates] = []
    after: list[HostStates] = []
    for turn, (what, name, number) in enumerate(happened):
        truth.happen(what, name, number)
        if turn == first:
            table.update(truth.answer(everything=True))
        for message in truth.reported:
            becomes = fate[turn % len(fate)]
            for _ in range({"lost": 0, "twice": 2}.get(becomes, 1)):
                {"late": late.append, "after the sweep": after.append}.get(becomes, table.update)(message)
        truth.reported.clear()
    rng.shuffle(late)
    for message in late:
        table.update(message)
    truth.seconds += 1
    table.update(truth.answer(table.stamps()), asked=True)
    fresh = HostTable(90, Clock())
    fresh.update(truth.answer(everything=True))
    assert known_by(table) == known_by(fresh)
    rng.shuffle(after)
    for message in after:
        table.update(message)
    assert known_by(table) == known_by(fresh)


@settings(max_examples=100, deadline=None)
@given(happenings, st.integers(2, 4), st.randoms(use_true_random=False))
def test_several_schedulers_when_each_hears_in_its_own_order_then_they_know_the_same(happened, count, rng):
    truth = Truth()
    for what, name, number in happened:
        truth.happen(what, name, number)
    tables = [HostTable(90, Clock()) for _ in range(count)]
    for table in tables:
        heard = [one for one in truth.reported if rng.random() < 0.8]
        rng.shuffle(heard)
        for message in heard:
            table.update(message)
        table.update(truth.answer(table.stamps()), asked=True)
    assert all(known_by(table) == known_by(tables[0]) for table in tables)
    assert tables[0].stamps() and set(known_by(tables[0])) == set(truth.hosts) or not truth.hosts


def test_sweep_when_nothing_was_missed_then_nothing_is_told_again():
    truth, table = Truth(), HostTable(90, Clock())
    for name in NAMES:
        truth.happen("come", name, 1)
    table.update(truth.answer(everything=True))
    truth.happen("enable", "cn1", 0)
    table.update(truth.reported[-1])
    assert truth.answer(table.stamps()).states == ()


def test_count_when_the_claim_was_lost_on_the_way_then_it_counts_once_after_the_sweep():
    truth, table = Truth(), HostTable(90, Clock())
    truth.happen("come", "cn1", 0)
    table.update(truth.answer(everything=True))
    table.count("server-4", ("cn1", "cn1"), Resources(vcpus=4, memory_mb=512, disk_gb=1))
    truth.happen("claim", "cn1", 4)  # committed, and nobody hears of it
    table.update(truth.answer(table.stamps()), asked=True)
    counted_twice = table.snapshot().hosts[0].free_vcpus
    assert table.forget_doubtful()
    assert (counted_twice, table.snapshot().hosts[0].free_vcpus) == (8, 12)


def test_random_seeded_life_of_two_tables_then_the_same():
    """One long life beside the many short ones."""
    rng, truth = random.Random(4), Truth()
    table = HostTable(90, Clock())
    for _ in range(400):
        truth.happen(rng.choice(["come", "go", "claim", "claim_deep", "report", "enable", "aggregate"]),
                     rng.choice(NAMES), rng.randrange(10))
        for message in truth.reported:
            if rng.random() < 0.7:
                table.update(message)
        truth.reported.clear()
        if rng.random() < 0.05:
            table.update(truth.answer(table.stamps()), asked=True)
    truth.seconds += 1
    table.update(truth.answer(table.stamps()), asked=True)
    fresh = HostTable(90, Clock())
    fresh.update(truth.answer(everything=True))
    assert known_by(table) == known_by(fresh)
