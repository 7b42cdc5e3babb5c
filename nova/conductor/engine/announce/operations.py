"""Notifications of operations: the runner calls this after each commit. Tables map actions to their events.

An operation's start is sent one time, right after its first intent is committed, and the journal records it with the
same write. A retry on another host, a resume or a takeover does not send it again. Events that a process had not sent
when it was killed are lost: events are delivered at most once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nova import decoding, errors
from nova.conductor.engine.announce.best_effort import facts, period, quietly, read, tell
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.engine.workflow import Step, Workflow
from nova.db.server.notification_rows import Announced
from nova.model.flavor.flavors import Flavor
from nova.notifications.facts import Failure, NotifiedServer, SpecFacts, States, TaskFacts, Who, shown
from nova.notifications.kinds import ACTIONS, API, COMPUTE, KINDS, TASKS, TYPES, ActionNotification, event_type
from nova.notifications.message import Event

NEVER_PLACED = ("scheduler.no_valid_host", "scheduler.hosts_exhausted")  # error codes of the conductor's task
SCHEDULER_S = "scheduler."
Maker = Callable[[Op, Announced], Sequence[Event]]


class Operations:
    """The notifications that the runner sends. While notifications are off, each call only checks one attribute."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    # -- called by the runner

    @quietly
    def begun(self, workflow: Workflow, ops: Sequence[Op]) -> None:
        """Notify newly started operations, with their rows as just read."""
        for op in ops:
            op.states = (op.server.vm_state, None)
        if workflow.action.task is not None:
            self._moved(ops, workflow.action.task.value)

    @quietly
    def intending(self, ops: Sequence[Op]) -> None:
        """Mark the start as sent in the journal, with the operation's first intent."""
        for op in ops:
            if not op.progress.announced:
                op.note(announced=True)
                op.unannounced = True

    @quietly
    def intended(self, workflow: Workflow, step: Step, ops: Sequence[Op]) -> None:
        """Notify after an intent is committed, and with it the results of the steps before."""
        self._pay(ops)
        first = [op for op in ops if op.unannounced]
        if first:
            self._start(workflow, first)
        if step.task is not None:
            self._moved(ops, step.task.value)

    @quietly
    def before_step(self, workflow: Workflow, step: Step, ops: Sequence[Op]) -> None:
        """Notify that a step starts. A step that runs again for the same operation (a resume, a retry) is not notified
        again."""
        for notification in _parts(workflow, step):
            fresh = [op for op in ops if sum(one.step == step.name for one in op.entry.history) == 1]
            self._part(notification, "start", fresh)

    @quietly
    def after_step(self, workflow: Workflow, step: Step, ops: Sequence[Op], results: Sequence[Result]) -> None:
        """Queue the end of a step, with one result per op. It is sent after the next write: until then the step may run
        again."""
        for notification in _parts(workflow, step):
            done = [op for op, result in zip(ops, results, strict=True) if not isinstance(result, errors.NovaError)]
            asked = notification.name.startswith(SCHEDULER_S)
            for op in done[:1] if asked else done:
                op.due = (*op.due, self._asked(notification, "end", done) if asked else notification)

    @quietly
    def before_undo(self, action: str, step: Step, op: Op) -> None:
        """Notify that the undo of a step starts, if the undo has its own event."""
        for notification in _undo(action, step):
            self._part(notification, "start", [op])

    @quietly
    def after_undo(self, action: str, step: Step, op: Op) -> None:
        """Notify that a step was undone, if the undo has its own event."""
        for notification in _undo(action, step):
            self._part(notification, "end", [op])

    @quietly
    def finished(self, workflow: Workflow, ops: Sequence[Op]) -> None:
        """Notify operations that succeeded, after the commit."""
        self._pay(ops)
        unannounced = [op for op in ops if op.unannounced]  # all of its steps were pure
        if unannounced:
            self._start(workflow, unannounced)
        result = workflow.action.result
        self._over(ops, result.value if result else None, lambda op, found: self._whole(workflow, "end", op, found))

    @quietly
    def failed(self, workflow: Workflow, op: Op, error: errors.NovaError) -> None:
        """Notify a failed operation, after the commit. If it never reached a host, the conductor's task has failed, not
        a host's."""
        self._pay([op])
        failure = Failure.of(error, where=op.entry.step, trace=op.progress.traceback or "")
        result = workflow.action.failed
        self._over([op], result.value if result else None,
                   lambda op, found: (*self._error(workflow, op, found, failure), *self._task(workflow, op, failure,
                                                                                              error)))

    # -- building the events

    def _start(self, workflow: Workflow, ops: Sequence[Op]) -> None:
        for op in ops:
            op.unannounced = False
        self._tell(ops, lambda op, found: self._whole(workflow, "start", op, found))

    def _error(self, workflow: Workflow, op: Op, found: Announced, failure: Failure) -> Sequence[Event]:
        if workflow.action.name in TASKS and not _started(op):
            return ()
        return self._whole(workflow, "error", op, found, failure)

    def _whole(self, workflow: Workflow, phase: str, op: Op, found: Announced, failure: Failure | None = None
               ) -> Sequence[Event]:
        return [self._event(notification, phase, op, found, failure)
                for notification in ACTIONS.get(workflow.action.name, ())
                if not notification.step and _has(notification, phase)]

    def _part(self, notification: ActionNotification, phase: str, ops: Sequence[Op]) -> None:
        """Notify a step. A server without a host has no events of hosts."""
        if notification.name.startswith(SCHEDULER_S):
            tell(self.deps, [self._asked(notification, phase, ops)] if ops else [])
            return
        placed = [op for op in ops if _host(op)]
        phase = phase if _has(notification, phase) or phase == "start" else ""  # sent one time: after it has happened
        if placed and _has(notification, phase):
            self._tell(placed, lambda op, found: [self._event(notification, phase, op, found, None)])

    def _asked(self, notification: ActionNotification, phase: str, ops: Sequence[Op]) -> Event:
        """Return the event of one request to the scheduler, for all of these ops."""
        return Event(notification.name, phase, _spec(ops[0], len(ops)), self.deps.notifier.options.host,
                     who=_who(ops[0]))

    def _pay(self, ops: Sequence[Op]) -> None:
        """Send the queued end events."""
        tell(self.deps, [one for op in ops for one in op.due if isinstance(one, Event)])
        for notification in dict.fromkeys(one for op in ops for one in op.due if isinstance(one, ActionNotification)):
            self._part(notification, "end", [op for op in ops if notification in op.due])
        for op in ops:
            op.due = ()

    def _task(self, workflow: Workflow, op: Op, failure: Failure, error: errors.NovaError) -> Sequence[Event]:
        name = TASKS.get(workflow.action.name)
        if name is None or (_started(op) and error.code not in NEVER_PLACED):
            return ()
        state = workflow.action.failed.value if workflow.action.failed else op.server.vm_state
        return [Event(name, "error", TaskFacts(_spec(op), state, failure, name.partition(".")[2]),
                      self.deps.notifier.options.host, who=_who(op))]

    def _event(self, notification: ActionNotification, phase: str, op: Op, found: Announced,
               failure: Failure | None) -> Event:
        known = facts(self.deps, found, _who(op), failure=failure, extra=_extra(op))
        return self._by(op, Event(notification.name, phase, known, ""), notification.of_source)

    def _by(self, op: Op, event: Event, of_source: bool = False) -> Event:
        """Return the event, published for the operation's host, or for the source of its move; without a host, for the
        API. An event of the API never belongs to a compute host."""
        kind = KINDS[event.name]
        host = None if kind.source == API else (op.entry.arguments.get("source") if of_source else None) or _host(op)
        source = "" if host or kind.source != COMPUTE else API
        return Event(event.name, event.phase, event.subject, host or self.deps.notifier.options.host, source, _who(op))

    # -- states

    def _over(self, ops: Sequence[Op], vm_state: str | None, make: Maker) -> None:
        """Send the last events of operations: one read serves both the state changes and ``make``."""
        changed = self._changes(ops, vm_state, None)
        self._tell(ops, lambda op, found: (*self._update(op, found, changed.get(op.uuid)), *make(op, found)))

    def _moved(self, ops: Sequence[Op], task_state: str) -> None:
        changed = self._changes(ops, None, task_state)
        if changed:
            self._tell([op for op in ops if op.uuid in changed],
                       lambda op, found: self._update(op, found, changed[op.uuid]))

    def _changes(self, ops: Sequence[Op], vm_state: str | None, task_state: str | None) -> dict[str, States]:
        """Return the changes to notify, by ``notify_on_state_change``; ``vm_state`` None: unchanged."""
        wanted, changes = self.deps.notifier.options.state_changes, {}
        for op in ops:
            old, old_task = op.states or (op.server.vm_state, op.server.task_state)
            op.states = (vm_state or old, task_state)
            change = States(old, vm_state or old, old_task, task_state)
            if wanted and (change.state != old or (wanted == "vm_and_task_state" and task_state != old_task)):
                changes[op.uuid] = change
        return changes

    def _update(self, op: Op, found: Announced, change: States | None) -> Sequence[Event]:
        if change is None:
            return ()
        extra = {"states": change, "period": period(self.deps)}
        known: NotifiedServer = facts(self.deps, found, _who(op), extra=extra)
        return [self._by(op, Event("instance.update", "", known, ""))]

    def _tell(self, ops: Sequence[Op], make: Maker) -> None:
        found = read(self.deps, [op.uuid for op in ops])
        tell(self.deps, [event for op in ops if op.uuid in found for event in make(op, found[op.uuid])])


