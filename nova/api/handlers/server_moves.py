"""Moves of servers: resize with confirm and revert, cold and live migration, evacuation."""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.api import versions
from nova.api.handlers.server_create import ZERO_DISK, passwords
from nova.api.handlers.server_targets import actor, order
from nova.api.request import Request
from nova.api.view import During, answers
from nova.model.server.server_orders import EvacuateServer, LiveMigrateServer, MigrateServer, ResizeServer

_RULES = "os_compute_api:os-migrate-server:"
MIGRATE_HOST = f"{_RULES}migrate:host"
LIVE_HOST = f"{_RULES}migrate_live:host"

CROSS_CELL = "compute:servers:resize:cross_cell"

AUTO = "auto"  # of block_migration: the hosts' storage decides


# resize


def resize(req: Request, server_id: str) -> None:
    """Start to resize a server to another flavor; it then waits for a confirm or revert. Raises server.NotFound (404);
    server.BadFlavor, move.ResizeSameFlavor, move.ResizeDiskWouldShrink, server.FlavorTooSmall (400); quota.Exceeded
    (403); server.Locked, server.WrongState, move.SourceDown (409)."""
    asked = req.body["resize"]
    found = actor(req, server_id, "resize")
    req.conductor.resize_server(ResizeServer(
        uuid=server_id, flavor_id=str(asked["flavorRef"]).rsplit("/", 1)[-1],
        disk_config=asked.get("OS-DCF:diskConfig"),
        may_zero_disk=req.allows(ZERO_DISK, found.project_id, found.user_id),
        cross_cell=req.allows(CROSS_CELL, found.project_id, found.user_id)))


def confirm_resize(req: Request, server_id: str) -> None:
    """Confirm a resize or migration: keep the new flavor or host, and discard the old. Raises server.NotFound (404);
    server.Locked, server.WrongState (409)."""
    order(req, server_id, "confirmResize")


def revert_resize(req: Request, server_id: str) -> None:
    """Revert a resize or migration: return the server to its old flavor or host. Raises server.NotFound (404);
    server.Locked, server.WrongState (409)."""
    order(req, server_id, "revertResize")


# to other hosts


def migrate(req: Request, server_id: str) -> None:
    """Start a cold migration; naming the host needs a separate rule."""
    asked = req.body["migrate"] if versions.migrate_can_name_a_host(req.version) else None
    host = asked.get("host") if asked else None
    found = actor(req, server_id, "migrate", rule=MIGRATE_HOST if host else None)
    req.conductor.migrate_server(MigrateServer(
        uuid=server_id, host=host, cross_cell=req.allows(CROSS_CELL, found.project_id, found.user_id)))


def live_migrate(req: Request, server_id: str) -> None:
    """Start a live migration; naming the host needs a separate rule. Raises server.NotFound (404);
    server.ForcedNowhere, move.NoSuchHost, move.HostDown, move.OwnHost, move.ChecksFailed (400); server.Locked,
    server.WrongState (409)."""
    asked = req.body["os-migrateLive"]
    host, block = asked["host"], asked["block_migration"]
    force = _force(asked)
    actor(req, server_id, "live-migration", rule=LIVE_HOST if host else None)
    req.conductor.live_migrate_server(LiveMigrateServer(
        uuid=server_id, host=host, block_migration=None if block == AUTO else block,
        disk_over_commit=asked.get("disk_over_commit", False),
        force=versions.live_migration_is_forced(req.version, host, force),
        wait_for_checks=versions.live_migration_waits_for_checks(req.version)))


def _force(asked: Mapping[str, str | bool | None]) -> bool:
    """Return whether to skip the checks of the destination. Raises server.ForcedNowhere."""
    force = bool(asked.get("force"))
    if force and not asked.get("host"):
        raise errors.server.ForcedNowhere
    return force


@answers(During({"adminPass": ("string", "null")}, until="2.13"))
def evacuate(req: Request, server_id: str) -> dict[str, object] | None:
    """Evacuate a server from a host that is down. In old versions the request says whether the disk is kept, with its
    password; for a new disk the response has the new password."""
    asked = req.body["evacuate"]
    host, kept, force = asked.get("host"), asked.get("onSharedStorage"), _force(asked)
    if kept and "adminPass" in asked:
        raise errors.server.PasswordOfKeptDisk
    actor(req, server_id, "evacuate")
    password, shown = (None, None) if kept else passwords(req, asked.get("adminPass"))
    req.conductor.evacuate_server(EvacuateServer(
        uuid=server_id, host=host, on_shared_storage=kept, admin_password=password,
        force=versions.evacuation_is_forced(req.version, host, force),
        stay_off=versions.evacuated_servers_stay_off(req.version)))
    if not versions.evacuation_answers_with_the_password(req.version) or not req.options.enable_instance_password:
        return None
    return {"adminPass": shown}
