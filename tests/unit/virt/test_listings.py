"""Files of one server among those of all."""

from __future__ import annotations

import gc
import re
import uuid
from pathlib import Path

from nova.virt.listings import files_of


def test_files_when_asked_for_then_names_that_begin_and_end_so_and_no_pattern_is_kept(tmp_path: Path) -> None:
    server = str(uuid.uuid4())
    for name in (f"{server}.0.sock", f"{server}.1.sock", f"{server}.log", f"{server}0.0.sock", f"b.{server}.0.sock"):
        (tmp_path / name).touch()
    found = {path.name for path in files_of(tmp_path, f"{server}.", ".sock")}
    assert found == {f"{server}.0.sock", f"{server}.1.sock"}
    patterns = [str(one.pattern) for one in gc.get_objects() if isinstance(one, re.Pattern)]
    assert not [one for one in patterns if server[:8] in one]


def test_files_when_there_is_no_folder_then_there_are_none(tmp_path: Path) -> None:
    assert files_of(tmp_path / "absent", "a1.") == []
