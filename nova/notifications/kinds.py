"""The table of events: name, phases, publisher and payload of each."""

from __future__ import annotations

from typing import NamedTuple

from nova.notifications.payloads import resources, scheduling, servers
from nova.notifications.payloads.fields import Payload

API, COMPUTE, CONDUCTOR, SCHEDULER = "nova-api", "nova-compute", "nova-conductor", "nova-scheduler"

#: Binaries that may be publishers.
SOURCES = frozenset(("nova-api", "nova-compute", "nova-conductor", "nova-scheduler", "nova-network", "nova-consoleauth",
                     "nova-cells", "nova-console", "nova-metadata"))

#: Phases. An event without phases is emitted once, after it has happened.
ONCE = ("",)
AROUND = ("start", "end")
GUARDED = ("start", "end", "error")
FAILED = ("error",)


class EventKind(NamedTuple):
    """A row of the table. ``source``: the publishing binary; ``name``: without the phase."""

    name: str
    phases: tuple[str, ...]
    source: str
    payload: Payload

    @property
    def types(self) -> tuple[str, ...]:
        """Event types, with phases."""
        return tuple(event_type(self.name, phase) for phase in self.phases)


def event_type(name: str, phase: str) -> str:
    """Return ``instance.create.start``: the name and, for an event with phases, the phase."""
    return f"{name}.{phase}" if phase else name


def _servers(phases: tuple[str, ...], names: str, payload: Payload = servers.INSTANCE_ACTION, source: str = COMPUTE
             ) -> tuple[EventKind, ...]:
    return tuple(EventKind(f"instance.{name}", phases, source, payload) for name in names.split())


def _resource(what: str, phases: tuple[str, ...], names: str, payload: Payload, source: str = API
              ) -> tuple[EventKind, ...]:
    return tuple(EventKind(f"{what}.{name}", phases, source, payload) for name in names.split())


_ROWS: tuple[EventKind, ...] = (
    *_servers(GUARDED, "create", servers.INSTANCE_CREATE),
    *_servers(AROUND, "delete soft_delete restore shutdown"),
    *_servers(AROUND, "power_on power_off pause unpause suspend resume trigger_crash_dump unrescue"),
    *_servers(GUARDED, "reboot resize interface_attach"),
    *_servers(AROUND, "interface_detach shelve shelve_offload unshelve"),
    *_servers(AROUND, "resize_confirm resize_revert resize_finish"),
    *_servers(AROUND, "resize_prep", servers.INSTANCE_RESIZE_PREP),
    *_servers(AROUND, "live_migration_abort live_migration_force_complete live_migration_pre live_migration_post "
                      "live_migration_post_dest live_migration_rollback live_migration_rollback_dest"),
    *_servers(GUARDED, "rebuild", servers.INSTANCE_REBUILD),
    *_servers(ONCE, "rebuild_scheduled", servers.INSTANCE_REBUILD, CONDUCTOR),
    *_servers(ONCE, "evacuate lock unlock", source=API),
    *_servers(AROUND, "rescue", servers.INSTANCE_RESCUE),
    *_servers(AROUND, "snapshot", servers.INSTANCE_SNAPSHOT),
    *_servers(GUARDED, "volume_attach", servers.INSTANCE_VOLUME),
    *_servers(AROUND, "volume_detach", servers.INSTANCE_VOLUME),
    *_servers(GUARDED, "volume_swap", servers.INSTANCE_VOLUME_SWAP),
    *_servers(GUARDED, "share_attach share_detach", servers.INSTANCE_SHARE, API),
    *_servers(ONCE, "update", servers.INSTANCE_UPDATE),
    *_servers(ONCE, "exists", servers.INSTANCE_EXISTS),
    *_resource("aggregate", AROUND, "create delete add_host remove_host update_prop update_metadata cache_images",
               resources.AGGREGATE),
    *_resource("keypair", AROUND, "create delete import", resources.KEYPAIR),
    *_resource("flavor", ONCE, "create update delete", resources.FLAVOR),
    *_resource("server_group", ONCE, "create delete add_member", resources.SERVER_GROUP),
    *_resource("service", ONCE, "create update delete", resources.SERVICE_STATUS, COMPUTE),
    *_resource("volume", ONCE, "usage", resources.VOLUME_USAGE, COMPUTE),
    *_resource("compute", ONCE, "exception", resources.EXCEPTION),
    *_resource("libvirt", FAILED, "connect", resources.LIBVIRT_ERROR, COMPUTE),
    *_resource("compute_task", FAILED, "build_instances migrate_server rebuild_server", scheduling.COMPUTE_TASK,
               CONDUCTOR),
    *_resource("scheduler", AROUND, "select_destinations", scheduling.REQUEST_SPEC, SCHEDULER),
)

