"""Types of the rows in ``nova-manage``'s command table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nova.conf._options import Options

if TYPE_CHECKING:
    from nova.rpc.contracts.conductor import ConductorRPC

#: (the configuration, the command line) -> the exit status.
Run = Callable[[Options, argparse.Namespace], int]
#: Configuration -> a client of the conductor, created when a command runs.
ConductorOf = Callable[[Options], "ConductorRPC"]
#: (the headings, the rows of cells) -> None: prints a table.
Table = Callable[[Sequence[str], Sequence[Sequence[object]]], None]


class Argument(NamedTuple):
    flags: tuple[str, ...]
    options: dict[str, Any]


class Command(NamedTuple):
    run: Run
    help: str
    arguments: tuple[Argument, ...] = ()


JSON = Argument(("--json",), {"action": "store_true", "help": "one JSON document instead of a table"})


def argument(*flags: str, **options: object) -> Argument:
    """Return a command's argument; the parameters are those of ``argparse``'s ``add_argument``."""
    return Argument(flags, options)
