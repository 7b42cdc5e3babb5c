"""Actions of the guest agent (``nova.virt.interface.Agent``): set passwords, and freeze file systems."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from nova import errors
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.hypervisor import OFF, LibvirtHypervisor, state_of
from nova.virt.libvirt.xml import running

LOG = logging.getLogger(__name__)

ANYONE = "root"  # the default user name of an order
BY_SYSTEM = {"windows": "Administrator"}
FROZEN = "frozen"  # a mark file in the guest's folder, from before the freeze until the thaw is confirmed
ANSWER_S = 10
FREEZE_S = 60  # a freeze flushes all of the guest's dirty data


@dataclass(frozen=True)
class LibvirtAgent:
    hypervisor: LibvirtHypervisor
    folders: Folders

    def set_password(self, server_uuid: str, user: str, password: str) -> None:
        if state_of(self.hypervisor, server_uuid) != PowerState.RUNNING:
            raise errors.guest.NotRunning(uuid=server_uuid)
        if not running.has_agent(self.hypervisor.definition(server_uuid)):
            raise errors.guest.AgentNone(uuid=server_uuid)
        order = self.folders.of(server_uuid).order()
        who = administrator(order.image if order else None) if user == ANYONE else user
        self.hypervisor.set_password(server_uuid, who, password, ANSWER_S)

    @contextlib.contextmanager
    def quiet(self, server_uuid: str, required: bool) -> Iterator[bool]:
        """Freeze the guest's file systems for the block, and thaw them after it; yield whether they are really frozen.

        Raises guest.AgentNotQuiet if ``required`` and impossible. A process that dies inside leaves a mark, with which
        ``thaw_left_over`` finds the guest.
        """
        reason = self._freeze(server_uuid)
        if reason:
            LOG.info("did not freeze the guest's file systems: %s", reason, extra={"server": server_uuid})
        try:
            if reason and required:
                raise errors.guest.AgentNotQuiet(uuid=server_uuid, reason=reason)
            yield not reason
        finally:
            self.thaw(server_uuid)

    def thaw_left_over(self) -> None:
        """Thaw guests that a dead process left frozen. Called once, at start; a guest whose thaw fails stays marked."""
        for server_uuid in self.folders.uuids():
            with contextlib.suppress(errors.NovaError):
                self.thaw(server_uuid)

    def _freeze(self, server_uuid: str) -> str:
        """Freeze the guest; return the reason if that failed, else an empty text. A failed freeze may be partial."""
        if state_of(self.hypervisor, server_uuid) != PowerState.RUNNING:
            return "it does not run"
        if not running.has_agent(self.hypervisor.definition(server_uuid)):
            return str(errors.guest.AgentNone(uuid=server_uuid))
        self.folders.of(server_uuid).file(FROZEN).touch(mode=0o600)
        try:
            self.hypervisor.freeze(server_uuid, FREEZE_S)
        except (errors.Conflict, errors.HostRefused) as error:
            return str(error)
        return ""

    def thaw(self, server_uuid: str) -> None:
        mark = self.folders.of(server_uuid).file(FROZEN)
        if not mark.exists():
            return
        try:
            if state_of(self.hypervisor, server_uuid) not in OFF:  # a guest that is off is not frozen any more
                self.hypervisor.thaw(server_uuid, ANSWER_S)
            mark.unlink(missing_ok=True)
        except errors.NotFound:
            mark.unlink(missing_ok=True)
        except (errors.Conflict, errors.HostRefused) as error:
            LOG.warning("could not thaw the guest's file systems: %s", error, extra={"server": server_uuid})


def administrator(image: Image | None) -> str:
    """Return the default user for passwords, from the image's properties."""
    properties = image.properties if image is not None else {}
    return properties.get("os_admin_user") or BY_SYSTEM.get(properties.get("os_type", ""), ANYONE)
