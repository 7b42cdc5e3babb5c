"""The page of commands: every command of the programs that people call, with all that it takes."""

from __future__ import annotations

import argparse

import pytest

from tests.docs_parts import command_reference, commands
from tests.docs_parts.command_reference import PROGRAMS, usage
from tests.docs_parts.commands import Argument, CommandLine

PAGE = command_reference.page()
LINES = [pytest.param(name, line, id=f"{name} {' '.join(line.words)}") for name, program in PROGRAMS.items()
         for line in commands.commands(program.parser())]


@pytest.mark.parametrize(("name", "line"), LINES)
def test_page_then_each_command_has_its_usage_its_help_and_its_arguments(name: str, line: CommandLine) -> None:
    title = " ".join(line.words)
    section = PAGE[PAGE.index(f"\n{name}\n{'-' * len(name)}\n"):]
    section = section[section.index(f"\n{title}\n{'~' * len(title)}\n"):].split("~\n")[1]
    assert usage(name, line).split() == section[:section.index("\n\n", 5)].split()[1:]
    assert all(f"``{', '.join(argument.flags) or argument.value}" in section for argument in line.arguments)


def test_page_then_hidden_arguments_are_left_out() -> None:
    assert "--no-demo" in PAGE and "--neighbours-only" not in PAGE and "SUPPRESS" not in PAGE


def test_usage_when_an_argument_may_be_left_out_then_it_is_in_brackets() -> None:
    line = CommandLine(("host", "move"), "", (
        Argument((), "HOST", ""), Argument(("--to", "-t"), "HOST", ""), Argument(("--yes",), "", "", must=True)))
    assert usage("tool", line) == "tool host move HOST [--to HOST] --yes"


def test_meaning_when_there_are_choices_and_it_must_be_said_then_it_tells_both() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", required=True, choices=("small", "large"), help="how much")
    assert commands.meaning(commands.own(parser).arguments[-1]) == "How much. Required. One of small, large."
