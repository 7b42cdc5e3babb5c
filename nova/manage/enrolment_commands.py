"""``nova-manage host``: enroll and revoke hosts, and show their permissions on the broker."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from nova import errors, failures
from nova.conf._options import Options
from nova.manage.command import JSON, Command, ConductorOf, Table, argument
from nova.manage.output import private_file, write_json
from nova.model.host.services import EnrolledHost, ServiceQuery
from nova.model.placement import accepted_capacity
from nova.privileged.runner import CommandRunner, SystemRunner
from nova.rpc import host_rights
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]

#: Program name -> name by which the service registers.
REGISTERS = {"nova-api-metadata": "nova-metadata"}
HOST = "{host}"  # in a file's name
BROKER_S = 60.0  # for rabbitmqctl


def enroll(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """Enroll hosts: print only the token on standard output, for scripts, or write it to a file, and print instructions
    on standard error. For several hosts, each name precedes its token, and is in the file's name. Return 1 if some host
    could not be enrolled: it is named, and the others are enrolled. Return 2 if an option applies to one host only."""
    runs = tuple(REGISTERS.get(one, one) for one in given.runs.replace(",", " ").split())
    hosts = tuple(dict.fromkeys(given.host))  # a second token of a host would make its first one invalid
    several = len(hosts) > 1
    if several and (given.console_address or given.write and HOST not in given.write):
        say(f"--console-address applies to one host. So does --write FILE, unless FILE has {HOST} for the host's name.")
        return 2

    def one_more(host: str) -> None:
        with private_file(Path(given.write.replace(HOST, host))) if given.write else contextlib.nullcontext() as file:
            token = conductor.enroll_host(host, runs, tuple(given.console_address), given.cell)
            if file:
                file.write(f"{token}\n")
        if not file:
            say(f"{host} {token}" if several else token)
    if not several:
        one_more(hosts[0])
    enrolled = _each(hosts, one_more) if several else hosts
    _say_what_to_do(enrolled, runs)
    if enrolled and not given.console_address and "nova-compute" in runs:
        sys.stderr.write("The first console address that the host reports is trusted. If you know the address, set it "
                         "with --console-address, so that an attacker on the host cannot report another one.\n")
    return 0 if len(enrolled) == len(hosts) else 1


def _each(hosts: Sequence[str], enroll_one: Callable[[str], None]) -> tuple[str, ...]:
    """Enroll several hosts. Name the others on standard error, with the reason, and return the enrolled ones."""
    enrolled: list[str] = []
    for index, host in enumerate(hosts):
        error = failures.failure_of(enroll_one, host)
        if isinstance(error, errors.Unavailable):  # further calls would wait as long, and fail alike
            _say_not_enrolled(", ".join(hosts[index:]), error.message)
            break
        if isinstance(error, errors.NovaError):
            _say_not_enrolled(host, error.message)
        elif isinstance(error, OSError):
            _say_not_enrolled(host, f"{error.filename} cannot be written: {error.strerror}.")
        elif error is not None:
            raise error
        else:
            enrolled.append(host)
    return tuple(enrolled)


def _say_not_enrolled(names: str, reason: str) -> None:
    sys.stderr.write(f"Not enrolled: {names}. {reason} Then run this command again for these hosts.\n")


def _say_what_to_do(hosts: Sequence[str], runs: Sequence[str]) -> None:
    for host in hosts:
        sys.stderr.write(
            f"{host} may run {', '.join(runs)}. Within a day, write its token to the file host_token in "
            f"[DEFAULT]state_path on {host}, readable only by its services:\n"
            f"    install -m 0600 -o nova /dev/stdin /var/lib/nova/host_token\n"
            f"The token is valid once. Permissions of the host's broker user: nova-manage host rights {host}\n")


def expel(conductor: ConductorRPC, given: argparse.Namespace, say: Say, runner: CommandRunner) -> int:
    """Revoke a host's enrolment. Raises NotFound if the host was never enrolled."""
    conductor.expel_host(given.host)
    say(f"Within seconds all messages from {given.host} are rejected, and it gets no orders. Its servers can be "
        f"evacuated: nova host-evacuate {given.host}")
    say(_close_connections(f"host-{given.host}", runner))
    return 0


def _close_connections(user: str, runner: CommandRunner) -> str:
    """Delete a broker user, which closes its connections. Return a text with the result, or with the remaining step."""
    try:
        runner.run(["rabbitmqctl", "--quiet", "delete_user", user])
    except errors.NovaError as error:
        return (f"The broker user {user} still exists ({error.message}). On a broker node, as root, run: "
                f"rabbitmqctl delete_user {user}. Until then it can send messages, but conductors reject them.")
    return f"The broker user {user} is deleted, and its connections are closed."


