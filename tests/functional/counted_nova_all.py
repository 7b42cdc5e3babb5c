"""nova-all that tells how many objects it has: for SIGUSR1 it writes them, by type, into the file that its environment
names. Of types of our own, and of those that structures by server would have many of.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

COUNTS = "NOVA_TEST_COUNTS"
OTHERS = (re.Pattern, threading.Event, threading.Condition)


def _tell(_number: int, _frame: object) -> None:
    gc.collect()
    found = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in map(type, gc.get_objects())
                    if kind in OTHERS or str(kind.__module__).startswith("nova."))
    path = Path(os.environ[COUNTS])
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(found))
    fresh.replace(path)


if __name__ == "__main__":
    from nova.cmd import all as nova_all

    signal.signal(signal.SIGUSR1, _tell)
    sys.exit(nova_all.main())
