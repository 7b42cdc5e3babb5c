"""Release of devices by running guests.

A guest may take its time, or ignore the request (while it boots, for example), so it is asked repeatedly. Its
definition shows whether it has released a device, independent of lost events.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass

from nova import errors, failures
from nova.concurrency import Clock
from nova.virt.libvirt.hypervisor import Definitions, LibvirtHypervisor

LOG = logging.getLogger(__name__)

POLL_S = 0.1
NOWHERE = Definitions(None, None)

#: Finds the device in a definition.
Find = Callable[[str], "ET.Element | None"]


class Released(enum.Enum):
    """The result of a request."""

    YES = "yes"
    NO = "no"  # the guest still has the device
    STOPPED = "stopped"  # the wait was cancelled, and the guest still has the device


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Requests for devices. ``attempts``: requests to a guest; ``timeout_s``: the wait for each of them."""

    hypervisor: LibvirtHypervisor
    attempts: int
    timeout_s: float
    clock: Clock

    @property
    def total_timeout_s(self) -> float:
        """Return the total time that a guest has, in seconds."""
        return self.attempts * self.timeout_s

    def definitions(self, server_uuid: str) -> Definitions:
        """Return the definitions of a guest, which need not exist."""
        with contextlib.suppress(errors.guest.NotDefined):
            return self.hypervisor.definitions_of(server_uuid)
        return NOWHERE

    def ask(self, server_uuid: str, find: Find, stopped: Callable[[], bool]) -> Released:
        """Ask a running guest to release the device; a guest that is off has none. ``stopped`` is polled; true
        cancels."""
        for _ in range(self.attempts):
            element = self._running(server_uuid, find)
            if element is None:
                return Released.YES
            # for example, because a request is pending
            with failures.best_effort(LOG, "could not request the release of a device: %s",
                    on=errors.host.LibvirtRefused, level=logging.INFO, extra={"server": server_uuid}):
                self.hypervisor.detach_device(server_uuid, ET.tostring(element, encoding="unicode"), True)
            deadline = self.clock.now() + self.timeout_s
            while self.clock.now() < deadline:
                if self._running(server_uuid, find) is None:
                    return Released.YES
                if stopped():
                    return Released.STOPPED
                self.clock.sleep(POLL_S)
        return Released.NO

    def drop(self, server_uuid: str, find: Find) -> None:
        """Detach the device from the guest's persistent definition, if it has it."""
        kept = self.definitions(server_uuid).kept
        element = find(kept) if kept is not None else None
        if element is not None:
            self.hypervisor.detach_device(server_uuid, ET.tostring(element, encoding="unicode"), False)

    def take_back(self, server_uuid: str, find: Find) -> None:
        """Undo an attach: request the release of the device once, without a wait."""
        found = self.definitions(server_uuid)
        for text, running in ((found.running, True), (found.kept, False)):
            element = find(text) if text is not None else None
            if element is not None:
                self.hypervisor.detach_device(server_uuid, ET.tostring(element, encoding="unicode"), running)

    def _running(self, server_uuid: str, find: Find) -> ET.Element | None:
        text = self.definitions(server_uuid).running
        return find(text) if text is not None else None
