"""Memory that workers share, and that a start and a burst leave behind."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from nova import memory

#: Threads that each hold memory of the C library's; then the number of its arenas, as it tells itself.
SCRIPT = """
import ctypes, sys, threading
from nova import memory
memory.begin_start()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
all_hold = threading.Barrier(17)
def hold():
    libc.malloc(1000)
    all_hold.wait()
    all_hold.wait()
for _ in range(16):
    threading.Thread(target=hold, daemon=True).start()
all_hold.wait()
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""

#: Many small pieces, of which every hundredth stays; then what the process has before and after.
FREED = """
import ctypes
from nova import memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
pieces = [libc.malloc(4000) for _ in range(10_000)]
for piece in pieces:
    ctypes.memset(ctypes.c_void_p(piece), 1, 4000)
for number, piece in enumerate(pieces):
    if number % 100:
        libc.free(ctypes.c_void_p(piece))
before = resident()
assert memory.release()
print(before - resident())
"""


def test_prepare_sharing_then_the_collector_leaves_what_exists_alone() -> None:
    try:
        memory.prepare_sharing()
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_start_then_garbage_is_searched_seldom_until_it_ends() -> None:
    memory.begin_start()
    assert gc.get_threshold()[0] == memory.START_OBJECTS
    memory.settle()
    assert gc.get_threshold() == memory.COLLECTIONS


@pytest.mark.usefixtures("collector")
def test_settle_when_repeated_then_the_collector_searches_new_objects_only_and_seldom() -> None:
    memory.settle()
    memory.settle()
    assert gc.get_freeze_count() > 1000 and gc.get_threshold() == memory.COLLECTIONS


@pytest.mark.usefixtures("collector")
def test_settle_when_the_c_library_cannot_then_the_rest_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())  # musl has neither mallopt nor malloc_trim
    memory.begin_start()
    memory.settle()
    assert not memory.release()
    assert gc.get_threshold() == memory.COLLECTIONS


def test_memory_when_most_of_it_was_freed_then_it_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 20_000_000


def test_arenas_when_few_were_asked_for_then_many_threads_share_them() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert 1 <= done.stdout.count("<heap nr=") <= 2
