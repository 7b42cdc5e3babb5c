"""Events of what is no operation: told after the transaction that made it."""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nova import context
from nova.conductor.engine.announce.best_effort import facts, period, quietly, read, tell
from nova.conductor.engine.deps import Deps
from nova.db.server import notification_rows
from nova.db.sql.types import AnyColumn
from nova.model.base import utcnow
from nova.model.host.hosts import HypervisorDown
from nova.model.volumes import VolumeCounts
from nova.notifications.facts import Failure, States, UnreachedHypervisor, UsedVolume, Who
from nova.notifications.kinds import API, COMPUTE, SOURCES
from nova.notifications.message import Event

MOST_NAME, MOST_MESSAGE = 255, 2000  # characters of what a host says
Later = Callable[[], Any]  # what an event is about: asked only when it will be told


@quietly
def once(deps: Deps, name: str, subject: Later, phase: str = "") -> None:
    """Tell that something has happened to a resource. A subject that is None tells nothing."""
    found = subject()
    if found is not None:
        tell(deps, [_event(deps, name, phase, found)])


def _event(deps: Deps, name: str, phase: str, subject: AnyColumn) -> Event:
    """Services speak for themselves; all else is the API's."""
    if name.startswith("service."):
        source = subject.binary if subject.binary in SOURCES else COMPUTE
        return Event(name, phase, subject, subject.host, source=source, who=who())
    return Event(name, phase, subject, deps.notifier.options.host, who=who())


def who() -> Who:
    """Who asks, by the context."""
    return Who.of(context.current())


class CacheProgress:
    """How far the hosts of an aggregate are with images that they are to keep ready."""

    def __init__(self, deps: Deps, aggregate: AnyColumn, hosts: int) -> None:
        self.deps, self.aggregate, self.hosts = deps, aggregate, hosts
        self._done = itertools.count(1)

    def begun(self) -> None:
        """Before the first host is asked."""
        once(self.deps, "aggregate.cache_images", lambda: self.aggregate, "start")

    def host_done(self, host: str, cached: Sequence[str], failed: Sequence[str]) -> None:
        """One more host has the images, or has failed to get some."""
        index = next(self._done)
        once(self.deps, "aggregate.cache_images", lambda: types.SimpleNamespace(
            id=self.aggregate.id, uuid=self.aggregate.uuid, name=self.aggregate.name, host=host, images_cached=cached,
            images_failed=failed, index=index, total=self.hosts), "progress")

    def ended(self) -> None:
        """After the last host, whether it has the images or not."""
        once(self.deps, "aggregate.cache_images", lambda: self.aggregate, "end")


@quietly
def volume_usage(deps: Deps, host: str, counts: Sequence[VolumeCounts]) -> None:
    """Tell what the host's guests did with their volumes; nothing of a guest that is not there, or has no such
    volume."""
    with deps.cell.reading() as tx:
        rows = notification_rows.with_volumes(tx, host, [one.server_uuid for one in counts])
    now = utcnow()
    for one in counts:
        row = rows.get(one.server_uuid)
        if row is not None and one.volume_id in {device.volume_id for device in row.volumes or ()}:
            tell(deps, [Event("volume.usage", "", UsedVolume(row, one, now), host,
                              who=Who(user_id=row.user_id, project_id=row.project_id))])


@quietly
def hypervisor_down(deps: Deps, host: str, report: HypervisorDown) -> None:
    """Tell that the host cannot reach its hypervisor, in the host's own words, as many as a payload may have."""
    failure = Failure(report.exception[:MOST_NAME], report.message[:MOST_MESSAGE], report.module[:MOST_NAME],
                      report.function[:MOST_NAME])
    tell(deps, [Event("libvirt.connect", "error", UnreachedHypervisor(report.ip[:MOST_NAME], failure), host)])


@quietly
def server(deps: Deps, name: str, uuid: str, states: States | None = None, old_name: str | None = None) -> None:
    """Tell of a server that the API changed in one transaction: ``instance.lock``, ``instance.update`` ..."""
    found = read(deps, [uuid]).get(uuid)
    if found is None:
        return
    row, extra = found.row, {}
    if name == "instance.update":
        same = States(row.vm_state, row.vm_state, row.task_state, row.task_state)
        extra = {"states": states or same, "period": period(deps), "old_display_name": old_name}
    tell(deps, [Event(name, "", facts(deps, found, who(), extra=extra), deps.notifier.options.host, source=API)])


@contextlib.contextmanager
def turning(deps: Deps, host: str, uuids: Sequence[str]) -> Iterator[None]:
    """Tell which servers turn to another state by themselves within the block, as their host reports."""
    before: dict[str, str] = {}
    _look(deps, host, uuids, before)
    yield
    if before:
        _turned(deps, host, before)


@quietly
def _look(deps: Deps, host: str, uuids: Sequence[str], found: dict[str, str]) -> None:
    if deps.notifier.options.state_changes and uuids:
        with deps.cell.reading() as tx:
            found.update(notification_rows.idle_states(tx, host, uuids))


@quietly
def _turned(deps: Deps, host: str, before: dict[str, str]) -> None:
    with deps.cell.reading() as tx:
        after = notification_rows.idle_states(tx, host, list(before))
    changed = {uuid: state for uuid, state in after.items() if state != before[uuid]}
    found = read(deps, list(changed)) if changed else {}
    for uuid, one in found.items():
        extra = {"states": States(before[uuid], changed[uuid]), "period": period(deps)}
        tell(deps, [Event("instance.update", "", facts(deps, one, who(), extra=extra), host)])
