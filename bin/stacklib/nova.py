"""nova's daemons: their programs, rooms and files; the database tables and the first network."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from . import novaconf, systemd, venvs
from .control import last_lines
from .errors import StackError
from .layout import BRIDGE, CHECKOUT, FIRST, GUEST_CIDR, Cell, Compute, Layout, write_private
from .releases import ACTIVE
from .spec import CLOUD, Daemon, Probe
from .stack import CONDUCTOR_USER, SERVICE_USER, Stack

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.manage.secret_files import readers  # noqa: E402

NETWORK_LABEL = "private"
WARNING, FAILURE = 1, 2  # of nova-status: its exit status, and a check's result


@dataclass(frozen=True)
class Program:
    """A control daemon. `root`: it runs as root instead of its own user; `proxy`: it reads the file for consoles."""

    name: str
    root: bool = False
    proxy: bool = False
    tier: int = CLOUD

    @property
    def user(self) -> str | None:
        return None if self.root else readers.user_of(self.name)


CONDUCTOR = Program("nova-conductor")
CONTROL = (
    Program("nova-scheduler", tier=CLOUD + 1),
    Program("nova-network", root=True, tier=CLOUD + 1),  # makes bridges, runs dnsmasq and iptables
    Program("nova-imageproxy", tier=CLOUD + 1),
    Program("nova-api", tier=CLOUD + 2),
    Program("nova-placement-api", tier=CLOUD + 2),
)
EC2 = (
    Program("nova-cert", tier=CLOUD + 1),
    Program("nova-objectstore", tier=CLOUD + 2),
    Program("nova-api-ec2", tier=CLOUD + 2),
)
CONSOLE_AUTH = Program("nova-consoleauth", proxy=True, tier=CLOUD + 1)
APIS = ("nova-placement-api", "nova-objectstore", "nova-api-ec2", "nova-api")
COMPUTE = Program("nova-compute", root=True, tier=CLOUD + 1)
OWN_USERS = "broker-users"  # the stamp of a broker that has a user for each daemon
#: Directory below the controller's state: its owner.
STATE = {
    "CA": "nova-cert",
    "keys": "nova-cert",
    "buckets": "nova-objectstore",
    "decryption": "nova-objectstore",
    "decryption-jobs": "nova-objectstore",
}


def write_files(stack: Stack, own_users: bool | None = None) -> None:
    """Write the configuration of all daemons.

    `own_users`: whether each daemon uses its own broker user; None: only if the broker has these users.
    """
    layout, secrets = stack.layout, stack.secrets
    own_users = stack.done(OWN_USERS) if own_users is None else own_users
    stack.directory("etc", "nova", owner="root", group=SERVICE_USER)  # the daemons do not change their own files
    stack.directory("data", "nova", mode=0o755)
    stack.directory("data", "nova", layout.controller_host, owner=SERVICE_USER, mode=0o755)
    for name, owner in STATE.items() if layout.choices.ec2 else ():
        stack.state_directory(layout.nova_state(layout.controller_host) / name, owner)
    if layout.choices.as_upstream:
        _write_as_upstream(stack)
        return
    for program in programs(layout):
        text = novaconf.text(novaconf.own(layout, secrets, program.name, own_users))
        write_private(novaconf.own_file(layout, program.name), text, owner=systemd.user_of(stack, program.name))
    for cell in layout.further_cells:
        stack.directory("etc", f"nova-{cell.name}", owner="root", group=SERVICE_USER)
        text = novaconf.text(novaconf.cell_conductor(layout, secrets, cell))
        write_private(novaconf.cell_files(layout, cell)[1], text, owner=systemd.user_of(stack, CONDUCTOR.name))
    controls = (novaconf.control_file(layout), *(novaconf.cell_files(layout, cell)[0] for cell in layout.further_cells))
    for path, settings in (
        *((path, novaconf.shared(layout, secrets)) for path in controls),
        (novaconf.proxies_file(layout), novaconf.console_proxies(layout)),
    ):
        write_private(path, novaconf.text(settings), 0o640, owner="root", group=SERVICE_USER)
    for host in layout.computes:
        if host.name != layout.controller_host:
            stack.directory("data", "nova", host.name, mode=0o755)
        write_private(novaconf.compute_file(layout, host), novaconf.text(novaconf.compute(layout, secrets, host)))


def _write_as_upstream(stack: Stack) -> None:
    layout, secrets = stack.layout, stack.secrets
    text = novaconf.text(novaconf.as_upstream(layout, secrets))
    write_private(novaconf.control_file(layout), text, 0o640, owner="root", group=SERVICE_USER)
    for host in layout.computes:
        if host.name != layout.controller_host:
            stack.directory("data", "nova", host.name, mode=0o755)
        text = novaconf.text(novaconf.compute_as_upstream(layout, secrets, host))
        write_private(novaconf.compute_file(layout, host), text)


def prepare_databases(stack: Stack, venv: str = ACTIVE) -> str:
    """Migrate the tables to the version of the environment's release."""
    release = venvs.stamp(stack.layout, venv) + stack.layout.choices.database
    if stack.done("nova-db", release):
        return "unchanged"
    manage(stack, "api_db", "sync", venv=venv)
    manage(stack, "db", "sync", venv=venv)
    for cell in stack.layout.further_cells:
        manage(stack, "db", "sync", "--local_cell", venv=venv, files=novaconf.cell_files(stack.layout, cell))
    stack.mark_done("nova-db", release)
    return "tables made"


