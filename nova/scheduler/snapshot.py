"""The scheduler's table of hosts, kept current by whole *states*, never by deltas.

A state has three parts, each with a stamp; a part is replaced as a whole by one with a newer stamp, so that late,
duplicate and reordered messages do no harm. Decisions of the last seconds that no state contains yet are added to the
states. A decision is made on a :class:`Snapshot`, which never changes.

The table is plain lists of small objects, not numpy: importing numpy costs this service 200-300 ms at its start and 14
MB, while a decision over 10,000 hosts takes milliseconds this way (``tests/bench/scheduler_decisions.py``).
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from nova.model.host.hosts import AggregateMembers, AggregateStates, HostState, HostStates, NodeStamp
from nova.model.scheduling.decisions import HostRequirements, Resources
from nova.scheduler import provider_fit
from nova.scheduler.interning import Shared
from nova.scheduler.places import AggregateSettings, Places
from nova.scheduler.provider_fit import Fit
from nova.scheduler.ranking_cache import Changes
from nova.scheduler.views import HostView, Load, view_of

Key = tuple[str, str]  # (host, node)

PENDING_S = 10.0
CLOCK_TRUSTED_S = 300.0  # after which a late clock reading replaces the stored one, because clocks drift
LOOK_EVERY_S = 15.0  # maximum interval of checks for hosts that went down: a clock may be set back

NEVER = float("-inf")
_EPOCH = datetime.datetime(1970, 1, 1)

#: stamp -> the fields that it stamps. ``last_seen_at`` has no stamp: the latest value wins.
PARTS: dict[str, tuple[str, ...]] = {
    "generation": ("vcpus_capacity", "memory_mb_capacity", "disk_gb_capacity", "vcpus_used", "memory_mb_used",
                   "disk_gb_used", "instances", "vcpus_total", "memory_mb_total", "disk_gb_total", "amounts",
                   "children", "packings", "own_traits", "own_aggregates"),
    "service_version": ("cell", "enabled", "forced_down", "disabled_reason", "hypervisor_type", "hypervisor_version",
                        "supported", "capabilities", "traits", "topology", "host_ip", "metrics", "failed_builds",
                        "provider_uuid"),
    "aggregates_version": ("zone", "aggregate_metadata", "aggregate_uuids"),
}


#: Fields that a claim's result contains of a provider, without its host's name; the rest arrives with the next sweep.
AMOUNTS = PARTS["generation"][:7]


class Snapshot(NamedTuple):
    """All hosts at one moment. ``changes``: the changes that led to it, if they are recorded."""

    hosts: tuple[HostView, ...]
    changes: Changes | None = None


class Pending(NamedTuple):
    """A decision of this scheduler that no state is known to contain. ``generation``: the provider's at the
    decision."""

    key: Key
    need: Resources
    generation: int
    expires_at: float
    fit: Fit | None = None


class _Row:
    """A host's newest state, when the conductor last reported it, and when the host last reported (database's clock).

    ``partly``: only the amounts of the state's generation were reported.
    """

    __slots__ = ("state", "partly", "reported_at", "seen_at", "pending")

    def __init__(self, state: HostState, reported_at: float) -> None:
        self.state = state
        self.partly = False
        self.reported_at = reported_at
        self.seen_at = _seconds(state.last_seen_at)
        self.pending: dict[str, Pending] = {}  # server uuid -> decision


class OutageGrace(NamedTuple):
    """Grace after a service report gap that began at ``newest``: until ``until``, hosts that reported since
    ``alive_since`` are not down. All times by the database's clock."""

    newest: float = NEVER
    alive_since: float = NEVER
    until: float = NEVER


