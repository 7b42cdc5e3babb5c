"""Health checks of services, by kind of service."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from nova import errors
from nova.monitoring.health import HealthChecks
from nova.rpc.rpc_watchdog import EVERY_S
from nova.service import PeriodicTask

if TYPE_CHECKING:
    from nova.rpc.bus import AnyBus
    from nova.rpc.interface import Contract

Checks = Mapping[str, Callable[[], object]]


def of_control(bus: AnyBus, contract: type[Contract], checks: Checks | None = None) -> HealthChecks:
    """Return the health checks of a worker that serves ``contract`` on the control bus, and start to send echoes to
    itself periodically."""
    def listen() -> None:
        with contextlib.suppress(errors.NovaError):  # the broker is away, which the health check reports
            bus.echo(contract)

    PeriodicTask(EVERY_S, listen, "echo").start()
    return HealthChecks({"bus": lambda: bus.echo(contract), **(checks or {})}, bus.why_not_receiving)


def of_client(bus: AnyBus, contract: type[Contract], checks: Checks | None = None) -> HealthChecks:
    """Return the health checks of a client of ``contract``. For services on hosts, the conductor verifies that they
    receive RPC: it sends an echo with some of the heartbeats."""
    return HealthChecks({"bus": lambda: bus.reach(contract), **(checks or {})}, bus.why_not_receiving)