def record_cells(stack: Stack) -> str:
    """Record the cells of a stack with several, the first one first. The URLs are in files: a command line would show
    their passwords to all users."""
    layout = stack.layout
    new = [cell for cell in layout.cells if not stack.done(f"recorded-{cell.name}")]
    known = manage(stack, "cell_v2", "list_cells").split() if new else []  # an `up` that was killed may have made some
    for cell in new:
        if cell.name not in known:
            more = () if cell.is_first else novaconf.cell_files(layout, cell)
            manage(stack, "cell_v2", "create_cell", "--name", cell.name, files=(*_conductors_files(layout), *more))
        stack.mark_done(f"recorded-{cell.name}")
    return ", ".join(cell.name for cell in new) or "unchanged"


def enroll(stack: Stack) -> str:
    """Enrol this stack's hosts: the controller, for nova-network and the metadata service, and each compute host. A
    host with both roles is enrolled for all of these services."""
    layout = stack.layout
    if layout.choices.as_upstream:
        return "hosts enrol themselves"
    cells = {layout.controller_host: FIRST, **{host.name: host.cell for host in layout.computes}}
    runs = {layout.controller_host: ["nova-network", "nova-api-metadata"]}
    for host in layout.computes:
        runs.setdefault(host.name, []).append("nova-compute")
    new: dict[tuple[str, Cell], list[str]] = {}
    for name, daemons in runs.items():
        if not stack.done(f"enrolled-{name}", ",".join(daemons)):
            new.setdefault((",".join(daemons), cells[name]), []).append(name)
    for (words, cell), names in new.items():
        enroll_alike(stack, words, names, cell)
    return ", ".join(name for names in new.values() for name in names) or "unchanged"


def enroll_alike(stack: Stack, runs: str, names: list[str], cell: Cell) -> None:
    """Enrol hosts of a cell that run the same daemons with one process, which takes seconds to start on a busy
    machine."""
    layout = stack.layout
    folder = stack.directory("data", CONDUCTOR_USER, owner=CONDUCTOR_USER, mode=0o700)
    named = ("--cell", cell.name) if layout.further_cells else ()
    manage(stack, "host", "enroll", *names, "--runs", runs, "--write", str(folder / "token-{host}"), *named)
    for name in names:
        written = folder / f"token-{name}"
        owner = SERVICE_USER if name == layout.controller_host else None
        write_private(layout.nova_state(name) / "host_token", written.read_text(), owner=owner)
        written.unlink()
        stack.mark_done(f"enrolled-{name}", runs)


def prepare_network(stack: Stack) -> str:
    if stack.layout.choices.neutron:
        return "provided by Neutron"
    if stack.done("nova-network", GUEST_CIDR):
        return "unchanged"
    try:
        manage(stack, "network", "create", "--label", NETWORK_LABEL, "--fixed_range_v4", GUEST_CIDR, "--bridge", BRIDGE)
    except StackError:
        if GUEST_CIDR not in manage(stack, "network", "list"):  # an `up` that was killed may have made it
            raise
    stack.mark_done("nova-network", GUEST_CIDR)
    return f"{NETWORK_LABEL} {GUEST_CIDR}"


def manage(stack: Stack, *arguments: str, venv: str = ACTIVE, files: tuple[Path, ...] = ()) -> str:
    """Run nova-manage with these configuration files; without any, with the super conductor's."""
    program, words = stack.layout.program(venv, "nova-manage"), _options(*(files or _conductors_files(stack.layout)))
    return stack.command("nova-manage", [program, *words, *arguments], user=CONDUCTOR_USER)


class Found(NamedTuple):
    """The result of one check of nova-status; ``result`` is its number there."""

    check: str
    result: int
    details: str | None


