"""What a PUT of a small object costs in a project that has many objects already, with quotas on.

    bin/test bench-objects [--objects 10000] [--puts 200] [--threads 4]

The store alone, without HTTP and signatures. Each PUT waits for the disk twice, as in production. ``alone``: one PUT
after the other, replacing one object; ``beside``: the same while other threads do so for a project that has but one.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from nova.legacy.objectstore.store import ObjectRecord, ObjectStore, PutObject, StoreLimits

LARGE, SMALL, BUCKET = "many", "few", "bucket"
DATA = b"x" * 4096
LIMITS = StoreLimits(10 * 2 ** 30, 100_000)


def fill(store: ObjectStore, count: int) -> None:
    """Make files of objects, as a store writes them, without waiting for the disk."""
    import msgspec

    for number in range(count):
        record = msgspec.json.encode(ObjectRecord(f"key{number}", len(DATA), "0" * 32, time.time()))
        path = store.object_path(f"{LARGE}-{BUCKET}", f"key{number}")
        path.write_bytes(DATA + record + len(record).to_bytes(8, "big"))


def put(store: ObjectStore, owner: str) -> float:
    """Seconds of one PUT."""
    begun = time.perf_counter()
    store.put(owner, f"{owner}-{BUCKET}", "again", PutObject([DATA], lambda: hashlib.md5(DATA).hexdigest()))
    return time.perf_counter() - begun


def beside(store: ObjectStore, puts: int, threads: int) -> list[float]:
    """Seconds of PUTs to the small project, while threads write to the large one."""
    ended = threading.Event()

    def disturb() -> None:
        while not ended.is_set():
            put(store, LARGE)

    others = [threading.Thread(target=disturb) for _ in range(threads)]
    for one in others:
        one.start()
    try:
        return [put(store, SMALL) for _ in range(puts)]
    finally:
        ended.set()
        for one in others:
            one.join()


def row(name: str, seconds: Sequence[float]) -> None:
    """Print a median and the worst, in ms."""
    sys.stdout.write(f"{name:44}{1000 * statistics.median(seconds):10.2f}{1000 * max(seconds):10.2f}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code."""
    parser = argparse.ArgumentParser(prog="bin/test bench-objects", description=__doc__.partition("\n")[0])
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--puts", type=int, default=200)
    parser.add_argument("--threads", type=int, default=4)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(Path(folder), LIMITS)
        for owner in (LARGE, SMALL):
            store.create_bucket(owner, f"{owner}-{BUCKET}")
        fill(store, given.objects)
        sys.stdout.write(f"{'PUT of 4 KiB (ms)':44}{'median':>10}{'worst':>10}\n")
        row(f"the first, into {given.objects} objects", [put(store, LARGE)])
        row(f"alone, into {given.objects} objects", [put(store, LARGE) for _ in range(given.puts)])
        row("alone, into none", [put(store, SMALL) for _ in range(given.puts)])
        row(f"into none, beside {given.threads} threads of the first", beside(store, given.puts // 4, given.threads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
