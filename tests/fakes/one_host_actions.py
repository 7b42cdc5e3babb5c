"""A case for each action on one host: the preparation of the server, the start of the action, and its end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from nova import context
from nova.conductor.engine.workflow import Workflow
from nova.conductor.registry import ON_ONE_HOST
from nova.model.server.server_orders import (
    ChangePassword,
    CreateBackup,
    CreateImage,
    RebuildServer,
    RescueServer,
    UnshelveServer,
)
from nova.model.server.servers import ServerOrder
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, SmallCloud

BASE, OTHER, RESCUE = "base-image", "other-image", "rescue-image"
PASSWORD = "a very secret word"
Begin = Callable[[SmallCloud, str], Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """One action. ``before``: actions that prepare the server. ``after``: the vm_state at its end, ``failed``: after a
    failure. ``settings``: of the conductor. ``leaves``: number of the server's images after it."""

    name: str
    action: str
    before: tuple[str, ...]
    after: str
    failed: str
    begin: Begin | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    leaves: int = 0
    password: bool = False

    @property
    def workflow(self) -> Workflow:
        return next(one for one in ON_ONE_HOST if one.action.name == self.action)

    def start(self, cloud: SmallCloud, uuid: str) -> None:
        with context.entered(DEMO):
            (self.begin or BEGIN.get(self.action) or _order(self.action))(cloud, uuid)


def _order(action: str) -> Begin:
    return lambda cloud, uuid: cloud.control.order_server(ServerOrder(uuid=uuid, action=action))


def _rebuild(image_id: str, **fields: Any) -> Begin:
    return lambda cloud, uuid: cloud.control.rebuild_server(RebuildServer(
        uuid=uuid, image_id=image_id, admin_password=PASSWORD, **fields))


def _backup(rotation: int) -> Begin:
    return lambda cloud, uuid: cloud.control.create_backup(CreateBackup(
        uuid=uuid, name="backup", backup_type="daily", rotation=rotation))


BEGIN: dict[str, Begin] = {
    "rebuild": _rebuild(BASE),
    "createImage": lambda cloud, uuid: cloud.control.create_image(CreateImage(uuid=uuid, name="image")),
    "createBackup": _backup(2),
    "rescue": lambda cloud, uuid: cloud.control.rescue_server(RescueServer(uuid=uuid, image_id=RESCUE,
                                                                           admin_password=PASSWORD)),
    "changePassword": lambda cloud, uuid: cloud.control.change_password(ChangePassword(uuid=uuid, password=PASSWORD)),
    "unshelve": lambda cloud, uuid: cloud.control.unshelve_server(UnshelveServer(uuid=uuid)),
    "soft_delete": _order("delete"),
}
KEPT, AT_ONCE = {"shelved_offload_time": -1}, {"shelved_offload_time": 0}
RECLAIMED = {"reclaim_instance_interval": 3600}

CASES = (
    Case("start", "start", ("stop",), "active", "stopped"),
    Case("stop", "stop", (), "stopped", "active"),
    Case("soft-reboot", "soft_reboot", (), "active", "active"),
    Case("hard-reboot", "hard_reboot", ("stop",), "active", "error"),
    Case("pause", "pause", (), "paused", "active"),
    Case("unpause", "unpause", ("pause",), "active", "paused"),
    Case("suspend", "suspend", (), "suspended", "active"),
    Case("resume", "resume", ("suspend",), "active", "suspended"),
    Case("rescue", "rescue", (), "rescued", "error", password=True),
    Case("unrescue", "unrescue", ("rescue",), "active", "error"),
    Case("change-password", "changePassword", (), "active", "active", password=True),
    Case("crash-dump", "trigger_crash_dump", ("pause",), "paused", "paused"),
    Case("create-image", "createImage", (), "active", "active", leaves=1),
    Case("create-image-of-stopped", "createImage", ("stop",), "stopped", "stopped", leaves=1),
    Case("create-backup", "createBackup", (), "active", "active", leaves=1),
    Case("create-backup-of-none", "createBackup", (), "active", "active", begin=_backup(0)),
    Case("rebuild-same", "rebuild", (), "active", "error", password=True),
    Case("rebuild-other-of-stopped", "rebuild", ("stop",), "stopped", "error", begin=_rebuild(OTHER), password=True),
    Case("soft-delete", "soft_delete", (), "soft-delete", "error", settings=RECLAIMED),
    Case("stop-deleted", "stop_deleted", ("soft_delete",), "soft-delete", "soft-delete", settings=RECLAIMED),
    Case("restore", "restore", ("soft_delete",), "active", "soft-delete", settings=RECLAIMED),
    Case("shelve", "shelve", (), "shelved", "active", settings=KEPT, leaves=1),
    Case("shelve-of-suspended", "shelve", ("suspend",), "shelved", "stopped", settings=KEPT, leaves=1),
    Case("shelve-and-offload", "shelve", (), "shelved_offloaded", "active", settings=AT_ONCE, leaves=1),
    Case("shelve-offload", "shelveOffload", ("shelve",), "shelved_offloaded", "shelved", settings=KEPT, leaves=1),
    Case("unshelve-on-host", "unshelve", ("shelve",), "active", "shelved", settings=KEPT),
    Case("unshelve-offloaded", "unshelve", ("shelve",), "active", "shelved_offloaded", settings=AT_ONCE),
)


def ready(cloud: FailingCloud, case: Case) -> str:
    """Create a server in the state in which the case begins."""
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, **case.settings)
    for image_id in (BASE, OTHER, RESCUE):
        cloud.image_service.add(image_id, properties={"hw_disk_bus": "virtio"})
    [uuid] = cloud.active(image_id=BASE, metadata={"role": "web"})
    for action in case.before:
        next(one for one in CASES if one.action == action).start(cloud, uuid)
        cloud.settle(uuid)
    cloud.idle()
    return uuid
