"""``nova-manage host isolate`` and ``readmit``: move hosts between security modes, and admit hosts that return.

Both change only the database: conductors see the change within two seconds. See 'Security modes' in doc/security.rst.
"""

from __future__ import annotations

import argparse
import functools
import secrets
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from nova import errors, failures
from nova.conductor.hosts.generated_keys import keep_key
from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.db.host import cell_mappings, enrolments, security
from nova.db.host.generated_keys import CELLS, HOSTS
from nova.db.sql.engine import Connection, Database
from nova.manage.databases import synced
from nova.manage.isolation_table import HOST
from nova.manage.output import write_private
from nova.model.security.secret_wrap import SecretWrap
from nova.model.security.security_modes import SecurityMode, stated
from nova.privileged.runner import CommandRunner
from nova.rpc import host_rights
from nova.rpc.proofs import FIRST_CONTACT

Say = Callable[[str], None]

PLACEHOLDER = "PASSWORD"
UNDO = ("In the host's nova.conf, remove hosts_transport_url and set transport_url and the credentials as before; "
        "remove state_path/bounded_mode there; then restart nova's services on it. Guests keep running.")


def wrap_of(options: Options, cell: Database) -> SecretWrap:
    """Return the encryption of host secrets that conductors use. Raises config.HostSecretKey without a key;
    config.GeneratedKey."""
    from nova.cmd.conductor_hosts import cloud_wrap

    with cell.reading() as tx:
        mode = security.mode(tx)
    wrap: SecretWrap = cloud_wrap(options, cell, mode)
    return wrap


def wrap_secrets(options: Options, say: Say) -> int:
    """Encrypt all host secrets, and the URLs of all cells, with the first key, one host or cell at a time; repeat it if
    interrupted. Return 1 if no key decrypts one of them. Raises config.HostSecretKey without a key."""
    hosts, cells = _wrap_hosts(options, say), _wrap_cells(options, say)
    sealed = hosts.sealed + cells.sealed
    say(f"The secrets of {hosts.wrapped} hosts and the URLs of {cells.wrapped} cells are encrypted with the first key."
        + ("" if sealed else " The other keys can be removed."))
    return int(bool(sealed))


class Rewrapped(NamedTuple):
    """The number of hosts or cells whose secrets were encrypted again, and of hosts or cells without a fitting key."""

    wrapped: int
    sealed: int


def _rewrap(names: Collection[str], rewrap: Callable[[str], object], say: Say) -> Rewrapped:
    sealed: list[errors.NovaError] = []
    for name in names:
        with failures.parked(sealed.append, on=(errors.host.SecretSealed, errors.config.CellUrlSealed)):
            rewrap(name)
    for error in sealed:
        say(f"{error.message} {error.cure}")
    return Rewrapped(len(names) - len(sealed), len(sealed))


def _wrap_hosts(options: Options, say: Say) -> Rewrapped:
    cell = synced(options, "cell")
    wrap = wrap_of(options, cell)
    with cell.reading() as tx:
        hosts, mode = enrolments.with_secrets(tx), security.mode(tx)
    made = _rewrap(hosts, lambda host: cell.transact(lambda tx: enrolments.rewrap(tx, host=host, wrap=wrap)), say)
    if mode is not SecurityMode.UPSTREAM and not made.sealed:
        cell.transact(HOSTS.drop)
    return made


def _wrap_cells(options: Options, say: Say) -> Rewrapped:
    """Encrypt the URLs of cells again. Cells without access to the api database have none of them."""
    from nova.cmd.conductor_hosts import cells_wrap

    if not options.api_database.connection:
        return Rewrapped(0, 0)
    api = synced(options, "api")
    wrap = cells_wrap(options, api)
    with api.reading() as tx:
        cells = cell_mappings.by_uuid(tx)
    made = _rewrap(cells, lambda uuid: api.transact(lambda tx: cell_mappings.rewrap(tx, uuid, wrap)), say)
    if options.conductor.host_secret_key and not made.sealed:
        api.transact(CELLS.drop)
    return made


