"""How daemons show that they can do their work: what each kind of them asks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from nova import errors
from nova.model.base import Library
from nova.monitoring.health import Vitals
from nova.rpc.hearing import EVERY_S
from nova.service import Every

Checks = Mapping[str, Callable[[], object]]


def of_control(bus: Library, contract: type, checks: Checks | None = None) -> Vitals:
    """Of a worker that serves ``contract`` to control daemons: it sends itself an echo from now on."""
    def listen() -> None:
        with contextlib.suppress(errors.NovaError):  # the broker is away; whoever asks for health is told so
            bus.echo(contract)

    Every(EVERY_S, listen, "echo").start()
    return Vitals({"bus": lambda: bus.echo(contract), **(checks or {})}, bus.deaf)


def of_client(bus: Library, contract: type, checks: Checks | None = None) -> Vitals:
    """Of a daemon that asks those who serve ``contract``. What a host's daemon hears, the conductor sees to: it sends
    an echo now and then, with the heartbeats."""
    return Vitals({"bus": lambda: bus.reach(contract), **(checks or {})}, bus.deaf)
