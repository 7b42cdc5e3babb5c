"""The commands of ``nova-manage host`` that read and write the databases; their module is imported when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nova.conf._options import Options
from nova.manage.command import Command, argument

Say = Callable[[str], None]

HOST = "{host}"  # in a file's name
BROKER_S = 60.0  # for rabbitmqctl


def _isolate(options: Options, given: argparse.Namespace, say: Say) -> int:
    from nova.manage import isolation_commands
    from nova.privileged.runner import SystemRunner

    return isolation_commands.isolate(options, given, say, SystemRunner(BROKER_S))


def _wrap_secrets(options: Options, say: Say) -> int:
    from nova.manage import isolation_commands

    return isolation_commands.wrap_secrets(options, say)


def _readmit(options: Options, given: argparse.Namespace, say: Say) -> int:
    from nova.manage import isolation_commands

    return isolation_commands.readmit(options, given, say)


_HOSTS = argument("host", nargs="*", help="[DEFAULT]host there (default: the machine's host name)")


def actions(say: Say) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {
        "isolate": Command(lambda options, given: _isolate(options, given, say),
                           "move hosts from upstream security mode to bounded mode, while their guests run", (
            _HOSTS, argument("--all", action="store_true", help="all hosts; run again once they are back, it puts the "
                                                                "cloud into bounded mode"),
            argument("--revert", action="store_true", help="move back to upstream mode"),
            argument("--write", metavar="FILE", help=f"write the line for nova.conf to this file (0600), and print "
                                                     f"no password; {HOST} in it is the host's name"))),
        "wrap-secrets": Command(lambda options, given: _wrap_secrets(options, say),
                                "encrypt all host secrets and cells' URLs again, with the first key of "
                                "[conductor]host_secret_key"),
        "readmit": Command(lambda options, given: _readmit(options, given, say),
                           "let a reinstalled or replaced host use its name again", (
            _HOSTS, argument("--all", action="store_true", help="all hosts: their secrets are discarded"))),
    }