def _parts(workflow: Workflow, step: Step) -> list[ActionNotification]:
    return [notification for notification in ACTIONS.get(workflow.action.name, ()) if notification.step == step.name]


def _undo(action: str, step: Step) -> list[ActionNotification]:
    return [notification for notification in ACTIONS.get(action, ()) if notification.step == f"{step.name}.undo"]


def _has(notification: ActionNotification, phase: str) -> bool:
    return event_type(notification.name, phase) in TYPES


def _started(op: Op) -> bool:
    """True if the operation's start was sent."""
    return bool(op.progress.announced) and not op.unannounced


def _spec(op: Op, count: int = 1) -> SpecFacts:
    """Return the scheduler request of the op, or of ``count`` ops of its request."""
    return SpecFacts(shown(op.server), count, op.entry.arguments, op.progress.tried)


def _host(op: Op) -> str | None:
    host = op.progress.host or op.server.host
    return str(host) if host else None


def _who(op: Op) -> Who:
    """Return the user who requested the operation, independent of the process that runs it."""
    return Who(op.entry.request_id, op.entry.user_id, op.entry.project_id)


def _extra(op: Op) -> Mapping[str, object]:
    """Return the additions of an action's arguments and results to its payload, by the payload's names."""
    names = ("rescue_image_ref", "snapshot_image_id", "volume_id", "old_volume_id", "new_volume_id", "share_id",
             "new_flavor")
    both = op.entry.arguments
    found = {name: both[name] for name in names if name in both}
    if "old_flavor" in both:  # a move, with or without another flavor
        found["new_flavor"] = decoding.convert(both["flavor"], Flavor) if "flavor" in both else op.server.flavor
    return found
