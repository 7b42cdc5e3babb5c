"""Preparation of servers for each action of the table, and the request of the action, on a living cloud."""

from __future__ import annotations

import contextlib
from typing import Any

from nova import context, errors
from nova.model.network.networks import RequestedNetwork
from nova.model.server.server_orders import CreateBackup, LiveMigrateServer, MigrateServer
from nova.model.server.servers import ServerOrder
from tests.fakes.small_cloud import DEMO
from tests.fakes.walk import ACTIONS, Walk
from tests.fakes.walking_cloud import IMAGES

#: action -> preceding actions
BEFORE: dict[str, tuple[str, ...]] = {
    "start": ("stop",), "unpause": ("pause",), "resume": ("suspend",), "unrescue": ("rescue",),
    "confirmResize": ("resize",), "revertResize": ("resize",), "restore": ("soft_delete",),
    "stop_deleted": ("soft_delete",),
    "shelveOffload": ("shelve",), "unshelve": ("shelve",), "detach_interface": ("attach_interface",)}
#: action -> options that it and its preceding actions need
OPTIONS: dict[str, dict[str, int]] = {
    "soft_delete": {"reclaim_instance_interval": 3600}, "restore": {"reclaim_instance_interval": 3600},
    "stop_deleted": {"reclaim_instance_interval": 3600},
    "shelveOffload": {"shelved_offload_time": -1}, "shelve": {"shelved_offload_time": 0}}


def attach(walk: Walk, uuid: str) -> None:
    [first, *_] = walk.cloud.server(uuid).interfaces
    with contextlib.suppress(errors.NovaError):  # the caller waits for the guest, and gets its errors
        walk.networks.attach(uuid, RequestedNetwork(network_id=first.network_id))


#: Actions of the walk, without random choices.
OWN: dict[str, Any] = {"soft_delete": ACTIONS["delete"],
       "stop_deleted": lambda walk, uuid: walk.cloud.control.order_server(
           ServerOrder(uuid=uuid, action="stop_deleted")),
       "createBackup": lambda walk, uuid: walk.cloud.control.create_backup(CreateBackup(
           uuid=uuid, name="daily", backup_type="daily", rotation=1)),
       "migrate": lambda walk, uuid: walk.cloud.control.migrate_server(MigrateServer(uuid=uuid)),
       "attach_interface": attach, "detach_interface": lambda walk, uuid: walk.networks.detach(uuid),
       "live-migration": lambda walk, uuid: walk.cloud.control.live_migrate_server(LiveMigrateServer(uuid=uuid))}
#: (action, purpose of a step) that does not occur here.
NOT_TAKEN = {("unshelve", "on_host"), ("migrate", "flavor")}


def prepared(walk: Walk, action: str) -> str:
    """Create a server on which the action may begin; its preceding actions have ended."""
    for part in walk.cloud.parts:
        part.set(**OPTIONS.get(action, {}))
    cloud = walk.cloud
    networks = {"networks": (RequestedNetwork(network_id=cloud.net),)} if cloud.networks.neutron else {}
    [uuid] = cloud.active(image_id=IMAGES[0], **networks)
    for earlier in BEFORE.get(action, ()):
        ordered(walk, uuid, earlier)
        walk.cloud.settle(uuid)
    return uuid


def ordered(walk: Walk, uuid: str, action: str) -> None:
    with context.entered(DEMO):
        {**ACTIONS, **OWN}[action](walk, uuid)
