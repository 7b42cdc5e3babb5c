"""Operation history: the journal's record of when, where and with which result each step ran; and the same as spans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec

from nova import context, tracing
from nova.conductor.engine.operation import Op
from nova.conductor.engine.workflow import Step
from nova.model.base import Time, utcnow
from nova.model.server.actions import ActionEvent


def caller(ops: Sequence[Op], who: context.RequestContext) -> None:
    """Record the caller's span as the parent of the operations: another runner may continue them."""
    if tracing.valid(who.traceparent):
        for op in ops:
            op.note(traceparent=who.traceparent)


def step_begun(op: Op, step: Step) -> None:
    """Record that the step starts; written with its intent."""
    event = ActionEvent(event=step.event, started_at=utcnow(), step=step.name, attempt=op.entry.attempt,
                        host=op.progress.host if step.event.startswith("compute") else None)
    before = op.entry.history
    if len(before) > 1 and all(one.step == step.name and one.finished_at is None for one in before[-2:]):
        before = before[:-1]  # a step that waits is started repeatedly until it is done
    op.change(history=(*before, event))


@contextlib.contextmanager
def doing(ops: Sequence[Op], step: Step) -> Iterator[None]:
    """Set the log context, and the parent span of calls to other services, while the step runs."""
    first = ops[0]
    with (context.doing(action=first.entry.action, step=step.name),
          tracing.below(_place(first, first.entry.history[-1]))):
        yield


def step_ended(op: Op, result: str, details: str | None = None) -> None:
    """Record that the last started step has ended; written with the next line of the journal."""
    if not op.entry.history:
        return
    *before, last = op.entry.history
    now = utcnow()
    last = msgspec.structs.replace(
        last, finished_at=now, result=result, details=details,
        traceback=op.progress.traceback if result == "Error" else None,
        host=op.progress.host or last.host, duration_ms=int((now - last.started_at).total_seconds() * 1000))
    op.change(history=(*before, last))
    _export(op, last)


def step_undone(op: Op, step: Step, begun: Time) -> None:
    """Record a step's undo, from ``begun`` to now."""
    event = ActionEvent(event=step.undo_event, started_at=begun, finished_at=utcnow(), result="Success",
                        step=f"{step.name}.undo", attempt=op.entry.attempt, host=op.progress.host)
    op.change(history=(*op.entry.history, event))
    _export(op, event)


def ended(op: Op, outcome: str) -> None:
    """Export the whole operation's span: success, error or overtaken."""
    began = op.entry.history[0].started_at if op.entry.history else utcnow()
    failure = "" if outcome == "success" else op.error.code if op.error else outcome
    tracing.note(tracing.Ended(op.entry.action, _parent(op), _whole(op).span, began, utcnow(), failure),
                 **{**_facts(op), "nova.host": op.progress.host, "nova.outcome": outcome})


def facts(op: Op) -> dict[str, object]:
    """Return the extra fields of a log line about the operation's end."""
    return {"server": op.uuid, "action": op.entry.action, "duration_ms": int(1000 * op.age_s)}


def _export(op: Op, event: ActionEvent) -> None:
    assert event.finished_at is not None
    failure = (event.details or "failed")[:200] if event.result == "Error" else ""
    tracing.note(tracing.Ended(event.step, _whole(op), _place(op, event).span, event.started_at, event.finished_at,
                               failure), **{**_facts(op), "nova.host": event.host, "nova.attempt": event.attempt})


def _facts(op: Op) -> dict[str, str | int | None]:
    return {"nova.server": op.uuid, "nova.request_id": op.entry.request_id, "nova.action": op.entry.action}


def _parent(op: Op) -> tracing.Place:
    return tracing.place_of(context.RequestContext(request_id=op.entry.request_id,
                                                   traceparent=op.progress.traceparent))


def _whole(op: Op) -> tracing.Place:
    return tracing.Place(_parent(op).trace, tracing.span_of("operation", op.entry.id))


def _place(op: Op, event: ActionEvent) -> tracing.Place:
    return tracing.Place(_parent(op).trace,
                         tracing.span_of("operation", op.entry.id, event.step, event.attempt, event.started_at))