def upgrade_check(stack: Stack, venv: str) -> list[Found]:
    """Return the results of nova-status (of the environment's release) on this stack. Raises StackError if it fails."""
    program = stack.layout.program(venv, "nova-status")
    argv = [program, *_options(*_conductors_files(stack.layout)), "upgrade", "check", "--json"]
    said = stack.command("nova-status", argv, user=CONDUCTOR_USER, fine=(0, WARNING, FAILURE))
    told = json.loads(_object_in(said, stack.layout.log("setup-nova-status")))
    return [Found(**row) for row in told["checks"]]


def _object_in(said: str, log: Path) -> str:
    """Return the line with the JSON object. Raises StackError if there is none: the exit status of a program that
    fails is 1, which also means a warning."""
    found = next((line for line in reversed(said.splitlines()) if line.startswith("{")), "")
    if not found:
        raise StackError(f"nova-status failed; the end of {log}:\n{last_lines(log)}", "no daemon was restarted")
    return found


def _conductors_files(layout: Layout) -> tuple[Path, ...]:
    own = () if layout.choices.as_upstream else (novaconf.conductor_file(layout),)
    return (novaconf.control_file(layout), *own)


def upgrade_order(stack: Stack) -> list[Daemon]:
    """Return all of nova's daemons in the order of an upgrade: RPC servers before their clients."""
    control = {daemon.name: daemon for daemon in control_daemons(stack)}
    apis = [control.pop(name) for name in APIS if name in control]
    return [*conductors(stack), *control.values(), *apis, *compute_daemons(stack)]


def conductors(stack: Stack) -> list[Daemon]:
    """Return the conductors, which start first: all other daemons and `nova-manage network create` call them."""
    layout = stack.layout
    files = {cell.own(CONDUCTOR.name): novaconf.cell_files(layout, cell) for cell in layout.further_cells}
    return _controllers(stack, (CONDUCTOR,)) + [
        _daemon(stack, CONDUCTOR, name, layout.controller_room, list(own)) for name, own in files.items()
    ]


def control_daemons(stack: Stack) -> list[Daemon]:
    return _controllers(stack, tuple(one for one in programs(stack.layout) if one is not CONDUCTOR))


def programs(layout: Layout) -> tuple[Program, ...]:
    """Return all programs that run on the controller of this stack."""
    proxies = (Program(f"nova-{name}", proxy=True, tier=CLOUD + 2) for name in novaconf.proxies(layout))
    absent = {"nova-network"} if layout.choices.neutron else set()
    if layout.choices.as_upstream:  # hosts call Glance directly, and conductors validate console tokens
        absent |= {"nova-imageproxy", CONSOLE_AUTH.name}
    more = EC2 if layout.choices.ec2 else ()
    ours = (*CONTROL, *more, CONSOLE_AUTH)
    return (CONDUCTOR, *(one for one in ours if one.name not in absent), *proxies)


def _controllers(stack: Stack, programs: tuple[Program, ...]) -> list[Daemon]:
    layout, made = stack.layout, []
    for program in programs:
        files = [novaconf.control_file(layout)]
        if not layout.choices.as_upstream:
            files += [novaconf.proxies_file(layout)] if program.proxy else []
            files.append(novaconf.own_file(layout, program.name))
        made.append(_daemon(stack, program, program.name, layout.controller_room, files))
    return made


def compute_daemons(stack: Stack) -> list[Daemon]:
    return [
        _daemon(stack, COMPUTE, compute_name(stack, host), host.room, [novaconf.compute_file(stack.layout, host)])
        for host in stack.layout.computes
    ]


def compute_name(stack: Stack, host: Compute) -> str:
    return COMPUTE.name if len(stack.layout.computes) == 1 and not stack.layout.sandbox else f"nova-compute-{host.name}"


def _daemon(stack: Stack, program: Program, name: str, room: str | None, files: list[Path]) -> Daemon:
    argv = (stack.layout.program(ACTIVE, program.name), *_options(*files))
    daemon = Daemon(
        name=name,
        argv=argv,
        room=room,
        user=program.user,
        tier=program.tier,
        probe=Probe("notify"),
        env={"PATH": f"{stack.layout.venvs}/{ACTIVE}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONWARNINGS": "ignore"},
        start_seconds=90,
        stop_seconds=30,
    )
    return daemon.stamped(*files, extra=venvs.stamp(stack.layout, ACTIVE))


def _options(*paths: Path) -> tuple[str, ...]:
    return tuple(word for path in paths for word in ("--config-file", str(path)))
