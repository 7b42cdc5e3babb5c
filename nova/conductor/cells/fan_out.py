"""Questions to all cells, side by side. A cell that does not answer costs a bounded number of threads, and no other
cell's time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from nova import errors
from nova.conductor.cells.gates import SLOW_S, Gate
from nova.conductor.engine.deps import Deps
from nova.db.sql.engine import DatabaseUnavailable

T = TypeVar("T")


class CellAnswer(NamedTuple, Generic[T]):
    """A cell's answer."""

    cell: Deps
    value: T


class Answers(NamedTuple, Generic[T]):
    """The answers of the cells, in the cells' order; ``away``: the cells that do not answer, with the error."""

    found: list[CellAnswer[T]]
    away: list[CellAnswer[errors.Unavailable]]

    def all(self) -> list[CellAnswer[T]]:
        """Return the answers if every cell has answered. Raises the error of a cell that has not."""
        if self.away:
            raise self.away[0].value
        return self.found

    def values(self) -> list[T]:
        """Return the answers alone. Raises the error of a cell that has not answered."""
        return [answer.value for answer in self.all()]


class PerCell(Generic[T]):
    """An object for each live cell, made at its first use, and again for a cell that was replaced."""

    def __init__(self, make: Callable[[Deps], T]) -> None:
        self._make = make
        self._made: dict[str, CellAnswer[T]] = {}
        self._lock = threading.Lock()

    def __call__(self, cell: Deps) -> T:
        with self._lock:
            kept = self._made.get(cell.cell_uuid)
            if kept is None or kept.cell is not cell:
                kept = self._made[cell.cell_uuid] = CellAnswer(cell, self._make(cell))
            return kept.value


class LiveCellsOfFanOut(Protocol):
    """The part of :class:`nova.conductor.cells.live_cells.LiveCells` that questions need."""

    entry: Deps

    @property
    def several(self) -> bool:
        """Return whether the cloud has more than one cell."""

    def all(self) -> Sequence[Deps]:
        """Return every cell."""


class FanOut:
    """Calls on the live cells. ``answers_s``: the time after which a cell counts as away."""

    def __init__(self, cells: LiveCellsOfFanOut, answers_s: float = SLOW_S) -> None:
        self._cells, self._answers_s = cells, answers_s
        self._gates = PerCell(lambda cell: Gate(cell, lambda: any(one is cell for one in cells.all())))

    def turn(self, cell: Deps) -> contextlib.AbstractContextManager[None]:
        """Count a call on one cell. Raises cell.Busy if the cell is away, or too many calls wait for it."""
        return self._gates(cell).turn()

    def ask(self, question: Callable[[Deps], T], among: Sequence[Deps] | None = None) -> Answers[T]:
        """Return the answers of all cells, or of those ``among`` them, each of which is asked in a thread. Raises other
        errors than Unavailable from a cell."""
        if not self._cells.several:
            return Answers([CellAnswer(self._cells.entry, question(self._cells.entry))], [])
        values: dict[str, T] = {}

        def note(cell: Deps) -> None:
            with self.turn(cell):
                values[cell.cell_uuid] = question(cell)
        asked = [(cell, self._submitted(cell, note)) for cell in (self._cells.all() if among is None else among)]
        concurrent.futures.wait([future for _cell, future in asked if future is not None], self._answers_s)
        answers: Answers[T] = Answers([], [])
        for cell, future in asked:
            if future is None or not future.done():
                if future is not None and not future.cancel():
                    self._gates(cell).suspect(late=future)
                answers.away.append(CellAnswer(cell, errors.cell.Busy(cell=cell.cell_uuid)))
            elif isinstance(error := future.exception(), (DatabaseUnavailable, errors.cell.Busy)):
                answers.away.append(CellAnswer(cell, error))
            else:
                future.result()  # raises the error of a failed question
                answers.found.append(CellAnswer(cell, values[cell.cell_uuid]))
        return answers

    def _submitted(self, cell: Deps, question: Callable[[Deps], None]) -> concurrent.futures.Future[object] | None:
        """Begin to ask a cell. Return None if it is away."""
        gate = self._gates(cell)
        if gate.away:
            return None
        return gate.pool.submit(functools.partial(contextvars.copy_context().run, question, cell))
