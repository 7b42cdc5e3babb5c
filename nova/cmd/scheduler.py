"""nova-scheduler: select hosts for servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nova.cmd import common
from nova.cmd.reporting import Reporting
from nova.conf._options import Options
from nova.monitoring.health import HealthChecks

if TYPE_CHECKING:
    from nova.rpc.bus import Serving

BINARY = "nova-scheduler"
#: All that a worker imports at its start: its parent does it once.
MODULES = ("nova.cmd.health_checks", "nova.rpc.contracts.scheduler", "nova.rpc.narrow", "nova.scheduler.service")


class Scheduler:
    """A worker process of nova-scheduler."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
        from nova.rpc.narrow import NarrowClient
        from nova.scheduler.service import SchedulerService, SchedulerSettings

        self.bus = control_bus(options, options.host)
        self.conductor = cast("ConductorSchedulerRPC", NarrowClient(self.bus, ConductorSchedulerRPC))
        self.service = SchedulerService(self.conductor, SchedulerSettings(
            scheduler=options.scheduler, filter_scheduler=options.filter_scheduler, metrics=options.metrics,
            service_down_time=options.service_down_time))
        self.reporting = Reporting(options, BINARY, "scheduler", self.bus, self.conductor) if index == 0 else None
        self.server: Serving | None = None

    def start(self) -> None:
        from nova.rpc.contracts.scheduler import SchedulerRPC

        self.server = self.bus.server(SchedulerRPC, self.service)
        self.server.start()  # before the first states are requested, so that no update is missed in between
        self.service.start()
        if self.reporting:
            self.reporting.start((SchedulerRPC,))

    def health_checks(self) -> HealthChecks:
        """Return checks of the bus, and that host states have been received."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.scheduler import SchedulerRPC

        return health_checks.of_control(self.bus, SchedulerRPC, {"hosts": self.service.check_known})

    def stop(self, seconds: float) -> None:
        """Stop serving calls; running calls have ``seconds`` to end."""
        self.bus.stop([self.server] if self.server is not None else [], seconds)
        if self.reporting:
            self.reporting.stop()
        self.service.stop()


def main() -> int:
    """Run nova-scheduler with ``[scheduler]workers`` processes (default: one for each processor), and return its exit
    code."""
    return common.run(BINARY, Scheduler, lambda options: options.scheduler.workers or common.cpus(),
                      modules=MODULES, check=check)


def check(options: Options) -> None:
    """Check that the configured filters and weighers exist. Raises daemon.SchedulerUnknownPlugin."""
    from nova.scheduler import plugins

    plugins.check(options)


if __name__ == "__main__":
    raise SystemExit(main())
