"""Functions that race, in the context of their caller."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from nova import errors

END_S = 120  # distinguishes a deadlock from a busy machine


def together(acts: list[Callable[[], Any]]) -> list[Any]:
    """Call all functions at the same time, and return their results (or the NovaErrors that they raise)."""
    found: list[Any] = [None] * len(acts)
    barrier = threading.Barrier(len(acts))

    def run(number: int) -> None:
        barrier.wait()
        try:
            found[number] = acts[number]()
        except Exception as error:
            found[number] = error
    threads = [threading.Thread(target=contextvars.copy_context().run, args=(run, number))
               for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(END_S)
        assert not thread.is_alive()
    for one in found:
        if isinstance(one, Exception) and not isinstance(one, errors.NovaError):
            raise one
    return found