# -- isolate

def isolate(options: Options, given: argparse.Namespace, say: Say, runner: CommandRunner) -> int:
    """Move hosts to bounded mode, or back with --revert. Return 2 if neither hosts nor --all are given, or the cloud is
    in the wrong mode for --revert."""
    if bool(given.host) == given.all:
        say("Specify hosts, or --all.")
        return 2
    cell = synced(options, "cell")
    with cell.reading() as tx:
        mode, known = security.mode(tx), enrolments.names(tx)
    if unknown := sorted(set(given.host) - known.keys()):
        raise errors.host.NotEnrolled(host=", ".join(unknown))
    if given.revert:
        return _revert_all(options, cell, say) if given.all else _revert(cell, given.host, mode, say)
    if mode is not SecurityMode.UPSTREAM:
        say(f"Nothing to do. {stated(SecurityMode.BOUNDED)}")
        return 0
    if asked_mode(options) is SecurityMode.UPSTREAM or not options.hosts_transport_url:
        raise errors.config.Missing(option="[DEFAULT]hosts_transport_url", cure="first set the options of bounded mode "
                                    "for conductors and image proxies, and restart them; see doc/security.rst")
    waiting = [host for host, isolated in known.items() if not isolated and (given.all or host in given.host)]
    if given.all and not waiting:
        return _complete(cell, say)
    if len(waiting) > 1 and given.write and HOST not in given.write:
        say(f"--write FILE applies to one host, unless FILE has {HOST} for the host's name.")
        return 2
    for host in waiting:
        _prepare(options, host, given.write, say, runner)
    say(f"Write each line to [DEFAULT] of that host's nova.conf, remove transport_url and all passwords there, and "
        f"restart nova's services on it. Guests keep running. Once all hosts are back, run: nova-manage host isolate "
        f"--all ({len(waiting)} of {len(known)} hosts are not isolated yet)" if waiting else
        "These hosts are isolated.")
    return 0


def _prepare(options: Options, host: str, write: str | None, say: Say, runner: CommandRunner) -> None:
    """Create a host's broker user, and print or write the line for its nova.conf."""
    password = secrets.token_urlsafe(24)
    try:
        make_user(runner, host, password, vhost_of(options))
    except errors.NovaError as error:
        password = PLACEHOLDER
        say(f"The broker user of {host} could not be created ({error.message}). On a broker node, as root, run "
            f"'rabbitmqctl add_user host-{host}', which asks for its password, then the commands that 'nova-manage "
            f"host rights {host} --vhost {vhost_of(options)}' prints; and write the password instead of {PLACEHOLDER}.")
    line = f"hosts_transport_url = {host_url(options, host, password)}"
    if write:
        path = Path(write.replace(HOST, host))
        write_private(path, f"[DEFAULT]\n{line}\n")
        say(f"{host}: see {path}")
    else:
        say(f"{host}: {line}")


def vhost_of(options: Options) -> str:
    """Return the hosts' vhost from the conductors' configuration."""
    return urlsplit(options.hosts_transport_url or "").path.removeprefix("/")


def host_url(options: Options, host: str, password: str) -> str:
    """Return the ``hosts_transport_url`` of a host: the conductors' URL with the host's user."""
    parts = urlsplit(options.hosts_transport_url or "")
    places = ",".join(f"host-{host}:{password}@{one.rpartition('@')[2]}" for one in parts.netloc.split(","))
    return parts._replace(netloc=places).geturl()


def make_user(runner: CommandRunner, host: str, password: str, vhost: str) -> None:
    """Create a host's broker user with its permissions; an existing one gets a new password. Raises
    host.CommandFailed."""
    user = f"host-{host}"
    try:
        runner.run(["rabbitmqctl", "--quiet", "add_user", user], stdin=f"{password}\n")
    except errors.host.CommandFailed as error:
        if "not installed" in error.message:
            raise
        runner.run(["rabbitmqctl", "--quiet", "change_password", user], stdin=f"{password}\n")
    for words in host_rights.commands(host, vhost):
        runner.run(["rabbitmqctl", "--quiet", *words])


