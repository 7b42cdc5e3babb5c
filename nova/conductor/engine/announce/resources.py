"""Notifications that do not belong to an operation: sent after the transaction that caused them."""

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

MOST_NAME, MOST_MESSAGE = 255, 2000  # characters of texts that a host reports
Later = Callable[[], Any]  # an event's subject: evaluated only if it is sent


@quietly
def once(deps: Deps, name: str, subject: Later, phase: str = "") -> None:
    """Notify that something has happened to a resource. A subject of None sends nothing."""
    found = subject()
    if found is not None:
        tell(deps, [_event(deps, name, phase, found)])


def _event(deps: Deps, name: str, phase: str, subject: AnyColumn) -> Event:
    """Return the event; the source of a service's event is the service, of all others the API."""
    if name.startswith("service."):
        source = subject.binary if subject.binary in SOURCES else COMPUTE
        return Event(name, phase, subject, subject.host, source=source, who=who())
    return Event(name, phase, subject, deps.notifier.options.host, who=who())


def who() -> Who:
    """Return the user of the request, by the context."""
    return Who.of(context.current())


class CacheProgress:
    """Progress of an aggregate's hosts in caching images."""

    def __init__(self, deps: Deps, aggregate: AnyColumn, hosts: int) -> None:
        self.deps, self.aggregate, self.hosts = deps, aggregate, hosts
        self._done = itertools.count(1)

    def begun(self) -> None:
        """Notify the start, before the first host is asked."""
        once(self.deps, "aggregate.cache_images", lambda: self.aggregate, "start")

    def host_done(self, host: str, cached: Sequence[str], failed: Sequence[str]) -> None:
        """Notify that one more host has the images, or has failed to get some."""
        index = next(self._done)
        once(self.deps, "aggregate.cache_images", lambda: types.SimpleNamespace(
            id=self.aggregate.id, uuid=self.aggregate.uuid, name=self.aggregate.name, host=host, images_cached=cached,
            images_failed=failed, index=index, total=self.hosts), "progress")

    def ended(self) -> None:
        """Notify the end, after the last host, whether it has the images or not."""
        once(self.deps, "aggregate.cache_images", lambda: self.aggregate, "end")


@quietly
def volume_usage(deps: Deps, host: str, counts: Sequence[VolumeCounts]) -> None:
    """Notify the volume usage of the host's guests; counts of unknown guests and volumes are skipped."""
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
    """Notify that the host cannot reach its hypervisor, with its error, cut to the payload's limits."""
    failure = Failure(report.exception[:MOST_NAME], report.message[:MOST_MESSAGE], report.module[:MOST_NAME],
                      report.function[:MOST_NAME])
    tell(deps, [Event("libvirt.connect", "error", UnreachedHypervisor(report.ip[:MOST_NAME], failure), host)])


@quietly
def server(deps: Deps, name: str, uuid: str, states: States | None = None, old_name: str | None = None) -> None:
    """Notify that the API changed a server in one transaction: ``instance.lock``, ``instance.update`` ..."""
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
    """Notify the servers whose states change within the block because of their host's report."""
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
