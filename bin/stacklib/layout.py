"""The layout of one stack, as one value: every path, port, address and name.

No other module joins a path to the state directory or defines a port number.
"""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path

from .errors import StackError

PLAIN_STATE = Path("/var/lib/nova-stack")
SANDBOX_STATE = Path("/var/lib/nova-sandbox")
CHECKOUT = Path(__file__).resolve().parents[2]

# The services behind the APIs use non-default ports, to avoid a conflict with the machine's own broker or database.
PORTS = {
    "s3": 3333,
    "keystone": 5000,
    "amqp": 5673,
    "novncproxy": 6080,
    "xvpvncproxy": 6081,
    "spicehtml5proxy": 6082,
    "serialproxy": 6083,
    "horizon": 8000,
    "ec2": 8773,
    "compute": 8774,
    "metadata": 8775,
    "cinder": 8776,
    "placement": 8778,
    "ceph": 3300,
    "ceph-v1": 6789,
    "glance": 9292,
    "imageproxy": 9293,
    "neutron": 9696,
    "mariadb": 3307,
    "postgresql": 5433,
    "epmd": 4370,
    "erlang": 25673,
}
# Not every stack runs all of them; see `novaconf.proxies`.
PROXIES = ("novncproxy", "xvpvncproxy", "spicehtml5proxy", "serialproxy")
SERVER_PORTS = {"mariadb": "mariadb", "postgresql": "postgresql"}

CONTROLLER, SWITCH = "controller", "switch"
SHARED = "shared"  # replaces a host's name in the path of the directory that all hosts share
BRIDGE = "br100"
GUEST_CIDR, GUEST_GATEWAY = "10.11.12.0/24", "10.11.12.1"
UNIX_PATH_MAX = 107  # bytes in sockaddr_un.sun_path, less the terminating zero
LONGEST_SOCKET = len("/run/notify/nova-placement-api-00000000.sock")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The operator's options for `up`, saved in the state directory for all later commands."""

    sandbox: bool = False
    name: str = "default"
    hosts: int = 1
    driver: str = "libvirt"
    computes: int = 1
    cells: int = 1  # the compute hosts are spread over them
    database: str = "mariadb"
    auth: str = "keystone"
    demo: bool = True
    shared_storage: bool = False
    neutron: str = ""  # mode: `api`, or with agents; empty: nova-network provides networks
    volumes: str = ""  # Cinder's back end: `nfs` or `ceph`; empty: no Cinder
    dashboard: bool = False
    ec2: bool = False  # the EC2 API, with the object store and the certificates for bundled images
    as_upstream: bool = False  # upstream security mode, configured as by deployment tools

    def differences(self, other: Choices) -> list[str]:
        """Return the options whose change needs a new stack. The demo may change, and a dashboard may be added."""
        fine = {"demo", "dashboard"} if other.dashboard else {"demo"}
        names = [f.name for f in fields(self) if f.name not in fine]
        return [name for name in names if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True)
class Cell:
    """One cell, by its number. The first one is that of the super conductor; each further one has its own database,
    hosts' vhost and conductor."""

    number: int

    @property
    def name(self) -> str:
        return f"cell{self.number}"

    @property
    def is_first(self) -> bool:
        return self.number == 1

    def own(self, name: str, joint: str = "-") -> str:
        """Return the name of this cell's own thing of a kind, such as `nova-hosts`, or `nova-hosts-cell2`."""
        return name if self.is_first else f"{name}{joint}{self.name}"


FIRST = Cell(1)


@dataclass(frozen=True)
class Compute:
    """One nova-compute process: its `[DEFAULT]host`, the room it runs in (None: the machine itself), its address, and
    its cell."""

    name: str
    room: str | None
    address: str
    cell: Cell = FIRST

    @property
    def broker_user(self) -> str:
        return broker_user(self.name)


def broker_user(host: str) -> str:
    """Return the name of a host's user in the hosts' vhost."""
    return f"host-{host}"