#: name without phase -> its row. The progress of cached images has a separate row, because its payload differs.
KINDS: dict[str, EventKind] = {row.name: row for row in _ROWS}
PROGRESS = EventKind("aggregate.cache_images", ("progress",), CONDUCTOR, resources.AGGREGATE_CACHE)

#: event type -> its row
TYPES: dict[str, EventKind] = {one: row for row in (*_ROWS, PROGRESS) for one in row.types}

#: Events of the reference that this cloud does not send, with the reason.
NOT_SENT: dict[str, str] = {
    "metrics.update": "compute hosts report no metrics of their processors",
}


class ActionNotification(NamedTuple):
    """An event of an action. ``step``: its workflow step; empty: the whole operation. ``of_source``: True if the
    publisher is the source host of a move; else it is the host that the server moves to, or is on."""

    name: str
    step: str = ""
    of_source: bool = False


def _whole(name: str, of_source: bool = False, **parts: str) -> tuple[ActionNotification, ...]:
    return (ActionNotification(f"instance.{name}", of_source=of_source),
            *(ActionNotification(f"instance.{part}", step) for step, part in parts.items()))


#: action (a row of ``model.states.ACTIONS``) -> its events. Actions without a row have none.
ACTIONS: dict[str, tuple[ActionNotification, ...]] = {
    "create": (*_whole("create"), ActionNotification("scheduler.select_destinations", "SelectHosts")),
    "delete": _whole("delete", DestroyGuests="shutdown"),
    "soft_delete": _whole("soft_delete"),
    "restore": _whole("restore"),
    "start": _whole("power_on"),
    "stop": _whole("power_off"),
    "stop_deleted": _whole("power_off"),
    "soft_reboot": _whole("reboot"),
    "hard_reboot": _whole("reboot"),
    "pause": _whole("pause"),
    "unpause": _whole("unpause"),
    "suspend": _whole("suspend"),
    "resume": _whole("resume"),
    "rescue": _whole("rescue"),
    "unrescue": _whole("unrescue"),
    "trigger_crash_dump": _whole("trigger_crash_dump"),
    "createImage": _whole("snapshot"),
    "create_image_stopped": _whole("snapshot"),
    "createBackup": _whole("snapshot"),
    "shelve": _whole("shelve", OffloadGuests="shelve_offload"),
    "shelveOffload": _whole("shelve_offload"),
    "unshelve": _whole("unshelve"),
    "rebuild": _whole("rebuild", RebuildScheduled="rebuild_scheduled"),
    "evacuate": _whole("rebuild", Evacuate="evacuate"),
    "resize": (*_whole("resize", True, PrepareResize="resize_prep", FinishResize="resize_finish"),
               ActionNotification("scheduler.select_destinations", "SelectHosts")),
    "migrate": (*_whole("resize", True, PrepareResize="resize_prep", FinishResize="resize_finish"),
                ActionNotification("scheduler.select_destinations", "SelectHosts")),
    "confirmResize": _whole("resize_confirm", True),
    "revertResize": _whole("resize_revert", True),
    "live-migration": (
        ActionNotification("instance.live_migration_pre", "PrepareLiveMigration"),
        ActionNotification("instance.live_migration_post", "CleanSource", True),
        ActionNotification("instance.live_migration_post_dest", "ArriveAtDestination"),
        ActionNotification("instance.live_migration_rollback", "MigrateGuests.undo", True),
        ActionNotification("instance.live_migration_rollback_dest", "PrepareLiveMigration.undo")),
    "live_migration_cancel": _whole("live_migration_abort"),
    "live_migration_force_complete": _whole("live_migration_force_complete"),
    "attach_interface": _whole("interface_attach"),
    "detach_interface": _whole("interface_detach"),
    "attach_volume": _whole("volume_attach"),
    "detach_volume": _whole("volume_detach"),
    "swap_volume": _whole("volume_swap"),
    "attach_share": _whole("share_attach"),
    "detach_share": _whole("share_detach"),
}

#: action -> an additional event when it fails: the conductor's task.
TASKS = {"create": "compute_task.build_instances", "migrate": "compute_task.migrate_server",
         "resize": "compute_task.migrate_server", "live-migration": "compute_task.migrate_server",
         "rebuild": "compute_task.rebuild_server", "evacuate": "compute_task.rebuild_server"}
