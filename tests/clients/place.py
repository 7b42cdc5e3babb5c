"""Where a judge runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """``folder``: the judge's own, where it is started and writes; ``venv``: has its programs; ``workers``: so many of
    its tests run side by side, where it can."""

    folder: Path
    venv: Path
    workers: int

    def of_worker(self, number: int) -> Place:
        """A folder in it for one of the workers."""
        return self._replace(folder=self.folder / str(number), workers=1)
