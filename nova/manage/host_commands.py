"""``nova-manage host``: show, drain and undrain a compute host."""

from __future__ import annotations

import argparse
import collections
import contextlib
import getpass
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from nova import failures
from nova.manage.command import Table
from nova.manage.drain_plan import DOWN, DrainRequest, Move, Stay, Wait, plan
from nova.manage.host_drain import STAYS, Case, Drain, DrainClock, pages
from nova.model.host.services import Service, ServiceQuery, ServiceUpdate
from nova.model.server.migrations import FINISHED, MigrationQuery
from nova.model.server.servers import Condition, ServerDetail
from nova.rpc.contracts.conductor import ConductorRPC

COMPUTE = "nova-compute"
DRAINED = "drained by "  # start of a drain's disabled reason: undrain enables only such hosts

Say = Callable[[str], None]


class BadSkipFile(Exception):
    """A --skip-file that cannot be read; the text has the reason."""


def who() -> str:
    """Return the operator's user and machine, for the service's disabled reason."""
    name = os.environ.get("SUDO_USER")
    with contextlib.suppress(KeyError, OSError, ImportError):
        name = name or getpass.getuser()
    return f"{name or 'uid ' + str(os.getuid())} on {os.uname().nodename}"


def drain_request(given: argparse.Namespace) -> DrainRequest:
    """Return the drain that the command line requests. Raises BadSkipFile."""
    return DrainRequest(host=given.host, to=given.to, cold=given.cold, parallel=max(1, given.parallel),
                        timeout_s=given.timeout, skip=frozenset([*given.skip, *_listed(given.skip_file)]))


def _listed(path: str | None) -> list[str]:
    """Return the words of a file; # starts a comment."""
    if path is None:
        return []
    with failures.replaced((OSError, UnicodeDecodeError),
            lambda error: BadSkipFile(f"--skip-file {path} cannot be read: {error}")):
        lines = Path(path).read_text().splitlines()
    return [word for line in lines for word in line.split("#", 1)[0].split()]


def service_of(conductor: ConductorRPC, host: str) -> Service | None:
    """Return the host's nova-compute, as the conductor reports it; None if none is registered."""
    found = conductor.list_services(ServiceQuery(host=host, binary=COMPUTE))
    return found[0] if found else None


# -- drain

def drain(conductor: ConductorRPC, request: DrainRequest, say: Say, table: Table,
          clock: DrainClock | None = None) -> int:
    """Disable a host and move its servers away. Return 0 if no server stays, except skipped ones."""
    service = service_of(conductor, request.host)
    if service is None:
        say(f"No nova-compute is registered for host {request.host}: see nova-manage host list.")
        return 1
    if request.to is not None and (problem := _bad_target(conductor, request)):
        say(problem)
        return 1
    if not service.disabled:
        reason = DRAINED + who()
        conductor.update_service(ServiceUpdate(uuid=service.uuid, disabled=True, disabled_reason=reason))
        say(f"{request.host} is disabled now ('{reason}'): it gets no new servers.")
    else:
        say(f"{request.host} was already disabled ('{service.disabled_reason or 'no reason given'}').")
    run = Drain(conductor, request, say, clock)
    run.up = service.up
    if not service.up:
        say(f"{request.host} is down, so its servers cannot be moved. "
            f"{DOWN.reason.capitalize()}s one by one.")
    with contextlib.suppress(KeyboardInterrupt), _interrupts(run):
        run.run()
    return _report(run, say, table)


def _bad_target(conductor: ConductorRPC, request: DrainRequest) -> str | None:
    if request.to == request.host:
        return f"--to {request.to}: the host cannot be drained to itself."
    target = service_of(conductor, str(request.to))
    if target is None:
        return f"--to {request.to}: no nova-compute is registered for that host."
    if target.disabled or not target.up:
        return f"--to {request.to}: it is {'disabled' if target.disabled else 'down'}."
    return None


