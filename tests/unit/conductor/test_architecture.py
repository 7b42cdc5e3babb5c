"""What ``doc/architecture.rst`` says of one request's path, and of a workflow, is so."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

from nova.conductor.actions import create
from tests.fakes.api import ApiClient
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud

TOP = Path(__file__).resolve().parents[3]
PAGE = (TOP / "doc" / "architecture.rst").read_text()
#: In one process a call goes through the same codec, by another door.
BY_ANOTHER_DOOR = {"nova/rpc/client.py": "nova/rpc/local.py"}


def test_path_of_a_create_then_it_passes_the_files_of_the_page_in_their_order(cloud: SmallCloud) -> None:
    wanted = [BY_ANOTHER_DOOR.get(name, name) for name in re.findall(r"^``(nova/[\w/.]+)``  ", PAGE, re.M)]
    wanted = list(dict.fromkeys(wanted))  # the end of the story is in a file that was passed before
    passed: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(TOP)):
            passed.setdefault(name.removeprefix(f"{TOP}/"))
    image = cloud.image_service.add(new_uuid())
    body = {"server": {"name": "vm", "flavorRef": "1", "imageRef": image.id, "networks": "none"}}
    sys.setprofile(note)
    try:
        client = ApiClient(SimpleNamespace(client=lambda: cloud.control), token="joe:demo", version="2.37")
        made = set(passed)
        passed.clear()
        answer = client.request("POST", "/servers", body)
    finally:
        sys.setprofile(None)
    assert answer.status_int == 202, answer.text
    assert wanted[0] in made  # it makes the layers that the request passes
    assert len(wanted) > 5 and [name for name in passed if name in wanted] == wanted[1:]


def test_workflow_on_the_page_then_it_is_that_of_the_file() -> None:
    block = PAGE.partition("less its comments::\n\n")[2].partition("\n\n")[0]
    shown = ast.parse("\n".join(line[4:] for line in block.splitlines()))
    whole = ast.parse(Path(create.__file__).read_text())
    [real] = [node for node in whole.body
              if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CREATE_SERVER"]
    assert ast.unparse(shown.body[-1]) == ast.unparse(real)
