"""The commands ``nova-manage secrets`` and ``nova-manage daemon rights``."""

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
    """Split the secrets; none is printed. Return 0 if done, or nothing to do; 1 if interrupted by an error of the
    broker or the disk; 2 if refused, without any change."""
    known = broker.existing(runner) if not given.keep_broker_users else None
    try:
        plan = Split(SplitRequest(Path(given.etc), accounts, Path(given.passwords) if given.passwords else None,
                          not given.keep_broker_users), known,
                     lambda user: broker.make(user, known or frozenset(), runner))
    except CannotSplit as error:
        sys.stderr.write(f"nova-manage: {error}\n")
        return REFUSED
    if not plan.is_controller:
        say("This machine has no [DEFAULT]transport_url: only services of a compute host run here, which share their "
            "secrets.")
        return 0
    say(f"Services: {', '.join(accounts)}. "
        "If other services run here, for example under a WSGI server, name all of them with --daemon.")
    return _run(plan, given.dry_run, say, known is None and not given.keep_broker_users)


def _run(plan: Split, dry_run: bool, say: Say, tells_commands: bool) -> int:
    steps = list(plan.steps())
    for step in steps:
        if not dry_run:
            try:
                step.run()
            except (OSError, errors.NovaError) as error:
                sys.stderr.write(f"nova-manage: {step.words}: {getattr(error, 'message', None) or error}. "
                                 "Fix the error and run the command again: it continues here.\n")
                return 1
        say(step.words)
    for name in plan.unread():
        say(f"{shown(name)} was kept: no service on this machine reads it. Remove it.")
    if tells_commands and plan.users:
        say("rabbitmqctl cannot run here. On a broker node, before any service is restarted, run:")
        for line in own_commands(plan.users, plan.path_of):
            say(f"    {line}")
    say("Nothing was changed (--dry-run)." if dry_run else
        "Restart each service, conductors first. Then delete the broker user that they shared.")
    return 0


def on_this_machine(chosen: Iterable[str]) -> dict[str, Account | None]:
    """Return the services whose files are written, with the files' owners: the ``chosen`` services; else those with
    enabled units; else all whose users exist. Raises CannotSplit if the user of a chosen or enabled one is missing."""
    named = list(chosen)
    enabled = [daemon for daemon in readers.DAEMONS if (ENABLED / f"{daemon}.service").exists()]
    found = {daemon: _account(readers.user_of(daemon)) for daemon in named or enabled or readers.DAEMONS}
    missing = [daemon for daemon, account in found.items() if account is None]
    if os.geteuid():
        return dict.fromkeys(found)
    if missing and (named or enabled):
        raise CannotSplit(f"the user {readers.user_of(missing[0])} of {missing[0]} does not exist: create the users "
                          "(systemd-sysusers), then run this again")
    return {daemon: account for daemon, account in found.items() if account is not None}


def _account(name: str) -> Account | None:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(found.pw_uid, 0)


def run_split(given: argparse.Namespace, say: Say) -> int:
    """Run :func:`split` for this machine."""
    try:
        accounts = on_this_machine(given.daemon)
    except CannotSplit as error:
        sys.stderr.write(f"nova-manage: {error}\n")
        return REFUSED
    return split(given, say, SystemRunner(BROKER_S), accounts)


def rights(given: argparse.Namespace, say: Say) -> int:
    """Print the permissions as command lines for the broker."""
    for words in broker.rights_commands(given.daemon, given.vhost):
        say(broker.shown(words))
    return 0


_SPLIT = (
    argument("--etc", default="/etc/nova", metavar="DIR", help="directory of nova.conf (/etc/nova)"),
    argument("--dry-run", action="store_true", help="only show what would be done"),
    argument("--daemon", action="append", default=[], choices=readers.DAEMONS, metavar="DAEMON",
             help="a service that runs here; repeatable (default: all services with an enabled unit)"),
    argument("--passwords", metavar="FILE",
             help="write the passwords of the broker users to this file (0600), for other controllers: run the command "
                  "there with a copy of the file"),
    argument("--keep-broker-users", action="store_true", help="do not change the users in the URLs"))


def secrets_actions(say: Say) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {"split": Command(lambda options, given: run_split(given, say),
                             "move the secrets of nova.conf into a file for each service, readable only by its user, "
                             "and give each service its own broker user. Can be interrupted and repeated",
                             _SPLIT)}


def daemon_actions(say: Say) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {"rights": Command(lambda options, given: rights(given, say),
                              "print the permissions of a service's broker user, as commands for the broker", (
        argument("daemon", choices=control_rights.USERS, metavar="DAEMON", help="the name of its program"),
        argument("--vhost", default=control_rights.VHOST,
                 help=f"the control plane's vhost ({control_rights.VHOST})")))}