def _complete(cell: Database, say: Say) -> int:
    """Record bounded mode, after all hosts are isolated."""
    cell.transact(lambda tx: security.change_mode(tx, SecurityMode.BOUNDED))
    say(f"{stated(SecurityMode.BOUNDED)} Messages from hosts in the vhost of transport_url are rejected from now on. "
        "Restart the conductors. Then run 'nova-manage host wrap-secrets', and change the passwords that hosts had: of "
        "the broker, Keystone and the databases.")
    return 0


def _revert(cell: Database, hosts: Sequence[str], mode: SecurityMode | None, say: Say) -> int:
    if mode is not SecurityMode.UPSTREAM:
        say("The cloud is in bounded mode. First run: nova-manage host isolate --all --revert")
        return 2
    cell.transact(functools.partial(enrolments.let_return, hosts=hosts))
    say(UNDO)
    return 0


def _revert_all(options: Options, cell: Database, say: Say) -> int:
    """Return to upstream mode. The key of host secrets and of cells' URLs is stored in the databases, so conductors do
    not need the configured one."""
    from nova.cmd.conductor_hosts import cell_key_passwords, key_passwords

    keys = options.conductor.host_secret_key
    keep_key(cell, HOSTS, key_passwords(options), keys)
    if options.api_database.connection:
        keep_key(synced(options, "api"), CELLS, cell_key_passwords(options), keys)

    def write(tx: Connection) -> None:
        security.change_mode(tx, SecurityMode.UPSTREAM)
        enrolments.let_return(tx, enrolments.names(tx))
    cell.transact(write)
    say(f"{stated(SecurityMode.UPSTREAM)} Restart the conductors, which then serve both vhosts. Then, one by one: "
        f"{UNDO[0].lower()}{UNDO[1:]} Remove the options of bounded mode from the conductors last.")
    return 0


# -- readmit

def readmit(options: Options, given: argparse.Namespace, say: Say) -> int:
    """Let hosts register a new secret. Return 2 if neither hosts nor --all are given. Raises host.NotEnrolled."""
    if bool(given.host) == given.all:
        say("Specify hosts, or --all.")
        return 2
    cell = synced(options, "cell")
    with cell.reading() as tx:
        mode, known = security.mode(tx), enrolments.names(tx)
    wrap = _wrap_or_new(options, cell) if given.all else wrap_of(options, cell)
    for host in given.host or known:
        _readmit(cell, wrap, host, mode, say)
    if mode is SecurityMode.UPSTREAM:
        say("For a day, the first machine that registers with such a name gets it. Restart nova's services on the "
            "correct machine.")
    return 0


def _readmit(cell: Database, wrap: SecretWrap, host: str, mode: SecurityMode | None, say: Say) -> None:
    token = FIRST_CONTACT if mode is SecurityMode.UPSTREAM else secrets.token_hex(32)
    wrapped = wrap.wrapped(host, token)
    if not cell.transact(lambda tx: enrolments.readmit(tx, host, wrapped)):
        raise errors.host.NotEnrolled(host=host)
    say(f"{host} may register a new secret." if mode is SecurityMode.UPSTREAM else
        f"{host}: write this token to state_path/host_token there (mode 0600), and restart nova's services: {token}")


def _wrap_or_new(options: Options, cell: Database) -> SecretWrap:
    """Return the encryption of host secrets. A generated key that no password decrypts is discarded, with all secrets
    that it encrypted."""
    try:
        return wrap_of(options, cell)
    except errors.config.GeneratedKey:
        cell.transact(HOSTS.drop)
        return wrap_of(options, cell)
