"""nova-all's share of the C library's memory."""

from __future__ import annotations

import subprocess
import sys

#: Threads that each hold memory of the C library's; then the number of its arenas, as it tells itself.
SCRIPT = """
import ctypes, sys, threading
from nova.devel.nova_all import memory
assert memory.few_arenas()
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
from nova.devel.nova_all import memory
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
assert memory.trim()
print(before - resident())
"""


def test_memory_when_most_of_it_was_freed_then_it_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 20_000_000


def test_arenas_when_few_were_asked_for_then_many_threads_share_them() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert 1 <= done.stdout.count("<heap nr=") <= 2
