"""Doctor check that the services that this host should run are up."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from nova import errors
from nova.conf._options import Options
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host, unanswered
from nova.model.host.services import Service, ServiceQuery
from nova.privileged.runner import CommandRunner, SystemRunner

BOOTED = "/run/systemd/system"  # sd_booted(3)
#: Program name -> names by which the service registers. nova-imageproxy does not: it has no connection to the broker.
REGISTERS_AS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in (
        "nova-compute", "nova-network", "nova-conductor", "nova-scheduler", "nova-consoleauth", "nova-cert",
        "nova-placement-api", "nova-novncproxy", "nova-spicehtml5proxy", "nova-serialproxy", "nova-xvpvncproxy",
        "nova-objectstore")},
    "nova-api-os-compute": ("nova-osapi_compute",), "nova-api-metadata": ("nova-metadata",),
    "nova-api-ec2": ("nova-ec2",), "nova-imageproxy": ()}
#: Registered name that is not a program -> how the service is started: by its program, or by nova-api.
STARTED_AS = {row: f"{row} (started as nova-api or {name})" for name, rows in REGISTERS_AS.items() for row in rows
              if row != name}
OF_APIS = {"osapi_compute": "nova-osapi_compute", "metadata": "nova-metadata", "ec2": "nova-ec2"}


class Expected(NamedTuple):
    """The expected services. ``programs`` None: unknown; ``source``: the option or command that names them."""

    programs: tuple[str, ...] | None
    source: str


def expected(options: Options, runner: CommandRunner | None = None, booted: str = BOOTED) -> Expected:
    """Return the services that the operator configured, else the enabled systemd units."""
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
    """Return the registered services of this host, as the conductor reports them. Raises NovaError."""
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
    """True if this is a network host; None if unknown."""
    wanted = expected(options)
    if wanted.programs is not None:
        return "nova-network" in wanted.programs
    with contextlib.suppress(errors.NovaError):
        return any(one.binary == "nova-network" for one in own_rows(options))
    return None


def with_novncproxy(options: Options) -> tuple[str, ...]:
    """Return the programs whose work the process of nova-novncproxy does, too."""
    return tuple(f"nova-{name}" for name in options.console.with_novncproxy)


def daemons(options: Options, runner: CommandRunner | None = None) -> Finding:
    """Check that the services of this host run and reach the conductors."""
    wanted = expected(options, runner)
    unknown = [name for name in wanted.programs or () if name != "nova-api" and name not in REGISTERS_AS]
    if unknown:
        return Finding(BAD, f"unknown services: {', '.join(unknown)}", f"correct {wanted.source}")
    try:
        rows = own_rows(options)
    except errors.NovaError as error:
        return unanswered(error)
    up = {one.binary for one in rows if one.up}
    if wanted.programs is None:
        return _as_before(options.host, rows)
    known_as = {**REGISTERS_AS, "nova-api": tuple(OF_APIS[api] for api in options.enabled_apis if api in OF_APIS),
                "nova-novncproxy": ("nova-novncproxy", *with_novncproxy(options))}
    down = {name: [one for one in known_as[name] if one not in up] for name in wanted.programs}
    silent = [name for name in wanted.programs if down[name]]
    if silent:
        named = [name if down[name] == [name] else f"{name} (as {', '.join(down[name])})" for name in silent]
        return Finding(BAD, f"{', '.join(named)} should be up on {options.host} ({wanted.source}), but no conductor "
                       "receives its reports", f"systemctl start {' '.join(silent)}, and check its log: the host may "
                       "not be enrolled (nova-manage host list)")
    return Finding(OK, f"up on {options.host}: {', '.join(wanted.programs)}")


def _as_before(host: str, rows: tuple[Service, ...]) -> Finding:
    down = sorted(one.binary for one in rows if not one.up)
    if down:
        named = ", ".join(STARTED_AS.get(one, one) for one in down)
        return Finding(BAD, f"{named} ran on {host} before, but no conductor receives its reports now",
                       f"start it again; if it was removed: nova-manage service delete {host} {down[0]}")
    if not rows:
        return Finding(WARN, f"no service has ever registered on {host}",
                       "start its services, or set [doctor]expected_daemons")
    return Finding(OK, f"up on {host}: {', '.join(sorted(one.binary for one in rows))}")
