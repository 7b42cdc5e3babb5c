"""Commands of upstream's nova-manage that deployment tools call but that have no effect here. They print the reason and
exit with 0."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from nova.conf._options import Options
from nova.manage.command import Argument, Command, argument

Say = Callable[[str], None]

class Idle(NamedTuple):
    """A command without effect. ``why``: the printed text. ``arguments``: upstream's, which are accepted."""

    help: str
    why: str
    arguments: tuple[Argument, ...] = ()


def _ignored(flag: str, metavar: str | None = None) -> Argument:
    return argument(flag, metavar=metavar, help="ignored; accepted for compatibility")


IDLE: dict[str, dict[str, Idle]] = {
    "db": {
        "ironic_compute_node_move": Idle(
            "no effect; prints the reason", "Nothing to move: this release has no bare metal nodes.",
            (_ignored("--ironic-node-uuid"), _ignored("--destination-host")))},
    "project": {
        "quota_usage_refresh": Idle(
            "no effect; prints the reason", "Nothing to refresh: the usage of a project is summed up for each request "
            "and never stored.",
            (_ignored("--project", "ID"), _ignored("--user", "ID"), _ignored("--key", "RESOURCE")))}}


def actions(category: str, say: Say) -> dict[str, Command]:
    """Return the rows of a category in nova-manage's command table."""
    def runs(idle: Idle) -> Callable[[Options, argparse.Namespace], int]:
        def run(options: Options, given: argparse.Namespace) -> int:
            say(idle.why)
            return 0
        return run
    return {name: Command(runs(idle), idle.help, idle.arguments) for name, idle in IDLE[category].items()}