def accept(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """Accept the capacity that a host reports. Only the printed amounts are accepted, even if the host reports others
    meanwhile. Raises NotFound if the host is not enrolled."""
    claimed = next((one.claimed_room for one in conductor.list_enrolled_hosts() if one.host == given.host), {})
    conductor.accept_host(given.host, claimed)
    say(f"{given.host} is accepted with " + ", ".join(f"{claimed[name]} {name}" for name in sorted(claimed))
        if claimed else f"{given.host} has not reported its capacity yet: its first report will be accepted.")
    return 0


def _waiting(host: EnrolledHost) -> str:
    """Return the reported capacity beyond the accepted one; empty if there is none."""
    return ", ".join(f"{host.claimed_room[name]} {name} (accepted: {host.accepted_room[name]})"
                     for name in accepted_capacity.beyond(host.accepted_room, host.claimed_room))


def rights(given: argparse.Namespace, say: Say) -> int:
    """Print the permissions as command lines for the broker."""
    for words in host_rights.commands(given.host, given.vhost):
        say(f"rabbitmqctl {shlex.join(words)}")
    return 0


def listed(conductor: ConductorRPC, given: argparse.Namespace, table: Table) -> int:
    """List all hosts of services with their zones and enrolment; with ``--zone`` only the hosts of that zone."""
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
        return "", None, "control plane only"
    if host.expelled_at is not None:
        return "", host.enrolled_at, f"revoked {host.expelled_at}"
    if not host.readable:
        return ", ".join(host.runs), host.enrolled_at, "no key of [conductor]host_secret_key decrypts its secret"
    if host.joined_at is None:
        return ", ".join(host.runs), host.enrolled_at, "token not used yet" if host.waits else "token expired"
    waiting = _waiting(host)
    if waiting:
        return ", ".join(host.runs), host.enrolled_at, f"reports {waiting}: nova-manage host accept {host.host}"
    return ", ".join(host.runs), host.enrolled_at, f"registered its secret {host.joined_at}"


def new_key(say: Say) -> int:
    """Print a new key for ``[conductor]host_secret_key``."""
    from nova.model.security import secret_wrap

    say(secret_wrap.new_key())
    return 0


def change_secret(options: Options, say: Say) -> int:
    """Change the secret of this host. Raises host.DamagedSecret. Return 1 if no conductor answers: run it again."""
    from nova.rpc import host_secret
    from nova.rpc.contracts.conductor_host import ConductorHostRPC
    from nova.rpc.transport import HostsBus

    secret = host_secret.of_host(options)
    conductor = HostsBus(options, options.host, secret).client(ConductorHostRPC)
    try:
        secret.change(lambda fresh: conductor.change_secret(options.host, fresh))
    except errors.Unavailable as error:
        say(f"The secret may not have been changed: {error.message} Run this command again within an hour.")
        return 1
    say(f"{options.host} has a new secret, which its services use from now on. The old secret is valid for an hour.")
    return 0


_ENROLL = (
    argument("host", nargs="+", help="[DEFAULT]host there (default: the machine's host name)"),
    argument("--runs", default="nova-compute", metavar="PROGRAMS",
             help="comma-separated services of each host: nova-compute, nova-network, nova-api-metadata"),
    argument("--console-address", nargs="+", default=[], metavar="ADDRESS",
             help="the only allowed addresses of its guests' consoles (default: the address in the host's first "
                  "report)"),
    argument("--cell", default="", metavar="NAME_OR_UUID",
             help="cell of the hosts; needed for a new host if several cells are recorded"),
    argument("--write", metavar="FILE",
             help=f"write the token to this file (0600) instead of printing it; {HOST} in it is the host's name"))


def actions(conductor: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    host = argument("host", help="[DEFAULT]host there (default: the machine's host name)")
    return {
        "list": Command(lambda options, given: listed(conductor(options), given, table),
                        "list hosts with their zones and enrolment",
                        (argument("--zone"), JSON)),
        "enroll": Command(lambda options, given: enroll(conductor(options), given, say),
                          "enroll hosts: print a token for each, which its host must present within a day", _ENROLL),
        "accept": Command(lambda options, given: accept(conductor(options), given, say),
                          "use the full capacity of a host that reports more than twice its first capacity",
                          (host,)),
        **dict.fromkeys(("revoke", "expel"), Command(
            lambda options, given: expel(conductor(options), given, say, SystemRunner(BROKER_S)),
            "revoke a host's enrolment: within seconds all its messages are rejected, and its "
            "broker user is deleted if rabbitmqctl can run here", (host,))),
        "rights": Command(lambda options, given: rights(given, say),
                          "print the permissions of a host's broker user, as commands for the broker", (
            host, argument("--vhost", default=host_rights.VHOST,
                           help=f"the hosts' vhost ({host_rights.VHOST})"))),
        "new-key": Command(lambda options, given: new_key(say),
                           "print a key for [conductor]host_secret_key, which encrypts host secrets in the database"),
        "change-secret": Command(lambda options, given: change_secret(options, say),
                                 "run on a host: change its secret, while its services run"),
    }
