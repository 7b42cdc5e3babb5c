"""Create an image from a bundle in a process with native or green threads, and print ``ok``.

    python -m tests.fakes.bundles_in_mode eventlet|threads FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DATA = bytes(range(256)) * 20000


def main(mode: str, folder: str) -> None:
    os.environ["NOVA_CONCURRENCY"] = mode
    from nova import concurrency

    assert concurrency.patch() == mode
    run(Path(folder))
    print("ok", flush=True)


def run(folder: Path) -> None:
    """Register a bundle; check that other threads run in the meantime."""
    from nova import concurrency
    from tests.fakes.bundle_world import KEYS, BundleWorld
    from tests.fakes.bundles import bundle
    from tests.fakes.glance import FakeGlance

    turns: list[int] = []

    def turn() -> None:
        while True:
            turns.append(1)
            concurrency.sleep(0.001)
    with FakeGlance() as glance:
        world = BundleWorld(folder, glance.url, largest=len(DATA))
        location = world.upload(bundle(DATA, KEYS, part_bytes=2 ** 20))
        concurrency.spawn(turn)
        ids = [world.register(location) for _ in range(2)]
        world.settle(30)
        world.service.stop(1)
        assert all(glance.data[one] == DATA for one in ids) and world.left() == [] and len(turns) > 5, len(turns)


if __name__ == "__main__":
    main(*sys.argv[1:])
