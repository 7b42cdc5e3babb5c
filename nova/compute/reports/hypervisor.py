"""A hypervisor that does not answer: the conductors hear of it from its host, which has no other way to tell."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from nova import errors
from nova.compute.host import Host
from nova.model.host.hosts import HypervisorDown
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.virt.interface import Driver

LOG = logging.getLogger(__name__)

NOBODY = "00000000-0000-0000-0000-000000000000"  # no guest's uuid: to ask for its state is the cheapest question


class HypervisorWatch:
    """Tells once of each time that the hypervisor is away, and again when that could not be told."""

    def __init__(self, driver: Driver, conductor: ConductorHostRPC, host: Host) -> None:
        self._driver, self._conductor, self._host = driver, conductor, host
        self._reported = False

    def look(self) -> None:
        """A periodic job. What is wrong is logged where it is found."""
        try:
            self.watched(lambda: self._driver.lifecycle.power_state(NOBODY))
        except errors.NovaError as error:
            LOG.debug("the hypervisor was asked whether it is there: %s", error)

    def watched(self, act: Callable[[], object]) -> None:
        """Do what needs the hypervisor. host.LibvirtDown is told of, and raised like any other error."""
        try:
            act()
        except errors.NovaError as error:
            if error.code == errors.host.LibvirtDown.code and not self._reported:
                self._reported = self._tell(error)
            raise
        self._reported = False

    def _tell(self, error: errors.NovaError) -> bool:
        """Whether the conductors heard it: at its first start a host is not known yet."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        report = HypervisorDown(ip=self._host.my_ip, exception=type(error).__name__, message=error.message,
                                module=type(error).__module__, function=last.name)
        try:
            self._conductor.report_hypervisor_down(self._host.name, report)
        except errors.NovaError as failure:
            LOG.info("that the hypervisor does not answer could not be told: %s", failure)
            return False
        return True
