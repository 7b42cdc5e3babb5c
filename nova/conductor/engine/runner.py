"""The runner of operations: every long operation is a row. A step may raise any exception: the runner makes a failure
of it.

For each step it writes the intent (and the result of the previous step) in one transaction of two statements, then
acts. A failure is undone backwards, starting with the failed step; if the workflow has a retry, it continues with the
next host. Operations of a dead runner are resumed by another from the journal.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from nova import concurrency, context, errors, failures, faults, metrics
from nova.conductor.engine import announce, operation_events
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.faults import fault_of, for_owner
from nova.conductor.engine.operation import Before, FailedWith, Op, Result, Secrets
from nova.conductor.engine.workflow import Step, Workflow, by_host, entries_of, uuids_of
from nova.db.server.server_row import ServerRow
from nova.db.server.states import Entry, PerServer, StateChange
from nova.db.sql.engine import Connection, DatabaseUnavailable
from nova.model.base import utcnow

T = TypeVar("T")

LOG = logging.getLogger(__name__)

AGAIN, AGAIN_S = 6, 2.0  # tries of a step before its operation fails, and seconds between them (growing)


class Runner:
    """Runner of operations: it runs them until they end, and resumes the operations of dead runners."""

    def __init__(self, deps: Deps, workflows: Iterable[Workflow], again_s: float = AGAIN_S) -> None:
        self.deps, self.journal = deps, deps.journal
        self.workflows = {workflow.action.name: workflow for workflow in workflows}
        self.announce = announce.Operations(deps)
        self._again_s = again_s
        self._active: set[int] = set()
        metrics.from_zero(metrics.OPERATIONS, *((name, outcome) for name in self.workflows
                                                for outcome in ("success", "error")))

    # -- entry points

    def start(self, entries: Sequence[Entry], servers: Mapping[str, object] | None = None,
              secrets: Secrets | None = None) -> None:
        """Run newly started operations of one request in the background. The user's token stays with the caller."""
        self._active.update(entry.id for entry in entries)
        who = context.current().without_token()
        concurrency.spawn(self._in_context, who, self._start, entries, servers, secrets or {}, name="workflow")

    def go_on(self, entries: Sequence[Entry], left: Op) -> None:
        """Continue operations of one request, all at one step, that another cell's runner hands over. ``left``: one of
        them as that runner held it, with the request's secrets."""
        if entries:
            self._active.update(entry.id for entry in entries)
            concurrency.spawn(self._in_context, context.current(), self._continue, entries, left.secrets,
                              name="workflow")

    @contextlib.contextmanager
    def holding(self, entry: Entry) -> Iterator[None]:
        """Keep a new entry from this process's own sweep, while the request still calls other services."""
        self._active.add(entry.id)
        with failures.on_failure(lambda: self._active.discard(entry.id), on=BaseException):
            yield

    def sweep(self) -> int:
        """Take over the operations of dead runners and the parked ones of this one; return how many."""
        taken = self.journal.take_over(self._active, self._able)
        for entry in taken:
            self._active.add(entry.id)
            metrics.OPERATIONS_RESUMED.labels(entry.action).inc()
            LOG.info("resuming '%s' at step %s (%s)", entry.action, entry.step, entry.direction,
                     extra={"server": entry.server_uuid})
            concurrency.spawn(self._in_context, context.internal(entry.request_id), self._continue, [entry], {},
                              name="workflow")
        return len(taken)

    def _able(self, entry: Entry) -> bool:
        """True if this release has the entry's action and step: during an upgrade a newer release may have started
        it."""
        workflow = self.workflows.get(entry.action)
        return workflow is not None and (not entry.step or any(step.is_called(entry.step) for step in workflow.steps))

    @property
    def running(self) -> int:
        """The number of operations that run in this process."""
        return len(self._active)

    def _in_context(self, who: context.RequestContext, function: Callable[..., None], *args: object) -> None:
        with context.entered(who):
            function(*args)

    def _start(self, entries: Sequence[Entry], servers: Mapping[str, ServerRow] | None, secrets: Secrets) -> None:
        workflow = self.workflows[entries[0].action]
        ops = self._guarded(entries, self._load, entries, servers, secrets)
        if ops:
            operation_events.caller(ops, context.current())
            self.announce.begun(workflow, ops)
            self._run(workflow, ops, 0)

    def _continue(self, entries: Sequence[Entry], secrets: Secrets) -> None:
        """Continue operations from the journal, all at one step and in one direction."""
        workflow, first = self.workflows[entries[0].action], entries[0]
        ops = self._guarded(entries, self._load, entries, None, secrets)
        position = workflow.position(first.step) if first.step else 0
        if ops and first.direction != "undo":
            self._run(workflow, ops, position)
            return
        for op in ops or ():
            fault = op.progress.fault or FailedWith()
            op.error = errors.from_wire(fault.kind, fault.code, fault.message, {})
            self._undo_steps(workflow, op, position)

    def _load(self, entries: Sequence[Entry], servers: Mapping[str, ServerRow] | None, secrets: Secrets
              ) -> list[Op]:
        rows = servers if servers is not None else self.journal.servers(entries)
        for entry in entries:
            if entry.server_uuid not in rows:
                self.journal.close_lost(entry)
                self._active.discard(entry.id)
        return [Op(entry, rows[entry.server_uuid], secrets) for entry in entries if entry.server_uuid in rows]

    # -- steps

    def _run(self, workflow: Workflow, ops: list[Op], position: int) -> None:
        held = list(ops)
        self._guarded(held, self._run_steps, workflow, held, position)

    def _run_steps(self, workflow: Workflow, ops: list[Op], position: int) -> None:
        """Run the steps from ``position``. ``ops`` keeps only the operations of this thread: no others may be parked
        with them."""
        while ops and position < len(workflow.steps):
            step = workflow.steps[position]
            if not any(step.applies(op) for op in ops):
                position += 1
                continue
            ops[:] = self._intend(workflow, step, position, ops)
            ops[:] = self._do(workflow, step, position, ops)
            position += 1
            if step.per_host and ops:
                ops[:], *others = by_host(ops)
                for group in others:
                    concurrency.spawn(self._in_context, context.current(), self._run, workflow, group, position,
                                      name="workflow")
        if ops:
            before = Before(ops)
            over = self._guarded_ops(ops, lambda live: self.journal.finish(
                uuids_of(live), lambda tx: self._success(tx, workflow, before.restored(live))))
            self.announce.finished(workflow, over)
            for op in over:
                self._ended(op, "success")
                LOG.info("'%s' succeeded after %.2f s", workflow.action.name, op.age_s,
                         extra={**operation_events.facts(op), "host_": op.progress.host})

    def _success(self, tx: Connection, workflow: Workflow, ops: Sequence[Op]) -> StateChange:
        """Close the operations; the changes of the servers' rows are the state table's, overridden by the workflow's
        ending."""
        for op in ops:
            workflow.closing(tx, op, None)
        result = {"vm_state": workflow.action.result.value} if workflow.action.result is not None else {}
        return StateChange(entries_of(ops), {**_unwritten(ops), **result, **workflow.ending(ops)})

    def _intend(self, workflow: Workflow, step: Step, position: int, ops: list[Op]) -> list[Op]:
        """Write the step's intent; return the ops that this runner still owns and whose ``within`` succeeded."""
        if step.pure:
            for op in ops:
                operation_events.step_begun(op, step)
            return ops
        for op in ops:
            operation_events.step_begun(op, step)
            op.change(step=step.name, direction="do")
        self.announce.intending(ops)
        before = Before(ops)

        def write(live: list[Op]) -> None:
            def work(tx: Connection) -> StateChange:
                task = {"task_state": step.task.value} if step.task else {}
                changes = {**task, **step.within(tx, self.deps.only(step.uses), before.restored(live))}
                return StateChange(entries_of(live), {**_unwritten(live), **changes})
            self.journal.advance(uuids_of(live), work)
            _written(live)
        try:
            written = self._guarded_ops(ops, write)
            self.announce.intended(workflow, step, written)
            return written
        except DatabaseUnavailable:
            raise  # parked: the journal is unchanged
        except errors.NovaError as error:
            failure = error
        except Exception as error:  # a bug in a step fails its operations, not the runner
            LOG.exception("step %s failed unexpectedly", step.name, extra={"server": ops[0].uuid})
            failure = errors.Bug(f"{step.name}: {type(error).__name__}")
        for op in ops:
            self._fail_one(workflow, op, position, failure)
        return []

    def _do(self, workflow: Workflow, step: Step, position: int, ops: list[Op]) -> list[Op]:
        if not ops:
            return ops
        self.announce.before_step(workflow, step, ops)
        faults.reached(workflow.action.name, step.name, "before")
        try:
            with operation_events.doing(ops, step):
                results: list[Result] = list(step.do(self.deps.only(step.uses), ops))
        except (DatabaseUnavailable, errors.daemon.WorkflowNotYet):
            raise  # parked, as above: no host or service failed, and waiting loses nothing
        except errors.NovaError as error:
            results = [error] * len(ops)
        except Exception as error:  # a bug in a step fails its operations, not the runner
            LOG.exception("step %s failed unexpectedly", step.name, extra={"server": ops[0].uuid})
            results = [errors.Bug(f"{step.name}: {type(error).__name__}")] * len(ops)
            for op in ops:
                op.note(traceback=traceback.format_exc(limit=20))
        faults.reached(workflow.action.name, step.name, "after")
        if step.ignores_errors:
            results = [_let_pass(step, op, result) for op, result in zip(ops, results, strict=True)]
        self.announce.after_step(workflow, step, ops, results)
        done = []
        for op, result in zip(ops, results, strict=True):
            if isinstance(result, errors.NovaError):
                self._fail_one(workflow, op, position, result)
                continue
            op.note(**result)
            operation_events.step_ended(op, "Success")
            done.append(op)
        return done

    # -- undo

    def _fail_one(self, workflow: Workflow, op: Op, position: int, error: errors.NovaError) -> None:
        """Start the undo of one op in the background; an overtaken op just stops."""
        if isinstance(error, errors.Overtaken):
            self._drop([op], error.message)
            return
        metrics.STEP_FAILURES.labels(op.entry.action, workflow.steps[position].name, error.kind).inc()
        LOG.warning("step %s of '%s' failed: %s", workflow.steps[position].name, workflow.action.name, error.message,
                    extra={"server": op.uuid, "host_": op.progress.host, "action": workflow.action.name,
                           "step": workflow.steps[position].name, "error_code": error.code})
        op.error = error
        operation_events.step_ended(op, "Error", error.message)
        op.note(fault=FailedWith(kind=error.kind, code=error.code, message=error.message,
                                 for_owner=for_owner(error, op)))
        unforeseen = type(error) is errors.Bug or isinstance(error, errors.daemon.DamagedRow)
        unclear = workflow.steps[position].repeats_on_bug and unforeseen
        here_again = op.progress.committed or unclear or (isinstance(error, workflow.again_on)
                                                 and not workflow.goes_back(error, position, op))
        if here_again and op.entry.attempt < AGAIN:
            concurrency.spawn(self._in_context, context.current(), self._again, workflow, op, position, name="again")
            return
        concurrency.spawn(self._in_context, context.current(), self._undo_steps, workflow, op, position, name="undo")

    def _again(self, workflow: Workflow, op: Op, position: int) -> None:
        concurrency.sleep(self._again_s * op.entry.attempt)
        op.change(attempt=op.entry.attempt + 1)
        self._run(workflow, [op], position)

    def _undo_steps(self, workflow: Workflow, op: Op, position: int) -> None:
        error = op.error or errors.Bug("interrupted")
        retry = workflow.retry
        again = workflow.goes_back(error, position, op)
        floor = workflow.steps.index(retry.back_to) if again and retry else 0
        for index in range(position, floor - 1, -1) if not op.progress.committed else ():
            if not self._undo(workflow.steps[index], op):
                return
        if again:
            op.change(attempt=op.entry.attempt + 1)
            self._run(workflow, [op], floor)
        else:
            self._guarded([op.entry], self._fail, workflow, op, error)

    def _undo(self, step: Step, op: Op) -> bool:
        """Undo a step; return False if another runner owns the op, or if it is parked for the next sweep."""
        if not (step.undoes and step.applies(op)):
            return True
        op.change(step=step.name, direction="undo")
        before = Before([op])

        def write(live: list[Op]) -> None:
            def work(tx: Connection) -> StateChange:
                changes = step.undo_within(tx, self.deps.only(step.uses), before.restored(live))
                return StateChange(entries_of(live), {**_unwritten(live), **changes})
            self.journal.advance(uuids_of(live), work)
            _written(live)

        begun = utcnow()

        def act() -> bool:
            if not self._guarded_ops([op], write):
                return False
            self.announce.before_undo(op.entry.action, step, op)
            faults.reached(op.entry.action, step.name, "undo")
            left: list[errors.NovaError] = []
            with failures.parked(left.append, on=errors.cell.Elsewhere):
                step.undo(self.deps.only(step.uses), [op])
            if left:
                self._drop([op], left[0].message)
                return False
            faults.reached(op.entry.action, step.name, "undone")
            self.announce.after_undo(op.entry.action, step, op)
            if step.undo_event:
                operation_events.step_undone(op, step, begun)
            return True
        return bool(self._guarded([op.entry], act))

    def _fail(self, workflow: Workflow, op: Op, error: errors.NovaError) -> None:
        failed = workflow.action.failed
        changes: dict[str, Any] = {**_unwritten([op]), "fault": fault_of(error, op)}
        if failed is not None:
            changes["vm_state"] = failed.value
        if not self._guarded_ops([op], lambda _live: self.journal.fail(
                op.entry, error.message, lambda tx: {**changes, **workflow.closing(tx, op, error)})):
            return
        self.announce.failed(workflow, op, error)
        self._ended(op, "error")
        LOG.error("'%s' failed after %.2f s: %s", workflow.action.name, op.age_s, error.message,
                  extra={**operation_events.facts(op), "error_code": error.code})

    # -- failures of the journal itself

    def _guarded_ops(self, ops: list[Op], write: Callable[[list[Op]], None]) -> list[Op]:
        """Write for all ops; overtaken ops are dropped and the rest is written."""
        live = ops
        while live:
            try:
                write(live)
                return live
            except errors.Overtaken:
                mine = self.journal.still_mine([op.entry for op in live])
                lost = [op for op in live if op.uuid not in mine]
                if not lost:
                    self._drop(live, "this runner's lease has ended, so another runner continues")
                    return []
                self._drop(lost, "a newer operation owns the server")
                live = [op for op in live if op.uuid in mine]
        return []

    def _guarded(self, held: Sequence[Op | Entry], act: Callable[..., T], *args: object) -> T | None:
        """Call ``act``; a failure in it (mostly an unavailable database) parks the held operations for the next
        sweep."""
        try:
            return act(*args)
        except errors.Overtaken:
            reason = "a newer operation owns the server"
        except Exception as error:  # the journal has the operations: another runner continues them
            reason = f"cause: {error}"
            if not isinstance(error, errors.NovaError):
                LOG.exception("the runner failed unexpectedly")
        for entry in [one.entry if isinstance(one, Op) else one for one in held]:
            LOG.warning("operation '%s' parked for retry: %s", entry.action, reason,
                        extra={"server": entry.server_uuid})
            self._active.discard(entry.id)
        return None

    def _drop(self, ops: Sequence[Op], why: str) -> None:
        for op in ops:
            LOG.info("operation '%s' stopped: %s", op.entry.action, why, extra={"server": op.uuid})
            self._ended(op, "overtaken")

    def _ended(self, op: Op, outcome: str) -> None:
        self._active.discard(op.entry.id)
        metrics.OPERATIONS.labels(op.entry.action, outcome).observe(op.age_s)
        operation_events.ended(op, outcome)


def _unwritten(ops: Sequence[Op]) -> dict[str, object]:
    """Return the columns that steps set since the journal's last write, as changes of the servers' rows."""
    changes: dict[str, PerServer] = {}
    for op in ops:
        for name, value in op.unwritten.items():
            changes.setdefault(name, PerServer())[op.uuid] = value
    return dict(changes)


def _written(ops: Sequence[Op]) -> None:
    for op in ops:
        op.unwritten.clear()


def _let_pass(step: Step, op: Op, result: Result) -> Result:
    """Return the result of a step whose failure is only logged."""
    if not isinstance(result, errors.NovaError) or isinstance(result, errors.Overtaken):
        return result
    LOG.warning("step %s failed; the operation continues: %s", step.name, result.message, extra={"server": op.uuid})
    return {}

