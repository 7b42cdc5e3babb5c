"""Files of one server among those of all."""

from __future__ import annotations

import gc
import re
from pathlib import Path

from nova.virt.listings import files_of


def test_files_when_asked_for_then_names_that_begin_and_end_so_and_no_pattern_is_kept(tmp_path: Path) -> None:
    for name in ("a1.0.sock", "a1.1.sock", "a1.log", "a10.0.sock", "b.a1.0.sock"):
        (tmp_path / name).touch()
    assert {path.name for path in files_of(tmp_path, "a1.", ".sock")} == {"a1.0.sock", "a1.1.sock"}
    assert not [one for one in gc.get_objects() if isinstance(one, re.Pattern) and str(one.pattern).count("a1")]


def test_files_when_there_is_no_folder_then_there_are_none(tmp_path: Path) -> None:
    assert files_of(tmp_path / "absent", "a1.") == []
