"""``nova-manage secrets`` and ``nova-manage daemon rights``."""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from nova import errors
from nova.manage.command import Command, argument
from nova.manage.secret_files import broker, readers
from nova.manage.secret_files.split import Account, CannotSplit, Split, SplitRequest, own_commands, shown
from nova.privileged.runner import CommandRunner, SystemRunner
from nova.rpc import control_rights

Say = Callable[[str], None]
BROKER_S = 60.0  # for rabbitmqctl
ENABLED = Path("/etc/systemd/system/multi-user.target.wants")
REFUSED = 2


def split(given: argparse.Namespace, say: Say, runner: CommandRunner, accounts: Mapping[str, Account | None]) -> int:
    """0: done, or nothing is to be done; no secret is printed. 1: cut off by the broker or the disk. 2: refused, and
    nothing was changed."""
    known = broker.existing(runner) if not given.keep_broker_users else None
    try:
        plan = Split(SplitRequest(Path(given.etc), accounts, Path(given.passwords) if given.passwords else None,
                          not given.keep_broker_users), known,
                     lambda user: broker.make(user, known or frozenset(), runner))
    except CannotSplit as error:
        sys.stderr.write(f"nova-manage: {error}\n")
        return REFUSED
    if not plan.is_controller:
        say("This machine has no [DEFAULT]transport_url: only daemons of a host run here, which share their secrets.")
        return 0
    say(f"For {', '.join(accounts)}. "
        "If other daemons run here, as under a WSGI server, name all of them with --daemon.")
    return _run(plan, given.dry_run, say, known is None and not given.keep_broker_users)


def _run(plan: Split, dry_run: bool, say: Say, tells_commands: bool) -> int:
    steps = list(plan.steps())
    for step in steps:
        if not dry_run:
            try:
                step.run()
            except (OSError, errors.NovaError) as error:
                sys.stderr.write(f"nova-manage: {step.words}: {getattr(error, 'message', None) or error}. "
                                 "Run the command again when that is mended: it goes on here.\n")
                return 1
        say(step.words)
    for name in plan.unread():
        say(f"{shown(name)} stays: no daemon of this machine reads it. Remove it.")
    if tells_commands and plan.users:
        say("rabbitmqctl cannot be run here. On a machine of the broker, before a daemon is restarted:")
        for line in own_commands(plan.users, plan.path_of):
            say(f"    {line}")
    say("Nothing was changed (--dry-run)." if dry_run else
        "Restart each daemon, conductors first. Then delete the broker user that they shared.")
    return 0


def on_this_machine(chosen: Iterable[str]) -> dict[str, Account | None]:
    """The daemons whose files are written, with whom these are given to: those that are named; else those whose units
    are enabled; else all whose users there are. CannotSplit: a named one has no user here."""
    named = list(chosen)
    enabled = [daemon for daemon in readers.DAEMONS if (ENABLED / f"{daemon}.service").exists()]
    found = {daemon: _account(readers.user_of(daemon)) for daemon in named or enabled or readers.DAEMONS}
    missing = [daemon for daemon, account in found.items() if account is None]
    if os.geteuid():
        return dict.fromkeys(found)
    if missing and (named or enabled):
        raise CannotSplit(f"there is no user {readers.user_of(missing[0])} for {missing[0]}: make the users "
                          "(systemd-sysusers), then run this again")
    return {daemon: account for daemon, account in found.items() if account is not None}


def _account(name: str) -> Account | None:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(found.pw_uid, 0)


def run_split(given: argparse.Namespace, say: Say) -> int:
    """As :func:`split`, of this machine."""
    try:
        accounts = on_this_machine(given.daemon)
    except CannotSplit as error:
        sys.stderr.write(f"nova-manage: {error}\n")
        return REFUSED
    return split(given, say, SystemRunner(BROKER_S), accounts)


def rights(given: argparse.Namespace, say: Say) -> int:
    """As command lines for the broker."""
    for words in broker.rights_commands(given.daemon, given.vhost):
        say(broker.shown(words))
    return 0


_SPLIT = (
    argument("--etc", default="/etc/nova", metavar="DIR", help="folder of nova.conf (/etc/nova)"),
    argument("--dry-run", action="store_true", help="only show what would be done"),
    argument("--daemon", action="append", default=[], choices=readers.DAEMONS, metavar="DAEMON",
             help="a daemon that runs here; repeat it for each. Left out: all daemons with an enabled unit"),
    argument("--passwords", metavar="FILE",
             help="keep the passwords of the broker users in this file (0600), for other controllers: run the command "
                  "there with a copy of it"),
    argument("--keep-broker-users", action="store_true", help="leave the users in the URLs as they are"))


def secrets_actions(say: Say) -> dict[str, Command]:
    """Rows for the table of commands."""
    return {"split": Command(lambda options, given: run_split(given, say),
                             "move the secrets of nova.conf into a file for each daemon, which its user alone may "
                             "read, and give each daemon a broker user of its own. May be interrupted and repeated",
                             _SPLIT)}


def daemon_actions(say: Say) -> dict[str, Command]:
    """Rows for the table of commands."""
    return {"rights": Command(lambda options, given: rights(given, say),
                              "print the rights of a daemon's broker user, as commands for the broker", (
        argument("daemon", choices=control_rights.USERS, metavar="DAEMON", help="as its program is called"),
        argument("--vhost", default=control_rights.VHOST,
                 help=f"the control daemons' vhost ({control_rights.VHOST})")))}
