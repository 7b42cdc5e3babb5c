"""What is done through the agent in a guest (``nova.virt.interface.Agent``): passwords, and quiet file systems."""

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

ANYONE = "root"  # the name an order has when nobody chose one
BY_SYSTEM = {"windows": "Administrator"}
FROZEN = "frozen"  # a file beside the guest, from before its file systems are frozen until they are known to be thawed
ANSWER_S = 10
FREEZE_S = 60  # all that the guest has not written yet is written then


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
        """The guest's file systems are frozen for the block (whether they really are is given), and thawed after it.

        guest.AgentNotQuiet, when ``required`` and impossible. Who dies inside leaves a mark: ``thaw_left_over`` goes by
        it.
        """
        reason = self._freeze(server_uuid)
        if reason:
            LOG.info("the guest's file systems are not frozen: %s", reason, extra={"server": server_uuid})
        try:
            if reason and required:
                raise errors.guest.AgentNotQuiet(uuid=server_uuid, reason=reason)
            yield not reason
        finally:
            self.thaw(server_uuid)

    def thaw_left_over(self) -> None:
        """Thaw what a process that died left frozen. Once, at start; what can't be thawed stays marked."""
        for server_uuid in self.folders.uuids():
            with contextlib.suppress(errors.NovaError):
                self.thaw(server_uuid)

    def _freeze(self, server_uuid: str) -> str:
        """Why not; empty when all is frozen. It may be frozen in part even then."""
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
            if state_of(self.hypervisor, server_uuid) not in OFF:  # one that went off is not frozen any more
                self.hypervisor.thaw(server_uuid, ANSWER_S)
            mark.unlink(missing_ok=True)
        except errors.NotFound:
            mark.unlink(missing_ok=True)
        except (errors.Conflict, errors.HostRefused) as error:
            LOG.warning("the guest's file systems could not be thawed: %s", error, extra={"server": server_uuid})


def administrator(image: Image | None) -> str:
    """The user whose password is meant when none is named: as the image's properties say."""
    properties = image.properties if image is not None else {}
    return properties.get("os_admin_user") or BY_SYSTEM.get(properties.get("os_type", ""), ANYONE)
