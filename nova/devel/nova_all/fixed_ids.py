"""Reproducible ids: ``nova-all --seed``."""

from __future__ import annotations

import inspect
import random
import threading
import uuid


def plant(seed: str) -> None:
    """Derive all results of ``uuid.uuid4`` from ``seed``. Each calling function has its own sequence, so that
    concurrent work has no effect: the third server always has the same id."""
    sequences: dict[str, random.Random] = {}
    lock = threading.Lock()

    def uuid4() -> uuid.UUID:
        frame = inspect.currentframe()
        assert frame is not None and frame.f_back is not None
        code = frame.f_back.f_code
        place = f"{code.co_filename.rpartition('nova/')[2]} {code.co_qualname}"
        with lock:
            sequence = sequences.setdefault(place, random.Random(f"{seed} {place}"))
            return uuid.UUID(int=sequence.getrandbits(128), version=4)

    uuid.uuid4 = uuid4
    random.seed(seed)
