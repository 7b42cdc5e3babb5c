"""What is kept beside a guest."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nova.virt.libvirt.disks.folders import Folder
from nova.virt.libvirt.disks.records import PlugRecord

PLUG = PlugRecord(id="1", device="tap1", bridge="br100")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "guest")
    made.make()
    return made


def test_write_when_the_disk_is_full_then_what_was_stays_and_nothing_is_left_behind(folder: Folder, monkeypatch
                                                                                    ) -> None:
    folder.keep_plugs((PLUG,))

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        folder.keep_plugs(())
    assert folder.plugs() == (PLUG,)
    assert [path.name for path in folder.path.iterdir()] == ["plugged.json"]
