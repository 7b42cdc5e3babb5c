"""``nova-manage host``: what there is on a host, taking it out of use, and giving it back."""

from __future__ import annotations

import argparse
import collections
import contextlib
import getpass
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nova.manage.drain_plan import DOWN, DrainRequest, Move, Stay, Wait, plan
from nova.manage.host_drain import STAYS, Case, Drain, DrainClock, pages
from nova.model.host.services import Service, ServiceQuery, ServiceUpdate
from nova.model.server.migrations import FINISHED, MigrationQuery
from nova.model.server.servers import Condition, ServerDetail
from nova.rpc.contracts.conductor import ConductorRPC

COMPUTE = "nova-compute"
DRAINED = "drained by "  # how a drain's reason begins: undrain undoes these alone

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


class BadSkipFile(Exception):
    """Says what is wrong with it."""


def who() -> str:
    """Who drains, for the service's reason: as it is known on this machine."""
    name = os.environ.get("SUDO_USER")
    with contextlib.suppress(KeyError, OSError, ImportError):
        name = name or getpass.getuser()
    return f"{name or 'uid ' + str(os.getuid())} on {os.uname().nodename}"


def drain_request(given: argparse.Namespace) -> DrainRequest:
    """BadSkipFile."""
    return DrainRequest(host=given.host, to=given.to, cold=given.cold, parallel=max(1, given.parallel),
                        timeout_s=given.timeout, skip=frozenset([*given.skip, *_listed(given.skip_file)]))


def _listed(path: str | None) -> list[str]:
    """The words of a file's lines, up to a #."""
    if path is None:
        return []
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSkipFile(f"--skip-file {path} cannot be read: {error}") from None
    return [word for line in lines for word in line.split("#", 1)[0].split()]


def service_of(conductor: ConductorRPC, host: str) -> Service | None:
    """The host's nova-compute, as the conductor knows it; None when none is registered."""
    found = conductor.list_services(ServiceQuery(host=host, binary=COMPUTE))
    return found[0] if found else None


# -- drain

def drain(conductor: ConductorRPC, request: DrainRequest, say: Say, table: Table,
          clock: DrainClock | None = None) -> int:
    """0 when nothing is left there but what was skipped."""
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
        say(f"{request.host} is disabled now ('{reason}'): it gets no more servers.")
    else:
        say(f"{request.host} was disabled before ('{service.disabled_reason or 'no reason given'}').")
    run = Drain(conductor, request, say, clock)
    run.up = service.up
    if not service.up:
        say(f"{request.host} is down, so that nothing can be moved away from it. "
            f"{DOWN.reason.capitalize()}s one by one.")
    with contextlib.suppress(KeyboardInterrupt), _interrupts(run):
        run.run()
    return _report(run, say, table)


def _bad_target(conductor: ConductorRPC, request: DrainRequest) -> str | None:
    if request.to == request.host:
        return f"--to {request.to}: that is the host to be drained."
    target = service_of(conductor, str(request.to))
    if target is None:
        return f"--to {request.to}: no nova-compute is registered for that host."
    if target.disabled or not target.up:
        return f"--to {request.to}: it is {'disabled' if target.disabled else 'down'}."
    return None


@contextlib.contextmanager
def _interrupts(run: Drain) -> Iterator[None]:
    """Ctrl-C begins no more; a second one leaves alone what still runs; a third does not wait for an answer, either."""
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
    """What a drain would do now."""
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
    """All servers on the host, of all projects, the oldest first; read a page at a time."""
    return pages(conductor, Condition(column="host", value=host))


def undrain(conductor: ConductorRPC, host: str, say: Say) -> int:
    """Enables what a drain disabled: 0. 3: it was enabled. 1: another reason stands."""
    service = service_of(conductor, host)
    if service is None:
        say(f"No nova-compute is registered for host {host}: see nova-manage host list.")
        return 1
    if not service.disabled:
        say(f"{host} is enabled: there is nothing to do.")
        return 3
    if not (service.disabled_reason or "").startswith(DRAINED):
        say(f"{host} stays disabled, for no drain did that: '{service.disabled_reason or 'no reason given'}'. "
            f"To enable it all the same: openstack compute service set --enable {host} {COMPUTE}")
        return 1
    conductor.update_service(ServiceUpdate(uuid=service.uuid, disabled=False))
    say(f"{host} is enabled again. Nothing moves back by itself: new servers come as the scheduler places them.")
    return 0


# -- show

def show(conductor: ConductorRPC, host: str, say: Say, table: Table) -> int:
    """Its service, how many servers are in which state, what it keeps of moves and its cleanups: 0. 1: no nova-compute
    is registered for it."""
    service = service_of(conductor, host)
    if service is None:
        say(f"No nova-compute is registered for host {host}: see nova-manage host list.")
        return 1
    state = "down, as an operator said" if service.forced_down else "up" if service.up else "down"
    use = f"disabled ('{service.disabled_reason or 'no reason given'}')" if service.disabled else "enabled"
    say(f"{host} is {state} and {use}, in zone {service.zone}; last heard of {service.last_seen_at or 'never'}.")
    servers = list(servers_of(conductor, host))
    counted = collections.Counter(
        (str(server.vm_state), str(server.task_state) if server.task_state else "") for server in servers)
    table(("Servers", "State", "Task"), [(number, *kind) for kind, number in sorted(counted.items())])
    waiting = conductor.list_migrations(MigrationQuery(source_compute=host, status=FINISHED))
    if waiting:
        say(f"The disks of {len(waiting)} servers that moved away wait here for the confirmation of their moves.")
    pending = conductor.list_debts(host)
    if pending:
        say(f"{len(pending)} cleanups are pending on it, the oldest since {pending[0].created_at}: nova-manage "
            f"cleanup list --host {host}")
    return 0
