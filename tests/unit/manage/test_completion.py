"""``etc/completion/nova-manage``, as bash does it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nova.manage import main

FILE = Path(__file__).resolve().parents[3] / "etc" / "completion" / "nova-manage"
#: Words of the command line, the last one being typed -> what bash offers, a line each; a line ``--`` between answers.
ASK = """
source "$1"; shift
for line; do
    read -ra COMP_WORDS <<< "nova-manage $line"
    [[ $line == *" " || -z $line ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _nova_manage
    printf '%s\\n' "${COMPREPLY[@]}" --
done
"""


def offered(*lines: str) -> list[list[str]]:
    """The words for each command line, which ends where Tab was pressed."""
    if not shutil.which("bash"):
        pytest.skip("bash is not installed here")
    result = subprocess.run(["bash", "-uc", ASK, "bash", str(FILE), *lines], capture_output=True, text=True, timeout=60,
                            check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return [part.split() for part in result.stdout.split("--\n")[:-1]]


def test_completion_when_nothing_is_typed_then_all_categories_are_offered() -> None:
    (words,) = offered("")
    assert {word for word in words if not word.startswith("-")} == {*main.SINGLE, *main.COMMANDS}
    assert "--config-file" in words


def test_completion_when_a_category_is_typed_then_its_actions_are_offered() -> None:
    answers = offered(*(f"{category} " for category in main.COMMANDS))
    assert answers == [list(actions) for actions in (make() for make in main.COMMANDS.values())]


def test_completion_when_an_action_is_typed_then_its_options_are_offered() -> None:
    names = [(category, action) for category, make in main.COMMANDS.items() for action in make()]
    answers = offered(*(f"{category} {action} " for category, action in names))
    for (category, action), words in zip(names, answers, strict=True):
        arguments = main.COMMANDS[category]()[action].arguments
        assert words == [flag for argument in arguments for flag in argument.flags if flag.startswith("-")]


@pytest.mark.parametrize(("line", "words"), [
    ("se", ["service", "secrets", "server"]),
    ("service de", ["delete"]),
    ("service list --j", ["--json"]),
    ("doctor --js", ["--json"]),
    ("doctor --check glan", ["glance"]),
    ("network create --multi_host ", ["T", "F"]),
    ("--config-file /etc/nova/nova.conf serv", ["service", "server"]),
    ("--config-file = /etc/nova/nova.conf serv", ["service", "server"]),
    ("--debug host dr", ["drain"]),
    ("no-such-category ", []),
])
def test_completion_when_part_of_a_line_is_typed_then_what_fits_is_offered(line: str, words: list[str]) -> None:
    assert offered(line) == [words]


@pytest.mark.parametrize("line", ["--config-file ", "host drain --skip-file ", "restore "])
def test_completion_when_a_value_of_any_kind_comes_then_nothing_is_offered_and_bash_names_files(line: str) -> None:
    assert [[word for word in words if not word.startswith("--")] for words in offered(line)] == [[]]
    assert "complete -o default -F _nova_manage nova-manage" in FILE.read_text().splitlines()
