"""nova-all's share of the C library's memory."""

from __future__ import annotations

import subprocess
import sys

#: Threads that each hold memory of the C library's; then the number of its arenas, as it tells itself.
SCRIPT = """
import ctypes, sys, threading
from nova.cmd.whole import memory
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


def test_arenas_when_few_were_asked_for_then_many_threads_share_them() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    assert 1 <= done.stdout.count("<heap nr=") <= 2
