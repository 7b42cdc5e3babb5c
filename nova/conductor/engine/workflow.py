"""What a workflow is: a literal list of steps, each with its undo.

``nova.conductor.engine.runner`` runs them; the files of ``nova.conductor.registry`` are made of nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.db.server.states import Entry
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn
from nova.model.server.states import ACTIONS, TaskState


class Step:
    """One part of a workflow. ``do`` and ``undo`` are idempotent; ``undo`` is safe when ``do`` never ran.

    ``pure`` steps touch nothing outside: their intent is not written. ``within`` does the step's part in the cell
    database, in the very transaction that writes its intent, and gives the changes of the servers' rows.
    ``when`` names an argument of the operation: without it (or where it is false) the step is left out.
    ``uses``: the members of :class:`Deps` that it is handed, and no more. ``formerly``: its class's name in journals of
    older releases.
    """

    uses: ClassVar[tuple[str, ...]] = ()
    formerly: ClassVar[str] = ""
    task: TaskState | None = None
    event: str = ""  # its name in os-instance-actions; empty: it is not shown there
    when: str | None = None
    undo_event: ClassVar[str] = ""  # the undo's, where it has one
    pure: ClassVar[bool] = False
    lenient: ClassVar[bool] = False  # its failure is logged and no more: it only tidies up after what is done
    per_host: ClassVar[bool] = False  # after it, servers of different hosts go on apart
    decisive: ClassVar[bool] = False  # an error that nobody foresaw says not whether it is done: it is done again

    def __init__(self, task: TaskState | None = None, *, event: str | None = None, when: str | None = None) -> None:
        self.task, self.when = task, when
        if event is not None:
            self.event = event

    def applies(self, op: Op) -> bool:
        """Whether the step is for this operation, by its ``when``."""
        return self.when is None or bool(op.entry.arguments.get(self.when))

    @property
    def name(self) -> str:
        """Its class's, by which the journal knows it: renaming a class orphans operations that stand there."""
        return type(self).__name__

    def is_called(self, name: str) -> bool:
        """Whether a journal means this step, be it one that an older release wrote."""
        return name in (self.name, self.formerly)

    def within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, AnyColumn]:
        """The changes of the servers' rows; a :class:`PerServer` for a column whose values differ. The transaction may
        be done again: nothing but the database and ``op.see`` is touched."""
        return {}

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        """One result an op, in their order. What it raises is the result of all of them; DatabaseAway and
        daemon.WorkflowNotYet put the operations aside, and the step is done again later."""
        return [{} for _ in ops]

    def undo_within(self, tx: Connection, deps: Deps, ops: Sequence[Op]) -> Mapping[str, object]:
        """As ``within``, in the transaction before ``undo``."""
        return {}

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """Take back what ``do`` did. Raising means "try again later"."""

    @property
    def undoes(self) -> bool:
        """Whether there is anything to undo: a step without leaves no line in the journal on the way back."""
        return type(self).undo is not Step.undo or type(self).undo_within is not Step.undo_within


@dataclasses.dataclass(frozen=True)
class Retry:
    """On these errors go back to just before ``back_to`` (undoing what stands below it) instead of giving up."""

    back_to: Step
    on: tuple[type[errors.NovaError], ...]


#: What is written in the very transaction that ends an operation (with why it failed, or None); more changes of the
#: server's row, which count when it failed.
Closing = Callable[[Connection, Op, errors.NovaError | None], Mapping[str, Any]]


class Workflow:
    """A named list of steps: a row of ``model.states.ACTIONS`` and what it takes.

    ``asks``: what its operations are begun with. ``again_on``: a step that fails so is done again after a while, AGAIN
    times, before the operation gives up.
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
        """Whether a failure at this position is one to go back on, to the next host."""
        if op.progress.committed:
            return False
        return self.retry is not None and isinstance(error, self.retry.on) and self.retry.back_to.applies(op) and \
            position > self.steps.index(self.retry.back_to)

    def position(self, name: str) -> int:
        """The index of the step of that name. Bug: the workflow has none."""
        for index, step in enumerate(self.steps):
            if step.is_called(name):
                return index
        raise errors.Bug(f"the journal names a step '{name}' that '{self.action.name}' does not have")


def entries_of(ops: Sequence[Op]) -> list[Entry]:
    """Their rows of the journal, in their order."""
    return [op.entry for op in ops]


def by_host(ops: Sequence[Op]) -> list[list[Op]]:
    """Those of one chosen host together; those without one, too."""
    groups: dict[str | None, list[Op]] = {}
    for op in ops:
        groups.setdefault(op.progress.host, []).append(op)
    return list(groups.values())


__all__ = ["Closing", "Retry", "Step", "Workflow", "by_host", "entries_of"]
