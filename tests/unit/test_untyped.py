"""The count of annotations that are ``Any`` by another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import untyped

BASE = """
from typing import Any
Json = Any
Table = dict[str, Json]
LIMIT = Any
class Struct: ...
"""


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(untyped, "TOP", tmp_path)
    (nova := tmp_path / "nova").mkdir()

    def count(signature: str, imports: str = "") -> list[str]:
        (nova / "base.py").write_text(BASE)
        (nova / "again.py").write_text("from nova.base import Json as Decoded\n")
        (nova / "user.py").write_text(f"from __future__ import annotations\n{imports}\ndef f{signature}: ...\n")
        return [one.how for one in untyped.modules(nova)["nova.user"].annotations()]
    return count


@pytest.mark.parametrize(("signature", "imports", "found"), [
    ("(a: Any) -> None", "from typing import Any", ["is"]),
    ("(a: Json) -> Json", "from nova.base import Json", ["is", "is"]),
    ("(a: Body)", "from nova.base import Json as Body", ["is"]),
    ("(a: Decoded)", "from nova.again import Decoded", ["is"]),
    ("(a: base.Json)", "from nova import base", ["is"]),
    ("(a: Table)", "from nova.base import Table", ["contains"]),
    ("(*a: list[Json], **b: 'Json')", "from nova.base import Json", ["contains", "is"]),
    ("(a: Mine)", "from nova.base import Json\nMine = tuple[Json, int]", ["contains"]),
    ("(a: typing.Any)", "import typing", ["is"]),
])
def test_annotation_when_it_is_any_by_some_name_then_it_is_counted(counted, signature: str, imports: str,
                                                                    found: list[str]) -> None:
    assert sorted(counted(signature, imports)) == sorted(found)


@pytest.mark.parametrize(("signature", "imports"), [
    ("(a: Struct, b: int | None) -> dict[str, object]", "from nova.base import Struct"),
    ("(a: Json)", "class Json: ..."), ("()", "from typing import Any")])
def test_annotation_when_it_has_a_type_then_it_is_not_counted(counted, signature: str, imports: str) -> None:
    assert counted(signature, imports) == []
