"""``nova-manage host``: which hosts are believed. Enrolling one, expelling it, and its rights on the broker."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nova import errors
from nova.conf.base import Options
from nova.manage.command import JSON, Command, ConductorOf, argument
from nova.manage.output import write_json, write_private
from nova.model.host.services import EnrolledHost, ServiceQuery
from nova.model.placement import room
from nova.privileged.runner import CommandRunner, SystemRunner
from nova.rpc import host_rights
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]

#: As their programs are called -> as they register.
REGISTERS = {"nova-api-metadata": "nova-metadata"}
HOST = "{host}"  # in a file's name
BROKER_S = 60.0  # for rabbitmqctl


def enroll(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """The token alone on standard output, for scripts, or into a file; on standard error, what to do with it. Of
    several hosts each name stands before its token, and in the file's name. 2: one option cannot be for several."""
    runs = tuple(REGISTERS.get(one, one) for one in given.runs.replace(",", " ").split())
    several = len(given.host) > 1
    if several and (given.console_address or given.write and HOST not in given.write):
        say(f"--console-address is one host's. --write FILE is, too, unless {HOST} stands in FILE for the host's name.")
        return 2
    for host in given.host:
        token = conductor.enroll_host(host, runs, tuple(given.console_address))
        if given.write:
            write_private(Path(given.write.replace(HOST, host)), f"{token}\n")
        else:
            say(f"{host} {token}" if several else token)
    _say_what_to_do(given.host, runs)
    if not given.console_address and "nova-compute" in runs:
        sys.stderr.write("Consoles of guests are at the address that the host reports first. If you know it, name it "
                         "with --console-address: then a thief of the machine can name no other.\n")
    return 0


def _say_what_to_do(hosts: Sequence[str], runs: Sequence[str]) -> None:
    for host in hosts:
        sys.stderr.write(
            f"{host} may run {', '.join(runs)}. Within a day, its token has to be in the file host_token in "
            f"[DEFAULT]state_path on {host}, readable by its daemons alone:\n"
            f"    install -m 0600 -o nova /dev/stdin /var/lib/nova/host_token\n"
            f"The token is good once. The host's broker user needs: nova-manage host rights {host}\n")


def expel(conductor: ConductorRPC, given: argparse.Namespace, say: Say, runner: CommandRunner) -> int:
    """NotFound: the host was never enrolled."""
    conductor.expel_host(given.host)
    say(f"Within seconds nothing that {given.host} says is believed, and no order goes there. Its servers can be "
        f"evacuated: nova host-evacuate {given.host}")
    say(_close_connections(f"host-{given.host}", runner))
    return 0


def _close_connections(user: str, runner: CommandRunner) -> str:
    """Delete a broker user, which closes its connections. What was done, or what is left to do."""
    try:
        runner.run(["rabbitmqctl", "--quiet", "delete_user", user])
    except errors.NovaError as error:
        return (f"The broker user {user} is still there ({error.message}). On a machine of the broker, as root, run: "
                f"rabbitmqctl delete_user {user}. Until then it can send messages, which no conductor reads.")
    return f"The broker user {user} is deleted, and its connections are closed."


