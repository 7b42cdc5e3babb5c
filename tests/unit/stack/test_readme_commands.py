"""Every command of the README has a case of tests/fresh that runs it on a machine made from nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fresh import readme
from tests.fresh.cases import CASES

TOP = Path(__file__).resolve().parents[3]


def test_readme_when_it_shows_a_command_then_a_fresh_case_runs_it() -> None:
    assert [command for command in readme.shown() if command not in readme.COMMANDS] == []


def test_table_when_it_names_a_case_then_there_is_one_and_the_readme_shows_its_command() -> None:
    assert {case for _, cases in readme.COMMANDS.values() for case in cases} <= set(CASES)
    assert set(readme.COMMANDS) <= set(readme.shown())


def test_case_when_its_story_leaves_a_command_out_then_it_is_told() -> None:
    assert readme.left_out("nova-all", ["bin/nova-all --port 0"]) == []
    assert readme.left_out("nova-all", ["bin/nova"]) == ["bin/nova-all"]


@pytest.mark.parametrize(("text", "command"), [
    ("::\n\n    bin/nova-all           # prints\n", "bin/nova-all"), ("``bin/stack up\n--x``", "bin/stack up --x"),
    ("::\n\n    sudo bin/test\n", "sudo bin/test"), ("``--volumes nfs`` adds", "--volumes nfs")])
def test_commands_when_they_stand_in_a_page_then_they_are_found(text: str, command: str, tmp_path: Path, monkeypatch
                                                                ) -> None:
    (tmp_path / "README.rst").write_text(text)
    monkeypatch.setattr(readme, "README", tmp_path / "README.rst")
    assert readme.shown() == [command]


def test_pages_and_messages_when_they_install_the_package_then_they_name_no_index_that_lacks_it() -> None:
    texts = [*TOP.glob("*.rst"), *TOP.glob("doc/**/*.rst"), *TOP.glob("nova/**/*.py")]
    assert [str(path) for path in texts if re.search(r"pip install '?nova-iaas", path.read_text())] == []
