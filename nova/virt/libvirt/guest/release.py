"""Devices that a running guest is asked to give up.

It may take its time, or not hear it (while it boots, say): it is asked again. Whether it has given a device up, its
definition tells, which no lost event can change.
"""

from __future__ import annotations

import enum
import logging
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass

from nova import errors
from nova.concurrency import Clock
from nova.virt.libvirt.hypervisor import Definitions, LibvirtHypervisor

LOG = logging.getLogger(__name__)

POLL_S = 0.1
NOWHERE = Definitions(None, None)

#: Finds the device in a definition.
Find = Callable[[str], "ET.Element | None"]


class Released(enum.Enum):
    """What became of it."""

    YES = "yes"
    NO = "no"  # the guest has it still
    STOPPED = "stopped"  # nobody waits any more, and the guest has it still


@dataclass(frozen=True, kw_only=True)
class Releases:
    """``attempts``: how often a guest is asked; ``timeout_s``: how long it is waited for, each time."""

    hypervisor: LibvirtHypervisor
    attempts: int
    timeout_s: float
    clock: Clock

    @property
    def patience_s(self) -> float:
        """How long a guest has in all."""
        return self.attempts * self.timeout_s

    def definitions(self, server_uuid: str) -> Definitions:
        """Of a guest that need not be there."""
        try:
            return self.hypervisor.definitions_of(server_uuid)
        except errors.guest.NotDefined:
            return NOWHERE

    def ask(self, server_uuid: str, find: Find, stopped: Callable[[], bool]) -> Released:
        """Of the guest as it runs; one that does not run has nothing. ``stopped`` is asked meanwhile."""
        for _ in range(self.attempts):
            element = self._running(server_uuid, find)
            if element is None:
                return Released.YES
            try:
                self.hypervisor.detach_device(server_uuid, ET.tostring(element, encoding="unicode"), True)
            except errors.host.LibvirtRefused as error:  # it is asked already, say
                LOG.info("asking for a device: %s", error, extra={"server": server_uuid})
            deadline = self.clock.now() + self.timeout_s
            while self.clock.now() < deadline:
                if self._running(server_uuid, find) is None:
                    return Released.YES
                if stopped():
                    return Released.STOPPED
                self.clock.sleep(POLL_S)
        return Released.NO

    def drop(self, server_uuid: str, find: Find) -> None:
        """From the guest as it starts next. Nothing where it is not there."""
        kept = self.definitions(server_uuid).kept
        element = find(kept) if kept is not None else None
        if element is not None:
            self.hypervisor.detach_device(server_uuid, ET.tostring(element, encoding="unicode"), False)

    def take_back(self, server_uuid: str, find: Find) -> None:
        """What was just plugged in and shall not be: asked for once, and not waited for."""
        found = self.definitions(server_uuid)
        for text, running in ((found.running, True), (found.kept, False)):
            element = find(text) if text is not None else None
            if element is not None:
                self.hypervisor.detach_device(server_uuid, ET.tostring(element, encoding="unicode"), running)

    def _running(self, server_uuid: str, find: Find) -> ET.Element | None:
        text = self.definitions(server_uuid).running
        return find(text) if text is not None else None