class HostTable:
    """The table of hosts. Not thread-safe: the service holds its lock around every use.

    ``service_down_time`` in seconds; ``clock`` is monotonic.
    """

    def __init__(self, service_down_time: float, clock: Callable[[], float] = time.monotonic,
                 pending_s: float = PENDING_S) -> None:
        self._down_time = service_down_time
        self._clock = clock
        self._pending_s = pending_s
        self._rows: dict[Key, _Row] = {}
        self._views: dict[Key, HostView] = {}
        self._changes = Changes()
        self._shared = Shared()
        self._nodes: dict[str, set[str]] = {}
        self._providers: dict[int, Key] = {}
        self._pending: dict[str, Pending] = {}  # all rows' decisions, the oldest first
        self._busy: Mapping[str, int] = {}  # by host, from the last request
        self._places = Places()
        self._aggregates: dict[str, AggregateMembers] = {}  # by UUID; shared by the views, always current
        self._gone_at: dict[Key, float] = {}  # removed hosts, by the database's clock, as all times here
        self._reported_at = self._complete_at = NEVER  # the newest message, and the newest complete one
        self._offset = (0.0, NEVER)  # database's clock minus this process's, and the time of that measurement
        self._next_look = NEVER
        self._seen_since = NEVER  # all hosts that are up have reported since
        self._newest = NEVER  # the latest report of any host
        self._excuse = OutageGrace()

    def __len__(self) -> int:
        return len(self._rows)

    # updates

    def update(self, states: HostStates, asked: bool = False) -> None:
        """Merge states that are newer than the stored ones. ``asked``: the reply to this scheduler's stamps, so that a
        host which is still unknown after it did not exist when it was created."""
        reported_at, reported_before = self._clock() + self._offset[0], self._reported_at
        if states.now is not None:
            reported_at = _seconds(states.now)
            self._learn_time(reported_at)
        moved = self._place_all(states.aggregates) if states.aggregates is not None else set()
        changed = moved | {key for state in states.states if (key := self._merge(state, reported_at)) is not None}
        for host, seen_at in states.alive:
            changed.update(self._seen(host, _seconds(seen_at)))
        for host, node in states.gone:
            self._gone_at[host, node] = max(reported_at, self._gone_at.get((host, node), NEVER))
            self._remove((host, node), reported_at)
        if states.complete:
            self._complete({(state.host, state.node) for state in states.states}, reported_at)
        if asked and not states.more and states.now is not None:
            self._complete_at = max(self._complete_at, reported_at)
        self.forget(states.claimed)
        self._excuse_report_gap(reported_before)
        self._refresh(changed)

    def _excuse_report_gap(self, reported_before: float) -> None:
        """Start a grace period after an outage: if no service reported for long, do not mark all hosts down.

        Hosts are then more likely to have been disconnected than dead, and states arrive again before the hosts'
        reports do. Hosts that were alive at the last report get half of the down time to report; one time for each gap.
        """
        half = self._down_time / 2
        if self._reported_at - max(reported_before, self._newest) > half and self._excuse.newest < self._newest:
            self._excuse = OutageGrace(self._newest, self._newest - half, self._reported_at + half)
            self._next_look = NEVER

    def _merge(self, state: HostState, reported_at: float) -> Key | None:
        """Merge a state, and return its key if something changed. A state without a host has only a provider's
        amounts."""
        if not state.host:
            return self._merge_amounts(state)
        state = self._shared.of(state)
        key = (state.host, state.node)
        row = self._rows.get(key)
        if row is None:
            if not state.service_version or reported_at <= max(self._complete_at, self._gone_at.get(key, NEVER)):
                return None  # a part of an unknown host, or of a host that was removed later
            self._rows[key] = row = _Row(self._places.of(state), reported_at)
            self._newest = max(self._newest, row.seen_at)
            self._nodes.setdefault(state.host, set()).add(state.node)
            self._providers[state.provider_id] = key
            return key
        row.reported_at = max(row.reported_at, reported_at)
        row.seen_at = max(row.seen_at, _seconds(state.last_seen_at))
        self._newest = max(self._newest, row.seen_at)
        merged = self._places.of(merged_state(row.state, state, row.partly))
        changed = merged is not row.state
        if changed:
            row.partly = row.partly and state.generation < merged.generation
            row.state = merged
            self._providers[merged.provider_id] = key
        view = self._views.get(key)
        return key if changed or view is None or not view.up else None

    def _place_all(self, aggregates: AggregateStates) -> set[Key]:
        """Merge all aggregates if they are newer than the stored ones; return the hosts that they changed."""
        if aggregates.version <= self._places.version:
            return set()
        self._places = Places(aggregates)
        self._aggregates.clear()
        self._aggregates.update((one.uuid, one) for one in aggregates.aggregates)
        changed = set()
        for key, row in self._rows.items():
            before, row.state = row.state, self._places.of(row.state)
            if _place(before) != _place(row.state):
                changed.add(key)
        return changed

    def _merge_amounts(self, state: HostState) -> Key | None:
        """Merge newer amounts of a known provider and return its host's key; None for an unknown provider."""
        key = self._providers.get(state.provider_id)
        row = self._rows.get(key) if key else None
        if row is None or row.state.provider_id != state.provider_id or state.generation <= row.state.generation:
            return None
        row.partly = True
        row.state = msgspec.structs.replace(row.state, generation=state.generation,
                                            **{name: getattr(state, name) for name in AMOUNTS})
        return key

    def _seen(self, host: str, seen_at: float) -> Iterable[Key]:
        """Record a host's heartbeat, and yield its nodes that were down, which must be refreshed."""
        for node in self._nodes.get(host, ()):
            row = self._rows[host, node]
            row.seen_at = max(row.seen_at, seen_at)
            self._newest = max(self._newest, seen_at)
            view = self._views.get((host, node))
            if view is not None and not view.up:
                yield host, node

    def _complete(self, present: set[Key], reported_at: float) -> None:
        """Remove the hosts that are missing in a complete list, unless they were reported after the list was
        created."""
        self._complete_at = max(self._complete_at, reported_at)
        self._gone_at = {key: at for key, at in self._gone_at.items() if at > self._complete_at}
        for key in [key for key in self._rows if key not in present]:
            self._remove(key, reported_at)

    def _remove(self, key: Key, reported_at: float) -> None:
        row = self._rows.get(key)
        if row is None or row.reported_at > reported_at:
            return
        for uuid in row.pending:
            self._pending.pop(uuid, None)
        del self._rows[key]
        self._views.pop(key, None)
        self._changes.note(key, None)
        self._nodes[key[0]].discard(key[1])
        if self._providers.get(row.state.provider_id) == key:
            del self._providers[row.state.provider_id]

    # the database's clock

    def _learn_time(self, reported_at: float) -> None:
        """Learn the database's time. A delayed message makes its clock seem late, never early, so the largest offset is
        right."""
        here = self._clock()
        offset = reported_at - here
        if offset >= self._offset[0] or here - self._offset[1] > CLOCK_TRUSTED_S:
            self._offset = (offset, here)
        self._reported_at = max(self._reported_at, reported_at)

    def _checked_at(self) -> float:
        """Return the time for which "up" is evaluated, by the database's clock.

        It is the current time. While no messages arrive, missing reports say nothing about the hosts, and the last
        evaluation stays valid.
        """
        return min(self._clock() + self._offset[0], self._reported_at + self._down_time / 3)

    def _silent_since(self) -> float:
        """Return the limit of last reports: hosts that have not reported since then are down."""
        limit = self._checked_at() - self._down_time
        excused = self._clock() + self._offset[0] < self._excuse.until
        return min(limit, self._excuse.alive_since) if excused else limit

    # decisions of this scheduler

    def count(self, server_uuid: str, key: Key, need: Resources, requirements: HostRequirements | None = None) -> None:
        """Count a server's resources on its selected host until a state includes them, or for 10 s."""
        self.forget((server_uuid,))
        row = self._rows.get(key)
        if row is None:
            return
        fit = provider_fit.take(self._views[key], requirements) if key in self._views else None
        pending = Pending(key, need, row.state.generation, self._clock() + self._pending_s, fit)
        self._pending[server_uuid] = row.pending[server_uuid] = pending
        self._refresh((key,))

    def forget(self, server_uuids: Iterable[str]) -> None:
        """Stop counting these servers: the states include their claims now, or the servers no longer need any."""
        gone = [(uuid, self._pending.pop(uuid)) for uuid in server_uuids if uuid in self._pending]
        for uuid, pending in gone:
            self._rows[pending.key].pending.pop(uuid, None)
        self._refresh({pending.key for _, pending in gone})

    def learn_busy(self, busy: Mapping[str, int]) -> None:
        """Set the number of servers with heavy I/O on each host; hosts that are not named have none."""
        changed = [host for host in busy.keys() | self._busy.keys() if busy.get(host, 0) != self._busy.get(host, 0)]
        self._busy = busy
        self._refresh([(host, node) for host in changed for node in self._nodes.get(host, ())])

    def forget_doubtful(self) -> bool:
        """Forget decisions on hosts whose state changed since, because it may include them. Return whether there were
        any."""
        doubtful = [uuid for uuid, pending in self._pending.items()
                    if self._rows[pending.key].state.generation > pending.generation]
        self.forget(doubtful)
        return bool(doubtful)

    # reads

    def snapshot(self) -> Snapshot:
        """Return the current hosts."""
        now = self._clock()
        expired = []
        for uuid, pending in self._pending.items():
            if pending.expires_at > now:
                break  # they are in the order of creation
            expired.append(uuid)
        self.forget(expired)
        limit = self._silent_since()
        if now >= self._next_look or limit > self._seen_since:
            self._next_look = now + LOOK_EVERY_S
            self._refresh([key for key, row in self._rows.items() if self._views[key].up != (row.seen_at >= limit)])
            self._seen_since = min((row.seen_at for row in self._rows.values() if row.seen_at >= limit), default=limit)
        return Snapshot(tuple(self._views.values()), self._changes)

    def stamps(self) -> tuple[NodeStamp, ...]:
        """Return the stamps of the stored states, for the sweep. Partly reported states count as not reported."""
        return tuple(NodeStamp(host=row.state.host, node=row.state.node,
                               generation=-1 if row.partly else row.state.generation,
                               service_version=row.state.service_version,
                               aggregates_version=row.state.aggregates_version, provider_id=row.state.provider_id)
                     for row in self._rows.values())

    def _refresh(self, keys: Iterable[Key]) -> None:
        """Rebuild the views of these hosts."""
        limit = self._silent_since()
        for key in keys:
            row = self._rows.get(key)
            if row is None:
                continue
            needs = [pending.need for pending in row.pending.values()]
            load = Load(vcpus=sum(need.vcpus for need in needs), memory_mb=sum(need.memory_mb for need in needs),
                        disk_gb=sum(need.disk_gb for need in needs), servers=len(needs),
                        fits=tuple(one.fit for one in row.pending.values() if one.fit is not None),
                        busy=self._busy.get(key[0], 0))
            if row.seen_at >= limit:
                self._seen_since = min(self._seen_since, row.seen_at)
            self._views[key] = view = view_of(row.state, row.seen_at >= limit, load, self._views.get(key),
                                                   self._aggregates)
            self._changes.note(key, view)


def _place(state: HostState) -> AggregateSettings:
    return AggregateSettings(state.zone, state.aggregate_metadata, state.aggregate_uuids)


def merged_state(old: HostState, new: HostState, partly: bool = False) -> HostState:
    """Return the newer one of each part, or ``old`` itself if nothing is newer. A newer provider is another host of
    that name.

    ``partly``: only the amounts of ``old``'s generation are known, so the same generation may contain more.
    """
    if new.provider_id != old.provider_id:
        return new if new.provider_id > old.provider_id else old
    newer = [stamp for stamp in PARTS if getattr(new, stamp) > getattr(old, stamp)]
    if partly and new.generation == old.generation:
        newer.append("generation")
    if len(newer) == len(PARTS):
        return new
    fields = {name: getattr(new, name) for stamp in newer for name in (stamp, *PARTS[stamp])}
    return msgspec.structs.replace(old, **fields) if fields else old


def _seconds(time_: datetime.datetime | None) -> float:
    """Return seconds since 1970 by the database's clock; minus infinity for never."""
    return NEVER if time_ is None else (time_ - _EPOCH).total_seconds()
