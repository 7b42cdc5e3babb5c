"""Commands of upstream's nova-manage that deployment tools call, and that have nothing to do here: they say why, and
end with 0."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from nova.conf.base import Options
from nova.manage.command import Argument, Command, argument

Say = Callable[[str], None]

class Idle(NamedTuple):
    """``why``: what is said. ``arguments``: upstream's, which are accepted."""

    help: str
    why: str
    arguments: tuple[Argument, ...] = ()


IDLE: dict[str, dict[str, Idle]] = {
    "db": {
        "ironic_compute_node_move": Idle(
            "nothing to do here: says so", "Nothing to move: this release has no bare metal nodes.",
            (argument("--ironic-node-uuid", help="accepted"), argument("--destination-host", help="accepted")))},
    "project": {
        "quota_usage_refresh": Idle(
            "nothing to do here: says so", "Nothing to refresh: what a project uses is summed at each request, and "
            "never kept.", (argument("--project", metavar="ID", help="accepted"),
                            argument("--user", metavar="ID", help="accepted"),
                            argument("--key", metavar="RESOURCE", help="accepted")))}}


def actions(category: str, say: Say) -> dict[str, Command]:
    """The rows of nova-manage's table for a category."""
    def runs(idle: Idle) -> Callable[[Options, argparse.Namespace], int]:
        def run(options: Options, given: argparse.Namespace) -> int:
            say(idle.why)
            return 0
        return run
    return {name: Command(runs(idle), idle.help, idle.arguments) for name, idle in IDLE[category].items()}
