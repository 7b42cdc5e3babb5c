"""Command lines as values: what ``argparse`` and ``oslo.config`` were told, for man pages, the reference and bash."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oslo_config import cfg


class Argument(NamedTuple):
    """``flags``: none where it is known by its place. ``value``: what follows or stands there, empty for a switch.
    ``choices``: the only values that it may have, if not empty."""

    flags: tuple[str, ...]
    value: str
    help: str
    must: bool = False
    choices: tuple[str, ...] = ()


class CommandLine(NamedTuple):
    """``words``: what is typed behind the program's name, empty for the program itself."""

    words: tuple[str, ...]
    help: str
    arguments: tuple[Argument, ...]


def own(parser: argparse.ArgumentParser) -> CommandLine:
    """What stands before any command."""
    return CommandLine((), parser.description or "", tuple(map(_argument, _plain(parser))))


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = (),
             known: frozenset[str] = frozenset({"help"})) -> Iterator[CommandLine]:
    """Each command that does something, without the options that its program has, too."""
    known |= {action.dest for action in _plain(parser)}
    for name, below in ((name, below) for action in _actions(parser) for name, below in _parsers(action).items()):
        if any(map(_parsers, _actions(below))):
            yield from commands(below, (*words, name), known)
        else:
            arguments = tuple(_argument(action) for action in _plain(below) if action.dest not in known)
            yield CommandLine((*words, name), below.description or "", arguments)


def meaning(argument: Argument) -> str:
    """What it is for, in sentences."""
    notes = [argument.help, "required" if argument.must else ""]
    if any(choice not in argument.help for choice in argument.choices):
        notes.append(f"one of {', '.join(argument.choices)}")
    return " ".join(map(sentence, filter(None, notes)))


def sentence(text: str) -> str:
    """Helps of ``argparse`` are written without the capital letter and the period."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def switches(options: Sequence[cfg.Opt]) -> Iterator[Argument]:
    """Options of a daemon's command line. One that is on or off has an inverse, by ``--no``."""
    for option in sorted(options, key=lambda option: option.name):
        flags = [f"--{option.name}", *(f"-{option.short}" for _ in range(bool(option.short)))]
        flags += [f"--{old.name}" for old in option.deprecated_opts if old.name]
        if isinstance(option, cfg.BoolOpt):
            yield Argument((*flags, f"--no{option.name}"), "", option.help or "")
        else:
            yield Argument(tuple(flags), option.name.upper(), option.help or "")


def _actions(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    return parser._actions  # there is no public way to ask a parser what it takes


def _parsers(action: argparse.Action) -> dict[str, argparse.ArgumentParser]:
    """Of a word that names a command: what takes the words behind it."""
    found = action.choices if isinstance(action.choices, dict) else {}
    return {name: parser for name, parser in found.items() if isinstance(parser, argparse.ArgumentParser)}


def _plain(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in _actions(parser) if not _parsers(action) and action.help != argparse.SUPPRESS]


def _argument(action: argparse.Action) -> Argument:
    choices = tuple(map(str, action.choices or ()))
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return Argument(tuple(action.option_strings), _repeated(name, action.nargs),
                    (action.help or "") % {**vars(action), "prog": ""}, action.required and bool(action.option_strings),
                    choices)


def _repeated(name: str, number: int | str | None) -> str:
    """In the manner of usage lines."""
    if number == 0:
        return ""
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(number), name)