@contextlib.contextmanager
def _interrupts(run: Drain) -> Iterator[None]:
    """Handle Ctrl-C: the first starts no more moves, the second does not wait for running moves, the third does not
    wait for a reply either."""
    def pressed(_number: int, _frame: object) -> None:
        run.interrupt()
        if run.interrupts > 2:
            raise KeyboardInterrupt
    try:
        before = signal.signal(signal.SIGINT, pressed)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _report(run: Drain, say: Say, table: Table) -> int:
    stay = [case for case in run.cases.values() if case.phase == STAYS]
    gone = len(run.cases) - len(stay)
    took = f"{gone} servers left {run.request.host} within {run.elapsed_s:.0f} s"
    if not stay:
        say(f"{took}; none is left." if run.cases else f"{run.request.host} has no servers.")
        return 0
    say(f"{took}; {len(stay)} stay:")
    table(("Server", "Name", "State", "Why"), [_row(case) for case in stay])
    return 0 if all(case.skipped for case in stay) else 1


def _row(case: Case) -> tuple[str, ...]:
    return case.uuid, case.name, case.vm_state, case.reason


def dry_run(conductor: ConductorRPC, request: DrainRequest, say: Say, table: Table) -> int:
    """Print the steps that a drain would take now."""
    service = service_of(conductor, request.host)
    if service is None:
        say(f"No nova-compute is registered for host {request.host}: see nova-manage host list.")
        return 1
    planned = [(server, plan(server, request, service.up)) for server in servers_of(conductor, request.host)]
    table(("Server", "Name", "State", "What"),
          [(server.uuid, server.name, server.vm_state, _said(step)) for server, step in planned])
    return 0 if all(not isinstance(step, Stay) or step.skipped for _server, step in planned) else 1


def _said(step: Move | Wait | Stay) -> str:
    if isinstance(step, Move):
        return step.how
    return f"waits for its task: {step.task}" if isinstance(step, Wait) else f"stays: {step.reason}"


def servers_of(conductor: ConductorRPC, host: str) -> Iterator[ServerDetail]:
    """Yield all servers on the host, of all projects, the oldest first; reads one page at a time."""
    return pages(conductor, Condition(column="host", value=host))


def undrain(conductor: ConductorRPC, host: str, say: Say) -> int:
    """Enable a host that a drain disabled. Return 0; 3 if it was enabled; 1 if it was disabled for another reason."""
    service = service_of(conductor, host)
    if service is None:
        say(f"No nova-compute is registered for host {host}: see nova-manage host list.")
        return 1
    if not service.disabled:
        say(f"{host} is enabled: there is nothing to do.")
        return 3
    if not (service.disabled_reason or "").startswith(DRAINED):
        say(f"{host} stays disabled, because it was not disabled by a drain: "
            f"'{service.disabled_reason or 'no reason given'}'. "
            f"To enable it anyway: openstack compute service set --enable {host} {COMPUTE}")
        return 1
    conductor.update_service(ServiceUpdate(uuid=service.uuid, disabled=False))
    say(f"{host} is enabled again. Servers do not move back; the scheduler places new servers on the host.")
    return 0


# -- show

def show(conductor: ConductorRPC, host: str, say: Say, table: Table) -> int:
    """Print a host's service, its number of servers by state, disks of unconfirmed moves, and pending cleanups. Return
    0; 1 if no nova-compute is registered for it."""
    service = service_of(conductor, host)
    if service is None:
        say(f"No nova-compute is registered for host {host}: see nova-manage host list.")
        return 1
    state = "down (forced by an operator)" if service.forced_down else "up" if service.up else "down"
    use = f"disabled ('{service.disabled_reason or 'no reason given'}')" if service.disabled else "enabled"
    say(f"{host} is {state} and {use}, in zone {service.zone}; last report: {service.last_seen_at or 'never'}.")
    servers = list(servers_of(conductor, host))
    counted = collections.Counter(
        (str(server.vm_state), str(server.task_state) if server.task_state else "") for server in servers)
    table(("Servers", "State", "Task"), [(number, *kind) for kind, number in sorted(counted.items())])
    waiting = conductor.list_migrations(MigrationQuery(source_compute=host, status=FINISHED))
    if waiting:
        say(f"The disks of {len(waiting)} servers that moved away are kept here until their moves are confirmed.")
    pending = conductor.list_debts(host)
    if pending:
        say(f"{len(pending)} cleanups are pending on it, the oldest since {pending[0].created_at}: nova-manage "
            f"cleanup list --host {host}")
    return 0
