"""Edits of single options in a configuration file that keep all other lines: comments, order and blank lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from nova.configuration.sources import normal

Name = tuple[str, str]  # section, option


class Setting(NamedTuple):
    """An option in a file: its lines ``first`` to before ``end``, and the text after the sign in the first line."""

    name: Name
    first: int
    end: int
    value: str


def settings(lines: Sequence[str]) -> Iterator[Setting]:
    """Yield every option, in order. A value continues in lines that begin with a blank, up to an empty line."""
    section, at = "DEFAULT", 0
    while at < len(lines):
        line, first = lines[at].rstrip(), at
        at += 1
        if line.startswith("["):
            section = normal(line[1:].partition("]")[0].strip())
        elif line and not line.startswith(("#", ";", " ", "\t")):
            while at < len(lines) and lines[at].strip() and lines[at].startswith((" ", "\t")):
                at += 1
            sign = min(place for place in (line.find("="), line.find(":"), len(line)) if place >= 0)
            yield Setting((section, line[:sign].strip().replace("-", "_")), first, at, _bare(line[sign + 1:]))


def _bare(value: str) -> str:
    """Return the value without surrounding quotation marks."""
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def without(text: str, names: Collection[Name]) -> str:
    """Return the text without these options."""
    lines = text.splitlines(keepends=True)
    gone = {at for one in settings(lines) if one.name in names for at in range(one.first, one.end)}
    return "".join(line for at, line in enumerate(lines) if at not in gone)


def taken(text: str, name: Name) -> list[str]:
    """Return the unchanged lines of an option; several if it is set several times."""
    lines = text.splitlines(keepends=True)
    return ["".join(lines[one.first:one.end]).rstrip("\n") + "\n" for one in settings(lines) if one.name == name]


def value(text: str, name: Name) -> str:
    """Return the last value of an option; empty if it is not set."""
    found = [one.value for one in settings(text.splitlines()) if one.name == name]
    return found[-1] if found else ""


def names(text: str) -> frozenset[Name]:
    """Return the names of the options that the text sets."""
    return frozenset(one.name for one in settings(text.splitlines()))


def added(text: str, name: Name, new: Sequence[str]) -> str:
    """Return the text with these lines at the end of the option's section, which is created if missing."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    heads = [at for at, line in enumerate(lines) if line.startswith("[")]
    own = [at for at in heads if normal(lines[at][1:].partition("]")[0].strip()) == name[0]]
    if not own:
        return "".join([*lines, *(["\n"] if lines else []), f"[{name[0]}]\n", *new])
    end = next((at for at in heads if at > own[-1]), len(lines))
    while end > own[-1] + 1 and not lines[end - 1].strip():
        end -= 1
    return "".join([*lines[:end], *new, *lines[end:]])
