"""Hypervisor watch: the host reports to the conductors that its hypervisor does not answer."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from nova import errors, failures
from nova.compute.host import Host
from nova.model.host.hosts import HypervisorDown
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

NOBODY = "00000000-0000-0000-0000-000000000000"  # not a guest's UUID: asking for its state is the cheapest query


class HypervisorWatch:
    """Reports each outage of the hypervisor once, and again if the report failed."""

    def __init__(self, driver: Driver, conductor: ConductorHostRPC, host: Host) -> None:
        self._driver, self._conductor, self._host = driver, conductor, host
        self._reported = False

    def refresh(self) -> None:
        """Check the hypervisor; a periodic job. Errors are logged where they are found."""
        with failures.best_effort(LOG, "the check of the hypervisor failed: %s", level=logging.DEBUG):
            self.watched(lambda: self._driver.lifecycle.power_state(NOBODY))

    def watched(self, act: Callable[[], object]) -> None:
        """Call a function that needs the hypervisor. host.LibvirtDown is reported, and raised like any other error."""
        try:
            act()
        except errors.NovaError as error:
            if error.code == errors.host.LibvirtDown.code and not self._reported:
                self._reported = self._tell(error)
            raise
        self._reported = False

    def _tell(self, error: errors.NovaError) -> bool:
        """Report the outage; return whether the conductors accepted it. At its first start, a host is not known yet."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        report = HypervisorDown(ip=self._host.my_ip, exception=type(error).__name__, message=error.message,
                                module=type(error).__module__, function=last.name)
        with failures.best_effort(LOG, "could not report that the hypervisor does not answer: %s", level=logging.INFO):
            self._conductor.report_hypervisor_down(self._host.name, report)
            return True
        return False
