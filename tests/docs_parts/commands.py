"""Command lines as values, from ``argparse`` and ``oslo.config``, for man pages, the reference and bash completion."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oslo_config import cfg


class Argument(NamedTuple):
    """An argument. ``flags``: empty for a positional one. ``value``: the name of its value, empty for a switch.
    ``choices``: the valid values, if not empty."""

    flags: tuple[str, ...]
    value: str
    help: str
    must: bool = False
    choices: tuple[str, ...] = ()


class CommandLine(NamedTuple):
    """A command. ``words``: the words after the program's name, empty for the program itself."""

    words: tuple[str, ...]
    help: str
    arguments: tuple[Argument, ...]


def own(parser: argparse.ArgumentParser) -> CommandLine:
    """Return the arguments of the program itself, which precede any command."""
    return CommandLine((), parser.description or "", tuple(map(_argument, _plain(parser))))


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = (),
             known: frozenset[str] = frozenset({"help"})) -> Iterator[CommandLine]:
    """Yield each command, without its groups and without the options that its program also has."""
    known |= {action.dest for action in _plain(parser)}
    for name, below in ((name, below) for action in _actions(parser) for name, below in _parsers(action).items()):
        if any(map(_parsers, _actions(below))):
            yield from commands(below, (*words, name), known)
        else:
            arguments = tuple(_argument(action) for action in _plain(below) if action.dest not in known)
            yield CommandLine((*words, name), below.description or "", arguments)


def meaning(argument: Argument) -> str:
    """Return the description of an argument, in sentences."""
    notes = [argument.help, "required" if argument.must else ""]
    if any(choice not in argument.help for choice in argument.choices):
        notes.append(f"one of {', '.join(argument.choices)}")
    return " ".join(map(sentence, filter(None, notes)))


def sentence(text: str) -> str:
    """Return a help text as a sentence: help texts of ``argparse`` have no capital letter and no period."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def switches(options: Sequence[cfg.Opt]) -> Iterator[Argument]:
    """Yield the options of a daemon's command line. A boolean option also has its ``--no`` form."""
    for option in sorted(options, key=lambda option: option.name):
        flags = [f"--{option.name}", *(f"-{option.short}" for _ in range(bool(option.short)))]
        flags += [f"--{old.name}" for old in option.deprecated_opts if old.name]
        if isinstance(option, cfg.BoolOpt):
            yield Argument((*flags, f"--no{option.name}"), "", option.help or "")
        else:
            yield Argument(tuple(flags), option.name.upper(), option.help or "")


def _actions(parser: argparse.ArgumentParser) -> Sequence[argparse.Action]:
    return parser._actions  # argparse has no public API for this


def _parsers(action: argparse.Action) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of an action's subcommands, by name; empty if it has none."""
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
    """Return a value's name with its number of repetitions, as in usage lines."""
    if number == 0:
        return ""
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(number), name)