@dataclass(frozen=True)
class Layout:
    """One stack. `state` has all files that `up` creates; `venvs` has the Python environments that stacks share."""

    state: Path
    choices: Choices

    def __post_init__(self) -> None:
        if len(os.fsencode(str(self.state))) + LONGEST_SOCKET > UNIX_PATH_MAX:
            raise StackError(
                f"the state directory's path is too long for sockets: {self.state}",
                f"choose one of at most {UNIX_PATH_MAX - LONGEST_SOCKET} characters with --state",
            )

    # --- directories -------------------------------------------------------------------------------------------------
    def path(self, *parts: str) -> Path:
        return self.state.joinpath(*parts)

    @property
    def etc(self) -> Path:
        return self.state / "etc"

    @property
    def data(self) -> Path:
        return self.state / "data"

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def images(self) -> Path:
        return self.state / "images"

    @property
    def control_socket(self) -> Path:
        return self.run / "supervisor.sock"

    def log(self, daemon: str) -> Path:
        return self.logs / f"{daemon}.log"

    def nova_state(self, host: str) -> Path:
        """`[DEFAULT]state_path` of the nova daemons of that host."""
        return self.data / "nova" / host

    def instances(self, host: str) -> Path:
        """`[DEFAULT]instances_path` of that host: below its state, or (shared storage) the same one for all."""
        return (self.nova_state(SHARED) if self.choices.shared_storage else self.nova_state(host)) / "instances"

    # --- Python environments -----------------------------------------------------------------------------------------
    @cached_property
    def venvs(self) -> Path:
        return Path(os.environ.get("NOVA_STACK_VENVS", "/opt/nova-stack"))

    def program(self, venv: str, name: str) -> str:
        return str(self.venvs / venv / "bin" / name)

    # --- addresses ---------------------------------------------------------------------------------------------------
    @property
    def sandbox(self) -> bool:
        return self.choices.sandbox

    @property
    def address(self) -> str:
        """Address that the controller's services listen on."""
        return "10.200.0.1" if self.sandbox else "127.0.0.1"

    @property
    def metadata_address(self) -> str:
        """Address of the metadata service, which guests must reach: the controller in a sandbox, otherwise the guests'
        gateway on the bridge."""
        return self.address if self.sandbox else GUEST_GATEWAY

    @property
    def controller_host(self) -> str:
        return CONTROLLER if self.sandbox else socket.gethostname().split(".")[0]

    @property
    def management_network(self) -> str:
        """Network of the hosts' addresses, where console proxies reach guests' consoles."""
        return f"{self.address.rpartition('.')[0]}.0/24" if self.sandbox else f"{self.address}/32"

    def url(self, service: str, path: str = "", scheme: str = "http") -> str:
        return f"{scheme}://{self.address}:{PORTS[service]}{path}"

    # --- rooms and hosts ---------------------------------------------------------------------------------------------
    @property
    def controller_room(self) -> str | None:
        return CONTROLLER if self.sandbox else None

    @property
    def host_rooms(self) -> tuple[str, ...]:
        return tuple(f"host{n}" for n in range(1, self.choices.hosts + 1)) if self.sandbox else ()

    @property
    def addresses(self) -> dict[str, str]:
        """Addresses on the management network by room, whose names are also hosts' names."""
        hosts = {room: f"10.200.0.{10 + n}" for n, room in enumerate(self.host_rooms, 1)}
        return {CONTROLLER: self.address, **hosts} if self.sandbox else {}

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(number) for number in range(1, self.choices.cells + 1))

    @property
    def further_cells(self) -> tuple[Cell, ...]:
        """The cells with a conductor of their own."""
        return self.cells[1:]

    @property
    def computes(self) -> tuple[Compute, ...]:
        """The compute hosts, spread over the cells in turns."""
        if self.choices.driver == "libvirt":
            if not self.sandbox:
                return (Compute(self.controller_host, None, self.address),)
            return tuple(Compute(room, room, self.addresses[room], self._cell(n))
                         for n, room in enumerate(self.host_rooms))
        return tuple(self._fake_compute(n) for n in range(self.choices.computes))

    def computes_of(self, cell: Cell) -> tuple[Compute, ...]:
        return tuple(host for host in self.computes if host.cell == cell)

    def _fake_compute(self, index: int) -> Compute:
        name, cell = f"fake{index + 1}", self._cell(index)
        if not self.sandbox:
            return Compute(name, None, self.address, cell)
        room = self.host_rooms[index % len(self.host_rooms)]
        return Compute(name, room, self.addresses[room], cell)

    def _cell(self, index: int) -> Cell:
        """Return the cell of the host with that index."""
        return self.cells[index % len(self.cells)]

    @property
    def hypervisor_rooms(self) -> tuple[str | None, ...]:
        """Rooms in which a libvirtd of the stack runs; None for the machine itself."""
        if self.choices.driver != "libvirt":
            return ()
        return self.host_rooms if self.sandbox else (None,)

    # --- the options of `up` -----------------------------------------------------------------------------------------
    @property
    def choices_file(self) -> Path:
        return self.state / "stack.json"

    def save(self) -> None:
        write_private(self.choices_file, json.dumps(asdict(self.choices), indent=1) + "\n")


def write_private(
    path: Path, text: str, mode: int = 0o600, owner: str | None = None, group: str | None = None
) -> None:
    """Write a file atomically; it has its final mode from the start. `group`: default is the owner's group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as stream:
        stream.write(text)
    if owner:
        import shutil  # noqa: PLC0415 - costly to import, needed at the first `up` alone

        shutil.chown(temporary, owner, group or owner)
    temporary.rename(path)


def default_state(sandbox: bool, name: str = "default") -> Path:
    if not sandbox:
        return PLAIN_STATE
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,19}", name):
        raise StackError(f"not a name for a sandbox: {name!r}", "use at most 20 lower-case letters, digits and dashes")
    return SANDBOX_STATE if name == "default" else SANDBOX_STATE.with_name(f"{SANDBOX_STATE.name}-{name}")


def load(state: Path) -> Layout | None:
    """Return the stack of a state directory, or None."""
    try:
        values = json.loads((state / "stack.json").read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StackError(f"{state}/stack.json cannot be read: {error}", f"remove {state} and run `up` again") from error
    known = {f.name for f in fields(Choices)}
    return Layout(state, Choices(**{key: value for key, value in values.items() if key in known}))


def find(state: Path | None, sandbox: bool, name: str) -> Layout:
    """Return the stack for a command: the selected one, otherwise the only one on the machine."""
    named = state or (default_state(True, name) if sandbox or name != "default" else None)
    if named:
        found = load(named.resolve())
        if not found:
            raise StackError(f"there is no stack in {named}", "create it with `bin/stack up`, or use --state or --name")
        return found
    stacks = [layout for layout in map(load, (PLAIN_STATE, *known_sandboxes())) if layout]
    if not stacks:
        raise StackError("there is no stack on this machine yet", "create one with `bin/stack up`")
    if len(stacks) > 1:
        raise StackError(
            "there are several stacks: " + ", ".join(str(layout.state) for layout in stacks),
            "select one with --state DIR",
        )
    return stacks[0]


def known_sandboxes() -> list[Path]:
    return sorted(path for path in SANDBOX_STATE.parent.glob(f"{SANDBOX_STATE.name}*") if path.is_dir())
