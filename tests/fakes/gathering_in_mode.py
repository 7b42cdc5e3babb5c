"""Share work among many callers in a process with native or green threads, and print ``ok``.

    python -m tests.fakes.gathering_in_mode eventlet|threads
"""

from __future__ import annotations

import os
import sys

CALLERS, CALLS = 40, 25


def main(mode: str) -> None:
    os.environ["NOVA_CONCURRENCY"] = mode
    from nova import concurrency

    assert concurrency.patch() == mode
    run()
    print("ok", flush=True)


def run() -> None:
    import threading
    import time

    from nova import errors
    from nova.gathering import Gathering

    executions: list[int] = []

    def act(items: list[int]) -> list[object]:
        executions.append(len(items))
        time.sleep(0.001)
        if any(item % 97 == 0 for item in items):
            raise RuntimeError("one of them fails")
        return [errors.Conflict(str(item)) if item % 10 == 0 else -item for item in items]
    gathering = Gathering("test", act, lambda error: False, patience_s=0.02)
    wrong: list[object] = []

    def caller(number: int) -> None:
        for call in range(1, CALLS + 1):
            item = number * CALLS + call
            try:
                right = gathering(item) == -item and item % 97 and item % 10
            except RuntimeError:
                right = item % 97 == 0
            except errors.Conflict as error:
                right = item % 10 == 0 and error.message == str(item)
            if not right:
                wrong.append(item)
    threads = [threading.Thread(target=caller, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    assert max(executions) > CALLERS / 4, executions
    assert not gathering._queues
    if os.environ["NOVA_CONCURRENCY"] == "eventlet":
        ready_threads_share()
        interrupted_leader_hands_over()


def ready_threads_share() -> None:
    """The first of many threads that are ready takes the others' items along."""
    import threading

    from nova.gathering import Gathering

    executions: list[int] = []

    def act(items: list[int]) -> list[int]:  # without a wait, so that none would share it by chance
        executions.append(len(items))
        return items
    gathering = Gathering("test", act, lambda error: True, most=CALLERS - 1)
    threads = [threading.Thread(target=gathering, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(executions) == CALLERS and len(executions) <= CALLERS / 4, executions
    assert max(executions) < CALLERS, executions


def interrupted_leader_hands_over() -> None:
    """Kill the first of some callers after each number of turns: the others are served in any case."""
    import eventlet

    from nova.gathering import TURNS, Gathering

    for turns in range(TURNS + 2):
        gathering: Gathering[int, int] = Gathering("test", lambda items: [-item for item in items], lambda error: True,
                                                   most=2)
        leader, *others = [eventlet.spawn(gathering, number) for number in range(4)]
        for _ in range(turns):
            eventlet.sleep(0)
        leader.kill()
        assert [other.wait() for other in others] == [-1, -2, -3] and not gathering._queues, turns


if __name__ == "__main__":
    main(sys.argv[1])