def accept(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """NotFound: the host is not enrolled. What is printed is what is accepted, whatever the host says meanwhile."""
    claimed = next((one.claimed_room for one in conductor.list_enrolled_hosts() if one.host == given.host), {})
    conductor.accept_host(given.host, claimed)
    say(f"{given.host} counts as having " + ", ".join(f"{claimed[name]} {name}" for name in sorted(claimed))
        if claimed else f"{given.host} has not said yet what it has: what it says first is believed.")
    return 0


def _waiting(host: EnrolledHost) -> str:
    """What a host claims beyond what is believed of it; empty: nothing."""
    return ", ".join(f"{host.claimed_room[name]} {name} (accepted: {host.accepted_room[name]})"
                     for name in room.beyond(host.accepted_room, host.claimed_room))


def rights(given: argparse.Namespace, say: Say) -> int:
    """As command lines for the broker."""
    for words in host_rights.commands(given.host, given.vhost):
        say(f"rabbitmqctl {shlex.join(words)}")
    return 0


def listed(conductor: ConductorRPC, given: argparse.Namespace, table: Table) -> int:
    """Every host of any daemon, with its zone; with ``--zone`` those of it. And which of them are enrolled."""
    zones = {one.host: one.zone for one in conductor.list_services(ServiceQuery())}
    enrolled = {one.host: one for one in conductor.list_enrolled_hosts()}
    names = [host for host in sorted({*zones, *enrolled}) if given.zone in (None, zones.get(host))]
    if given.json:
        return write_json([{"host": host, "zone": zones.get(host), "enrolled": enrolled.get(host)} for host in names])
    rows = [(host, zones.get(host), *_of(enrolled.get(host))) for host in names]
    table(("host", "zone", "may run", "enrolled", "state"), rows)
    return 0


def _of(host: EnrolledHost | None) -> tuple[str, object, str]:
    if host is None:
        return "", None, "control daemons only"
    if host.expelled_at is not None:
        return "", host.enrolled_at, f"expelled {host.expelled_at}"
    if not host.readable:
        return ", ".join(host.runs), host.enrolled_at, "no key of [conductor]host_secret_key opens its secret"
    if host.joined_at is None:
        return ", ".join(host.runs), host.enrolled_at, "waits for its token" if host.waits else "its token is over"
    waiting = _waiting(host)
    if waiting:
        return ", ".join(host.runs), host.enrolled_at, f"claims {waiting}: nova-manage host accept {host.host}"
    return ", ".join(host.runs), host.enrolled_at, f"has its secret since {host.joined_at}"


def new_key(say: Say) -> int:
    """For ``[conductor]host_secret_key``."""
    from nova.model.security import secret_wrap

    say(secret_wrap.new_key())
    return 0


def change_secret(options: Options, say: Say) -> int:
    """On the host itself. host.DamagedSecret; Unavailable: no conductor answers, so say it again."""
    from nova.rpc import host_secret
    from nova.rpc.contracts.conductor_host import ConductorHostRPC
    from nova.rpc.transport import HostsBus

    secret = host_secret.of_host(options)
    conductor = HostsBus(options, options.host, secret).client(ConductorHostRPC)
    try:
        secret.change(lambda fresh: conductor.change_secret(options.host, fresh))
    except errors.Unavailable as error:
        say(f"The secret was not changed for certain: {error.message} Say this again within an hour.")
        return 1
    say(f"{options.host} has a new secret, which its daemons use from now on. The one before is good for an hour.")
    return 0


_ENROLL = (
    argument("host", nargs="+", help="[DEFAULT]host there: the machine's host name, unless set"),
    argument("--runs", default="nova-compute", metavar="PROGRAMS",
             help="what each runs, parted by commas: nova-compute, nova-network, nova-api-metadata"),
    argument("--console-address", nargs="+", default=[], metavar="ADDRESS",
             help="the only addresses of its guests' consoles; left out: the address that it reports when it comes "
                  "first"),
    argument("--write", metavar="FILE",
             help=f"write the token into this file (0600), and print it nowhere; {HOST} in it is the host's name"))


def actions(conductor: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Rows for the table of commands, of nova-manage's own making."""
    host = argument("host", help="[DEFAULT]host there: the machine's host name, unless set")
    return {
        "list": Command(lambda options, given: listed(conductor(options), given, table),
                        "hosts, their zones, and which of them are enrolled, with what and since when",
                        (argument("--zone"), JSON)),
        "enroll": Command(lambda options, given: enroll(conductor(options), given, say),
                          "enroll hosts: print a token each, which its host shows once, within a day", _ENROLL),
        "accept": Command(lambda options, given: accept(conductor(options), given, say),
                          "use all the room of a host that reports more than twice its first size",
                          (host,)),
        **dict.fromkeys(("revoke", "expel"), Command(
            lambda options, given: expel(conductor(options), given, say, SystemRunner(BROKER_S)),
            "revoke a host's enrolment, within seconds: all its messages are refused, and its "
            "broker user is deleted where rabbitmqctl can be run", (host,))),
        "rights": Command(lambda options, given: rights(given, say),
                          "print the rights of a host's broker user, as commands for the broker", (
            host, argument("--vhost", default=host_rights.VHOST,
                           help=f"the hosts' vhost ({host_rights.VHOST})"))),
        "new-key": Command(lambda options, given: new_key(say),
                           "print a key for [conductor]host_secret_key, which wraps hosts' secrets in the database"),
        "change-secret": Command(lambda options, given: change_secret(options, say),
                                 "on a host: take a new secret, while its daemons run"),
    }
