"""The page of commands: all programs that users call, from their command lines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nova.cmd import policy
from nova.manage import main, status
from tests.docs_parts import commands, programs, rst
from tests.docs_parts.commands import Argument, CommandLine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bin"))

from stacklib import cli  # noqa: E402

INTRO = """\
This page lists all commands of the programs that operators call. ``PROGRAM --help`` and ``PROGRAM COMMAND --help``
print the same. ``man PROGRAM`` has it too, with the files that the program reads. Square brackets mark optional
arguments.

`Operating <../operating.rst>`_ describes the use of the commands; `troubleshooting <../troubleshooting.rst>`_ starts
from symptoms. Users work with ``openstack``, which has its own documentation.
"""


class Program(NamedTuple):
    """A program's description. ``about``: paragraphs. ``statuses``: exit status -> its meaning."""

    parser: Callable[[], argparse.ArgumentParser]
    about: tuple[str, ...]
    statuses: dict[str, str]


PROGRAMS = {
    **{name: Program(parser, programs.ABOUT[name], programs.EXIT[name]) for name, parser in (
        ("nova-manage", main.parser), ("nova-status", status.parser), ("nova-policy", policy.parser))},
    "bin/stack": Program(cli.parser, ("It installs, starts and controls a cloud on one machine, from a checkout.",), {
        "0": "Success.", "1": "The command failed; the last line has the reason.", "2": "The command line is wrong.",
        "3": "A daemon is not ready (`status`)."}),
}


def page() -> str:
    contents = ".. contents::\n   :local:\n   :depth: 2\n"
    return "\n".join([rst.MARK, rst.heading("Commands"), INTRO, contents,
                      *(part for name in PROGRAMS for part in _program(name, PROGRAMS[name]))])


def _program(name: str, program: Program) -> Iterator[str]:
    parser = program.parser()
    yield rst.heading(name, "-")
    for text in program.about:
        yield rst.paragraph(rst.plain(text)) + "\n"
    yield rst.table(("Exit status", "Meaning"), ((code, rst.plain(text)) for code, text in program.statuses.items()),
                    (15, 85))
    yield from _arguments("Option of the program", commands.own(parser))
    for line in commands.commands(parser):
        yield rst.heading(" ".join(line.words), "~")
        yield f"::\n\n{rst.paragraph(usage(name, line), '    ')}\n"
        yield rst.paragraph(rst.plain(commands.sentence(line.help))) + "\n"
        yield from _arguments("Argument", line)


def _arguments(heading: str, line: CommandLine) -> Iterator[str]:
    rows = [(rst.literal(" ".join([", ".join(argument.flags), argument.value]).strip()),
             rst.plain(commands.meaning(argument))) for argument in line.arguments]
    if rows:
        yield rst.table((heading, "Meaning"), rows, (35, 65))


def usage(program: str, line: CommandLine) -> str:
    """Return a command's usage line."""
    return " ".join([program, *line.words, *map(_use, line.arguments)])


def _use(argument: Argument) -> str:
    words = " ".join([*argument.flags[:1], *filter(None, [argument.value])])
    return words if argument.must or not argument.flags else f"[{words}]"
