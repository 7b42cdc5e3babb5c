"""Workflows: literal lists of steps, each with its undo.

``nova.conductor.engine.runner`` runs them; the files of ``nova.conductor.registry`` consist only of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.db.server.states import Entry
from nova.db.sql.engine import Connection
from nova.model.server.states import ACTIONS, TaskState


class Step:
    """A step of a workflow. ``do`` and ``undo`` are idempotent; ``undo`` is safe if ``do`` never ran.

    ``pure`` steps change nothing outside: their intent is not written. ``within`` does the step's part in the cell
    database, in the same transaction that writes its intent, and returns the changes of the servers' rows. ``when``
    names an argument of the operation: if it is missing or false, the step is skipped. ``uses``: the only members of
    :class:`Deps` that the step gets. ``formerly``: its class's name in journals of older releases.
    """

    uses: ClassVar[tuple[str, ...]] = ()
    formerly: ClassVar[str] = ""
    task: TaskState | None = None
    event: str = ""  # its name in os-instance-actions; empty: not shown there
    when: str | None = None
    undo_event: ClassVar[str] = ""  # the undo's name there, if it has one
    pure: ClassVar[bool] = False
    ignores_errors: ClassVar[bool] = False  # its failure is only logged: it only cleans up after completed steps
    per_host: ClassVar[bool] = False  # after it, servers of different hosts continue separately
    repeats_on_bug: ClassVar[bool] = False  # after an unexpected error it may or may not be done: it is repeated

    def __init__(self, task: TaskState | None = None, *, event: str | None = None, when: str | None = None) -> None:
        self.task, self.when = task, when
        if event is not None:
            self.event = event

    def applies(self, op: Op) -> bool:
        """True if the step applies to this operation, by its ``when``."""
        return self.when is None or bool(op.entry.arguments.get(self.when))

    @property
    def name(self) -> str:
        """The class's name, which the journal stores: renaming a class orphans the operations at this step."""
        return type(self).__name__

    def is_called(self, name: str) -> bool:
        """True if a journal's name means this step, also in a journal of an older release."""
        return name in (self.name, self.formerly)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """Return the changes of the servers' rows; a :class:`PerServer` for a column whose values differ. The
        transaction may be repeated, so this may only change the database and use ``op.see``."""
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        """Return a result for each op, in their order. An exception is the result of all of them; DatabaseUnavailable
        and daemon.WorkflowNotYet park the operations, and the step runs again later."""
        return [{} for _ in ops]

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """Return the changes of the servers' rows before ``undo``, like ``within``."""
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Undo the effects of ``do``. An exception means that the undo is retried later."""

    @property
    def undoes(self) -> bool:
        """True if the step has an undo: a step without one is not written to the journal on the way back."""
        return type(self).undo is not Step.undo or type(self).undo_within is not Step.undo_within


@dataclasses.dataclass(frozen=True)
class Retry:
    """Retry after these errors: undo back to ``back_to`` and run from there, instead of failing."""

    back_to: Step
    on: tuple[type[errors.NovaError], ...]


#: Writes in the transaction that ends an operation (with its error, or None); returns more changes of the server's row,
#: which apply if it failed.
Closing = Callable[[Connection, Op, errors.NovaError | None], Mapping[str, object]]


class Workflow:
    """A named list of steps: a row of ``model.states.ACTIONS`` and the steps that carry it out.

    ``asks``: the struct of its operations' arguments. ``again_on``: a step that fails with these errors is repeated
    after a while, AGAIN times, before the operation fails.
    """

    def __init__(self, action: str, *steps: Step, asks: type[Arguments] = Arguments, retry: Retry | None = None,
                 again_on: tuple[type[errors.NovaError], ...] = (),
                 ending: Callable[[Sequence[Op]], Mapping[str, object]] | None = None,
                 closing: Closing | None = None) -> None:
        self.action, self.steps, self.asks = ACTIONS[action], steps, asks
        self.retry, self.again_on = retry, again_on
        self.ending = ending or (lambda ops: {})
        self.closing = closing or (lambda tx, op, error: {})

    def goes_back(self, error: errors.NovaError, position: int, op: Op) -> bool:
        """True if a failure at this position is retried on the next host."""
        if op.progress.committed:
            return False
        return self.retry is not None and isinstance(error, self.retry.on) and self.retry.back_to.applies(op) and \
            position > self.steps.index(self.retry.back_to)

    def position(self, name: str) -> int:
        """Return the index of the step of that name. Raises Bug if the workflow does not have it."""
        for index, step in enumerate(self.steps):
            if step.is_called(name):
                return index
        raise errors.Bug(f"the journal names a step '{name}' that '{self.action.name}' does not have")


def entries_of(ops: Sequence[Op]) -> list[Entry]:
    """Return the operations' journal rows, in their order."""
    return [op.entry for op in ops]


def uuids_of(ops: Sequence[Op]) -> list[str]:
    """Return the operations' servers, in their order."""
    return [op.uuid for op in ops]


def by_host(ops: Sequence[Op]) -> list[list[Op]]:
    """Group the operations by their selected host; operations without a host are one group."""
    groups: dict[str | None, list[Op]] = {}
    for op in ops:
        groups.setdefault(op.progress.host, []).append(op)
    return list(groups.values())


__all__ = ["Closing", "Retry", "Step", "Workflow", "by_host", "entries_of", "uuids_of"]
