"""Ids that are the same each time: ``nova-all --seed``."""

from __future__ import annotations

import inspect
import random
import threading
import uuid


def plant(seed: str) -> None:
    """From now on ``uuid.uuid4`` answers what ``seed`` says. Each function that asks has a sequence of its own, so that
    what runs beside changes nothing: the third server has the same id each time, whatever else happened before."""
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
