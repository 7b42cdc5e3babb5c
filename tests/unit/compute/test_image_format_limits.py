"""An image that was made to keep its reader busy is soon refused or read, and takes little memory (OSSA-2016-012)."""

from __future__ import annotations

import contextlib
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from nova import errors, imageinspector
from nova.compute.guests import image_format
from tests.unit.compute import crafted

pytestmark = pytest.mark.skipif(not shutil.which("qemu-img"), reason="needs qemu-img to craft images")

GIB = 1 << 30
LONG_S, MUCH_BYTES = 0.5, 64 << 20
STEP, HEAD = 4, 512  # fields and heads of all formats are multiples of these
MAKERS: dict[str, Callable[[Path], Path]] = {
    "qcow2": crafted.qcow2, **{name: lambda path, tool=tool: crafted.converted(path, tool)  # type: ignore[misc]
                               for name, tool in (("vmdk", "vmdk"), ("vdi", "vdi"), ("vhdx", "vhdx"), ("vhd", "vpc"))}}


@pytest.mark.parametrize("declared", MAKERS)
def test_look_when_any_number_of_the_head_is_huge_then_it_ends_soon_with_little_memory(declared, tmp_path):
    path = MAKERS[declared](tmp_path / "image")
    head = path.read_bytes()[:HEAD]
    with open(path, "r+b") as image:
        image.truncate(GIB)  # sparse: there is much to read for who believes the head
    tracemalloc.start()
    worst = 0.0
    for at in range(0, HEAD, STEP):
        with open(path, "r+b") as image:
            image.write(head[:at] + b"\xff" * STEP + head[at + STEP:])
        began = time.process_time()
        with contextlib.suppress(errors.Invalid):
            image_format.inspect_image(str(path), declared, "i", imageinspector.inspect)
        worst = max(worst, time.process_time() - began)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert worst < LONG_S and peak < MUCH_BYTES
