"""`up`: all stages and their dependencies."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
from collections.abc import Iterator
from pathlib import Path

from . import (
    ceph,
    cinder,
    credentials,
    databases,
    demo,
    glance,
    horizon,
    identity,
    keystone,
    kvm,
    libvirt,
    memcached,
    neutron,
    nova,
    packages,
    plain,
    ports,
    rabbitmq,
    sandbox,
    space,
    stages,
    summary,
    systemd,
    venvs,
)
from .control import ensure_supervisor
from .errors import StackError
from .layout import Choices, Layout, load
from .secrets import Secrets
from .spec import Daemon
from .stack import Stack, ensure_service_users
from .stages import Progress, Stage

UP_LOCK, INSTALL_LOCK = ".up.lock", ".lock"
VENV_PARTS = ("nextdoor", "neutron", "cinder", "horizon", "clients", "nova")


def up(layout: Layout, neighbours_only: bool = False) -> None:
    """Create the stack or repair it; do nothing if it is complete. Raises StackError."""
    _refuse_another_shape(layout)
    progress = Progress()
    progress.line(describe(layout.choices, layout.state))
    space.refuse_little(layout)
    layout.state.mkdir(parents=True, exist_ok=True)
    with alone(layout.state / UP_LOCK, "another `bin/stack up` of this stack is running"), _full_disk_said(layout):
        layout.save()
        layout.logs.mkdir(exist_ok=True)
        install(layout, parts_of(layout, neighbours_only), progress)
        ports.refuse_taken(layout)
        stack = Stack(layout, Secrets(layout.path("secrets.json")), ensure_supervisor(layout))
        credentials.write_files(layout, stack.secrets)
        if layout.hypervisor_rooms:
            progress.timed(Stage("kvm", lambda: kvm.sentence(layout)))
        if layout.sandbox:
            progress.timed(Stage("rooms", lambda: sandbox.prepare(stack)))
        stages.run(_stages(stack, neighbours_only), progress)
    print(summary.text(stack, progress, not neighbours_only), flush=True)


def describe(choices: Choices, state: Path) -> str:
    where = f"sandbox of {choices.hosts} host{'s' * (choices.hosts > 1)}" if choices.sandbox else "this machine"
    computes = f", {choices.computes} computes" if choices.driver == "fake" else ""
    more = f", {choices.cells} cells" if choices.cells > 1 else ""
    more += f", neutron ({choices.neutron})" if choices.neutron else ""
    more += f", cinder ({choices.volumes})" if choices.volumes else ""
    more += ", horizon" if choices.dashboard else ""
    more += ", ec2 and s3" if choices.ec2 else ""
    return f"{where}: driver {choices.driver}{computes}, {choices.database}, {choices.auth}{more}; state in {state}"


def parts_of(layout: Layout, neighbours_only: bool = False) -> tuple[str, ...]:
    """Return the parts that this stack needs to be installed."""
    parts = ["broker", "databases", "nextdoor", "clients"]
    parts += ["neutron"] if layout.choices.neutron else []
    parts += ["cinder"] if layout.choices.volumes else []
    parts += ["ceph"] if layout.choices.volumes == cinder.CEPH else []
    parts += ["horizon"] if layout.choices.dashboard else []
    parts += ["hypervisor"] if layout.choices.driver == "libvirt" or layout.choices.demo else []
    parts += ["guest"] if layout.choices.demo and not neighbours_only else []
    return tuple(parts if neighbours_only else [*parts, "nova"])


def install(layout: Layout, parts: tuple[str, ...], progress: Progress) -> None:
    """Install everything that `up` needs a network for: packages, environments, and the packages of the guest image.

    Only one installation can run on a machine at a time.
    """
    layout.venvs.mkdir(parents=True, exist_ok=True)
    log = layout.venvs / "install.log"
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        at = functools.partial(stages.last_step, log)
        progress.timed(Stage("packages", lambda: packages.install(parts, log), at=at))
        if {"nextdoor", "neutron", "cinder", "horizon", "nova"} & set(parts):
            ensure_service_users()
        builder = venvs.Builder(layout, log)
        for name in VENV_PARTS:
            if name in parts:
                progress.timed(Stage(f"venv {name}", getattr(builder, name), at=at))
        if "guest" in parts:
            progress.timed(Stage("guest packages", lambda: demo.fetch_guest(layout, log)))


def _stages(stack: Stack, neighbours_only: bool) -> list[Stage]:
    layout, control = stack.layout, stack.control
    with_keystone = layout.choices.auth == "keystone"
    ours = systemd.keeper(stack)

    def database() -> str:
        words = control.start(databases.daemon(stack))
        databases.ensure_databases(stack)
        return words

    def hypervisors() -> str:
        daemons = [d for room in layout.hypervisor_rooms for d in libvirt.daemons(stack, room)]
        return control.start(*daemons) if daemons else "the machine's own"

    def start_prepared(service) -> str:
        words = service.prepare(stack)
        return f"{words}; {control.start(service.daemon(stack))}"

    found = [
        Stage("broker", lambda: _in_turn(stack, rabbitmq.daemons(stack))),
        Stage("database", database),
        Stage("memcached", lambda: control.start(memcached.daemon(stack))),
        Stage("glance", lambda: start_prepared(glance), ("database", "memcached", "ceph")),
    ]
    if layout.choices.volumes == cinder.NFS and not layout.sandbox:
        found.append(Stage("share", lambda: cinder.mount(stack)))
    if layout.hypervisor_rooms:
        found.append(Stage("hypervisors", hypervisors, ("share",)))
    if with_keystone:
        found += [
            Stage("keystone", lambda: start_prepared(keystone), ("database", "memcached")),
            Stage("identity", lambda: identity.prepare(stack), ("keystone",)),
        ]
    if layout.choices.neutron:
        found += [
            Stage("neutron", lambda: start_prepared(neutron), ("database", "memcached", "broker")),
            Stage("networks", lambda: neutron.prepare_networks(stack), ("neutron", "identity")),
        ]
    if layout.choices.volumes == cinder.CEPH:
        found.append(Stage("ceph", lambda: ceph.start(stack)))
    if layout.choices.volumes:
        found += [
            Stage("cinder", lambda: cinder.start(stack), ("database", "memcached", "broker", "ceph", "share")),
            Stage("volumes", lambda: cinder.prepare_types(stack), ("cinder", "identity")),
        ]
    if layout.choices.dashboard:
        found.append(Stage("horizon", lambda: horizon.start(stack), ("glance", "identity")))
    return found if neighbours_only else [*found, *_our_stages(stack, ours), *_demo_stages(stack)]


def _our_stages(stack: Stack, ours) -> list[Stage]:
    layout = stack.layout

    def files() -> str:
        nova.write_files(stack, own_users=True)
        stack.mark_done(nova.OWN_USERS)
        return "unchanged" if layout.sandbox else plain.prepare(stack)

    return [
        Stage("nova files", files),
        Stage("nova tables", lambda: nova.prepare_databases(stack), ("database", "nova files")),
        *([Stage("nova cells", lambda: nova.record_cells(stack), ("nova tables",))] if layout.further_cells else []),
        Stage(
            "nova conductor",
            lambda: ours.start(*nova.conductors(stack)),
            ("nova tables", "nova cells", "broker", "identity"),
        ),
        Stage("nova network", lambda: nova.prepare_network(stack), ("nova conductor",)),
        Stage("nova hosts", lambda: nova.enroll(stack), ("nova conductor",)),
        Stage(
            "nova control",
            lambda: ours.start(*nova.control_daemons(stack)),
            ("nova network", "nova hosts", "glance"),
        ),
        Stage(
            "nova computes",
            lambda: ours.start(*nova.compute_daemons(stack)),
            ("nova control", "hypervisors", "ceph"),
        ),
    ]


def _demo_stages(stack: Stack) -> list[Stage]:
    if not stack.layout.choices.demo:
        return []
    return [
        Stage("guest image", lambda: demo.build_image(stack)),
        Stage("image upload", lambda: demo.upload_image(stack), ("guest image", "glance", "identity")),
        Stage("flavors", lambda: demo.prepare_flavors(stack), ("nova control",)),
        Stage("demo server", lambda: demo.boot(stack), ("image upload", "flavors", "nova computes")),
    ]


def _in_turn(stack: Stack, daemons: list[Daemon]) -> str:
    return "; ".join(dict.fromkeys(stack.control.start(daemon) for daemon in daemons))


def _refuse_another_shape(layout: Layout) -> None:
    before = load(layout.state)
    if before and (names := before.choices.differences(layout.choices)):
        raise StackError(
            f"the stack in {layout.state} was created with other options: {', '.join(sorted(names))}",
            f"run `{summary.command_prefix(layout)} clean` first, or create another stack with --state DIR",
        )


@contextlib.contextmanager
def _full_disk_said(layout: Layout) -> Iterator[None]:
    """Add the full disk, if there is one, to the error of a step that failed: its own error seldom names it."""
    try:
        yield
    except (StackError, OSError) as error:
        if little := space.none_left(layout):
            raise StackError(f"{little.message}\n  this failed: {error}", little.hint) from error
        raise


@contextlib.contextmanager
def alone(path: Path, refusal: str, patient: bool = False) -> Iterator[None]:
    """Hold the lock. Raises StackError, with the `refusal`, if it is held and the caller is not `patient`."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise StackError(refusal, "wait until it ends") from error
        yield
