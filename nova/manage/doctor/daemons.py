"""Which daemons this host should run, and whether they do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from nova import errors
from nova.conf.base import Options
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host, unanswered
from nova.model.host.services import Service, ServiceQuery
from nova.privileged.runner import CommandRunner, SystemRunner

BOOTED = "/run/systemd/system"  # sd_booted(3)
#: By the name of its program: how a daemon registers. nova-imageproxy does not: it has no way to the broker.
REGISTERS_AS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in (
        "nova-compute", "nova-network", "nova-conductor", "nova-scheduler", "nova-consoleauth", "nova-cert",
        "nova-placement-api", "nova-novncproxy", "nova-spicehtml5proxy", "nova-serialproxy", "nova-xvpvncproxy",
        "nova-objectstore")},
    "nova-api-os-compute": ("nova-osapi_compute",), "nova-api-metadata": ("nova-metadata",),
    "nova-api-ec2": ("nova-ec2",), "nova-imageproxy": ()}
#: How what registers under another name is started: by that program, or by nova-api.
STARTED_AS = {row: f"{row} (started as nova-api or {name})" for name, rows in REGISTERS_AS.items() for row in rows
              if row != name}
OF_APIS = {"osapi_compute": "nova-osapi_compute", "metadata": "nova-metadata", "ec2": "nova-ec2"}


class Expected(NamedTuple):
    """``programs`` None: nobody says which; ``source``: who says it."""

    programs: tuple[str, ...] | None
    source: str


def expected(options: Options, runner: CommandRunner | None = None, booted: str = BOOTED) -> Expected:
    """The operator's word, else systemd's."""
    if options.doctor.expected_daemons:
        return Expected(tuple(options.doctor.expected_daemons), "[doctor]expected_daemons")
    enabled = _enabled_units(runner or SystemRunner(15)) if os.path.isdir(booted) else ()
    return Expected(enabled or None, "systemctl is-enabled")


def _enabled_units(runner: CommandRunner) -> tuple[str, ...]:
    try:
        listed = runner.run(["systemctl", "list-unit-files", "--type=service", "--state=enabled", "--no-legend",
                             "--plain", "nova-*.service"], ok=range(256)).stdout
    except errors.host.CommandFailed:
        return ()
    names = (line.split()[0].removesuffix(".service") for line in listed.splitlines() if line.strip())
    return tuple(name for name in names if name == "nova-api" or name in REGISTERS_AS)


def own_rows(options: Options) -> tuple[Service, ...]:
    """This host's daemons, as the conductor knows them. NovaError."""
    from nova.manage.doctor.services import the_bus
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

    bus, _option = the_bus(options)
    if is_host(options):
        known: tuple[Service, ...] = bus.client(ConductorHostRPC).known_host(options.host).services
        return known
    found: tuple[Service, ...] = bus.client(ConductorRPC).list_services(ServiceQuery(host=options.host, hidden=True))
    return found


def runs_network(options: Options) -> bool | None:
    """Whether this is a network host; None where it cannot be known."""
    wanted = expected(options)
    if wanted.programs is not None:
        return "nova-network" in wanted.programs
    try:
        return any(one.binary == "nova-network" for one in own_rows(options))
    except errors.NovaError:
        return None


def daemons(options: Options, runner: CommandRunner | None = None) -> Finding:
    """Whether the daemons of this host run, and reach the conductors."""
    wanted = expected(options, runner)
    unknown = [name for name in wanted.programs or () if name != "nova-api" and name not in REGISTERS_AS]
    if unknown:
        return Finding(BAD, f"there are no daemons {', '.join(unknown)}", f"correct {wanted.source}")
    try:
        rows = own_rows(options)
    except errors.NovaError as error:
        return unanswered(error)
    up = {one.binary for one in rows if one.up}
    if wanted.programs is None:
        return _as_before(options.host, rows)
    known_as = {**REGISTERS_AS, "nova-api": tuple(OF_APIS[api] for api in options.enabled_apis if api in OF_APIS)}
    down = {name: [one for one in known_as[name] if one not in up] for name in wanted.programs}
    silent = [name for name in wanted.programs if down[name]]
    if silent:
        named = [name if down[name] == [name] else f"{name} (as {', '.join(down[name])})" for name in silent]
        return Finding(BAD, f"{', '.join(named)} should be up on {options.host} ({wanted.source}), and no conductor "
                       "hears of it", f"systemctl start {' '.join(silent)}, and look at its log: a host's daemon may "
                       "lack its enrolment (nova-manage host list)")
    return Finding(OK, f"up on {options.host}: {', '.join(wanted.programs)}")


def _as_before(host: str, rows: tuple[Service, ...]) -> Finding:
    down = sorted(one.binary for one in rows if not one.up)
    if down:
        named = ", ".join(STARTED_AS.get(one, one) for one in down)
        return Finding(BAD, f"{named} ran on {host} before, and no conductor hears of it",
                       f"start it again; if it is gone for good: nova-manage service delete {host} {down[0]}")
    if not rows:
        return Finding(WARN, f"no daemon was ever heard of on {host}",
                       "start its daemons, or name them in [doctor]expected_daemons")
    return Finding(OK, f"up on {host}: {', '.join(sorted(one.binary for one in rows))}")
