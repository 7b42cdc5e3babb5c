"""States of a server and the table of what may happen when.

One row an action: from which (vm_state, task_state), what it says while it runs, what it says after success and
after failure. Facts: the Compute API's server state documentation (API guide, server concepts). Only ``begin``,
``advance`` and ``finish`` in ``nova.db`` write states, and they write what this table allows.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from nova.model.base import WireEnum


class VmState(WireEnum):
    ACTIVE = "active"
    BUILDING = "building"
    DELETED = "deleted"
    ERROR = "error"
    PAUSED = "paused"
    RESCUED = "rescued"
    RESIZED = "resized"
    SHELVED = "shelved"
    SHELVED_OFFLOADED = "shelved_offloaded"
    SOFT_DELETED = "soft-delete"
    STOPPED = "stopped"
    SUSPENDED = "suspended"
    UNKNOWN = "unknown"


class TaskState(WireEnum):
    SCHEDULING = "scheduling"
    BLOCK_DEVICE_MAPPING = "block_device_mapping"
    NETWORKING = "networking"
    SPAWNING = "spawning"
    DELETING = "deleting"
    SOFT_DELETING = "soft-deleting"
    RESTORING = "restoring"
    POWERING_OFF = "powering-off"
    POWERING_ON = "powering-on"
    REBOOTING = "rebooting"
    REBOOT_PENDING = "reboot_pending"
    REBOOT_STARTED = "reboot_started"
    REBOOTING_HARD = "rebooting_hard"
    REBOOT_PENDING_HARD = "reboot_pending_hard"
    REBOOT_STARTED_HARD = "reboot_started_hard"
    IMAGE_SNAPSHOT_PENDING = "image_snapshot_pending"
    IMAGE_SNAPSHOT = "image_snapshot"
    IMAGE_PENDING_UPLOAD = "image_pending_upload"
    IMAGE_UPLOADING = "image_uploading"
    IMAGE_BACKUP = "image_backup"
    UPDATING_PASSWORD = "updating_password"
    REBUILDING = "rebuilding"
    REBUILD_BLOCK_DEVICE_MAPPING = "rebuild_block_device_mapping"
    REBUILD_SPAWNING = "rebuild_spawning"
    MIGRATING = "migrating"
    RESIZE_PREP = "resize_prep"
    RESIZE_MIGRATING = "resize_migrating"
    RESIZE_MIGRATED = "resize_migrated"
    RESIZE_FINISH = "resize_finish"
    RESIZE_REVERTING = "resize_reverting"
    RESIZE_CONFIRMING = "resize_confirming"
    PAUSING = "pausing"
    UNPAUSING = "unpausing"
    SUSPENDING = "suspending"
    RESUMING = "resuming"
    RESCUING = "rescuing"
    UNRESCUING = "unrescuing"
    SHELVING = "shelving"
    SHELVING_IMAGE_PENDING_UPLOAD = "shelving_image_pending_upload"
    SHELVING_IMAGE_UPLOADING = "shelving_image_uploading"
    SHELVING_OFFLOADING = "shelving_offloading"
    UNSHELVING = "unshelving"
    UNKNOWN = "unknown"


class PowerState(enum.IntEnum):
    """Values as the API shows them in ``OS-EXT-STS:power_state``."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7

    @classmethod
    def _missing_(cls, value: object) -> PowerState:
        return cls.NOSTATE


V, T = VmState, TaskState

#: (vm_state, task_state) -> status; None is the row for every other task state.
STATUS: dict[VmState, dict[TaskState | None, str]] = {
    V.ACTIVE: {
        None: "ACTIVE", T.REBOOTING: "REBOOT", T.REBOOT_PENDING: "REBOOT", T.REBOOT_STARTED: "REBOOT",
        T.REBOOTING_HARD: "HARD_REBOOT", T.REBOOT_PENDING_HARD: "HARD_REBOOT", T.REBOOT_STARTED_HARD: "HARD_REBOOT",
        T.UPDATING_PASSWORD: "PASSWORD", T.REBUILDING: "REBUILD", T.REBUILD_BLOCK_DEVICE_MAPPING: "REBUILD",
        T.REBUILD_SPAWNING: "REBUILD", T.MIGRATING: "MIGRATING", T.RESIZE_PREP: "RESIZE",
        T.RESIZE_MIGRATING: "RESIZE", T.RESIZE_MIGRATED: "RESIZE", T.RESIZE_FINISH: "RESIZE"},
    V.BUILDING: {None: "BUILD"},
    V.STOPPED: {
        None: "SHUTOFF", T.RESIZE_PREP: "RESIZE", T.RESIZE_MIGRATING: "RESIZE", T.RESIZE_MIGRATED: "RESIZE",
        T.RESIZE_FINISH: "RESIZE", T.REBUILDING: "REBUILD", T.REBUILD_BLOCK_DEVICE_MAPPING: "REBUILD",
        T.REBUILD_SPAWNING: "REBUILD"},
    V.RESIZED: {None: "VERIFY_RESIZE", T.RESIZE_REVERTING: "REVERT_RESIZE"},
    V.PAUSED: {None: "PAUSED", T.MIGRATING: "MIGRATING"},
    V.SUSPENDED: {None: "SUSPENDED"},
    V.RESCUED: {None: "RESCUE"},
    V.ERROR: {None: "ERROR", T.REBUILDING: "REBUILD", T.REBUILD_BLOCK_DEVICE_MAPPING: "REBUILD",
              T.REBUILD_SPAWNING: "REBUILD"},
    V.DELETED: {None: "DELETED"},
    V.SOFT_DELETED: {None: "SOFT_DELETED"},
    V.SHELVED: {None: "SHELVED"},
    V.SHELVED_OFFLOADED: {None: "SHELVED_OFFLOADED"},
}

SHOWN_WITH_PROGRESS = frozenset({"ACTIVE", "BUILD", "MIGRATING", "REBUILD", "RESIZE", "VERIFY_RESIZE"})
SHOWN_WITH_FAULT = frozenset({"ERROR", "DELETED"})


def status(vm_state: VmState, task_state: TaskState | None) -> str:
    """The API's one-word status of a server that is not deleted."""
    row = STATUS.get(vm_state)
    return "UNKNOWN" if row is None else row.get(task_state, row[None])


def states_of(name: str) -> tuple[frozenset[VmState], frozenset[TaskState] | None]:
    """The (vm states, task states) that show as status ``name``; task states None means "all but the named ones".

    An unknown status gives no vm states at all.
    """
    vm_states, task_states, default = set(), set(), False
    for vm_state, row in STATUS.items():
        for task_state, shown in row.items():
            if shown == name.upper():
                vm_states.add(vm_state)
                default |= task_state is None
                if task_state is not None:
                    task_states.add(task_state)
    return frozenset(vm_states), None if default else frozenset(task_states)


ANY = None  # in a row of ACTIONS: every state
IDLE: frozenset[TaskState | None] = frozenset({None})


class Action(NamedTuple):
    """One row of the table. ``name`` is the instance action's name; ``task`` what task_state says at its begin.

    ``result`` is the vm_state after success (None: as before), ``failed`` after failure (None: as before).
    """

    name: str
    vm_states: frozenset[VmState] | None
    task_states: frozenset[TaskState | None] | None
    task: TaskState | None
    result: VmState | None = None
    failed: VmState | None = V.ERROR
    event: str = ""  # the name its main step has in os-instance-actions
    must_have_launched: bool = True
    refused_when_locked: bool = True
    needs_host: bool = True


def _v(*states: VmState) -> frozenset[VmState]:
    return frozenset(states)


def _t(*states: TaskState | None) -> frozenset[TaskState | None]:
    return frozenset(states)


_HARD_REBOOT_FROM = _t(None, T.PAUSING, T.REBOOT_PENDING, T.REBOOT_STARTED, T.REBOOTING, T.REBOOTING_HARD, T.RESUMING,
                       T.SUSPENDING, T.UNPAUSING)

_SNAPSHOT_FROM = _v(V.ACTIVE, V.PAUSED, V.STOPPED, V.SUSPENDED)

#: A shelved server has volumes, too; its place may be no host.
_VOLUMES_FROM = _v(V.ACTIVE, V.PAUSED, V.RESIZED, V.SHELVED, V.SHELVED_OFFLOADED, V.SOFT_DELETED, V.STOPPED)
_FILES_FROM = _v(V.ACTIVE, V.PAUSED, V.RESIZED, V.STOPPED)

_ROWS = (
    Action("create", _v(V.BUILDING), ANY, T.SCHEDULING, V.ACTIVE, V.ERROR, "compute__do_build_and_run_instance",
           must_have_launched=False, refused_when_locked=False, needs_host=False),
    Action("delete", ANY, ANY, T.DELETING, V.DELETED, V.ERROR, "compute_terminate_instance",
           must_have_launched=False, needs_host=False),
    Action("start", _v(V.STOPPED), IDLE, T.POWERING_ON, V.ACTIVE, None, "compute_start_instance"),
    Action("stop", _v(V.ACTIVE, V.ERROR), IDLE, T.POWERING_OFF, V.STOPPED, None, "compute_stop_instance"),
    Action("soft_reboot", _v(V.ACTIVE), IDLE, T.REBOOTING, V.ACTIVE, None, "compute_reboot_instance"),
    Action("hard_reboot", _v(V.ACTIVE, V.ERROR, V.PAUSED, V.STOPPED, V.SUSPENDED), _HARD_REBOOT_FROM,
           T.REBOOTING_HARD, V.ACTIVE, V.ERROR, "compute_reboot_instance"),
    Action("pause", _v(V.ACTIVE), IDLE, T.PAUSING, V.PAUSED, None, "compute_pause_instance"),
    Action("unpause", _v(V.PAUSED), IDLE, T.UNPAUSING, V.ACTIVE, None, "compute_unpause_instance"),
    Action("suspend", _v(V.ACTIVE), IDLE, T.SUSPENDING, V.SUSPENDED, None, "compute_suspend_instance"),
    Action("resume", _v(V.SUSPENDED), IDLE, T.RESUMING, V.ACTIVE, None, "compute_resume_instance"),
    Action("rescue", _v(V.ACTIVE, V.ERROR, V.STOPPED), IDLE, T.RESCUING, V.RESCUED, V.ERROR,
           "compute_rescue_instance"),
    Action("unrescue", _v(V.RESCUED), IDLE, T.UNRESCUING, V.ACTIVE, V.ERROR, "compute_unrescue_instance"),
    Action("changePassword", _v(V.ACTIVE), IDLE, T.UPDATING_PASSWORD, None, None, "compute_set_admin_password"),
    Action("trigger_crash_dump", _v(V.ACTIVE, V.ERROR, V.PAUSED, V.RESCUED, V.RESIZED), IDLE, None, None, None,
           "compute_trigger_crash_dump"),
    Action("createImage", _SNAPSHOT_FROM, IDLE, T.IMAGE_SNAPSHOT_PENDING, None, None, "compute_snapshot_instance",
           refused_when_locked=False),
    # EC2's: a guest on volumes is off while their snapshots are made
    Action("create_image_stopped", _v(V.ACTIVE), IDLE, T.IMAGE_SNAPSHOT_PENDING, None, None,
           "compute_snapshot_instance"),
    Action("createBackup", _SNAPSHOT_FROM, IDLE, T.IMAGE_BACKUP, None, None, "compute_backup_instance",
           refused_when_locked=False),
    # a server that was off stays off: the workflow's ending says so
    Action("rebuild", _v(V.ACTIVE, V.ERROR, V.STOPPED), IDLE, T.REBUILDING, V.ACTIVE, V.ERROR,
           "compute_rebuild_instance"),
    Action("evacuate", _v(V.ACTIVE, V.ERROR, V.STOPPED), ANY, T.REBUILDING, V.ACTIVE, None,
           "compute_rebuild_instance", refused_when_locked=False),
    Action("soft_delete", ANY, ANY, T.SOFT_DELETING, V.SOFT_DELETED, V.ERROR, "compute_soft_delete_instance",
           needs_host=False),
    # by the cloud itself, of a guest that runs all the same
    Action("stop_deleted", _v(V.SOFT_DELETED), IDLE, T.POWERING_OFF, None, None, "compute_stop_instance",
           refused_when_locked=False),
    Action("restore", _v(V.SOFT_DELETED), IDLE, T.RESTORING, V.ACTIVE, None, "compute_restore_instance",
           needs_host=False),
    # with shelved_offload_time 0 it is offloaded at once: the workflow's ending says so
    Action("shelve", _SNAPSHOT_FROM, IDLE, T.SHELVING, V.SHELVED, None, "compute_shelve_instance"),
    Action("shelveOffload", _v(V.SHELVED), IDLE, T.SHELVING_OFFLOADING, V.SHELVED_OFFLOADED, None,
           "compute_shelve_offload_instance"),
    Action("unshelve", _v(V.SHELVED, V.SHELVED_OFFLOADED), IDLE, T.UNSHELVING, V.ACTIVE, None,
           "compute_unshelve_instance", needs_host=False),
    Action("resize", _v(V.ACTIVE, V.STOPPED), IDLE, T.RESIZE_PREP, V.RESIZED, None, "compute_prep_resize"),
    Action("migrate", _v(V.ACTIVE, V.STOPPED), IDLE, T.RESIZE_PREP, V.RESIZED, None, "compute_prep_resize"),
    # what confirming and reverting give back is what the server was before: the workflows' endings say it
    Action("confirmResize", _v(V.RESIZED), IDLE, None, None, None, "compute_confirm_resize"),
    Action("revertResize", _v(V.RESIZED), IDLE, T.RESIZE_REVERTING, None, V.ERROR, "compute_revert_resize"),
    Action("live-migration", _v(V.ACTIVE, V.PAUSED), IDLE, T.MIGRATING, None, None, "compute_live_migration"),
    Action("attach_interface", _v(V.ACTIVE, V.PAUSED, V.STOPPED), IDLE, None, None, None, "compute_attach_interface"),
    Action("detach_interface", _v(V.ACTIVE, V.PAUSED, V.STOPPED), IDLE, None, None, None, "compute_detach_interface"),
    Action("attach_volume", _VOLUMES_FROM, IDLE, None, None, None, "compute_attach_volume", needs_host=False),
    Action("detach_volume", _VOLUMES_FROM, IDLE, None, None, None, "compute_detach_volume", needs_host=False),
    Action("extend_volume", _VOLUMES_FROM, IDLE, None, None, None, "compute_extend_volume", refused_when_locked=False,
           needs_host=False),
    Action("swap_volume", _v(V.ACTIVE, V.PAUSED, V.RESIZED), IDLE, None, None, None, "compute_swap_volume"),
    # by the volume service, of a volume that is a file
    Action("snapshot_volume", _FILES_FROM, IDLE, None, None, None, "compute_snapshot_volume",
           refused_when_locked=False),
    Action("merge_volume_snapshot", _FILES_FROM, IDLE, None, None, None, "compute_merge_volume_snapshot",
           refused_when_locked=False),
    # what it turns to is the request's to say
    Action("reset_state", ANY, ANY, None, None, None, must_have_launched=False, refused_when_locked=False,
           needs_host=False),
    Action("live_migration_force_complete", _v(V.ACTIVE), _t(T.MIGRATING), None, None, None,
           "compute_live_migration_force_complete"),
    Action("live_migration_cancel", ANY, _t(T.MIGRATING), None, None, None, "compute_live_migration_abort"),
)

ACTIONS: dict[str, Action] = {row.name: row for row in _ROWS}

#: Console addresses that were given out before one of these began are good no longer: the guest that they show goes, or
#: goes elsewhere.
ENDS_CONSOLES = frozenset({
    "delete", "soft_delete", "stop", "stop_deleted", "suspend", "rescue", "unrescue", "rebuild", "evacuate", "shelve",
    "shelveOffload", "unshelve", "resize", "migrate", "revertResize", "live-migration", "create_image_stopped"})

#: Nothing but orders to the server's own host: where that is known to be down, they can but fail.
ON_ITS_HOST = frozenset({
    "start", "stop", "soft_reboot", "hard_reboot", "pause", "unpause", "suspend", "resume", "rescue", "unrescue",
    "changePassword", "trigger_crash_dump", "createImage", "create_image_stopped", "createBackup",
    "rebuild", "shelve"})

#: Operations that change no state but look at it (vm_states, task_states).
METADATA_STATES = _v(V.ACTIVE, V.PAUSED, V.STOPPED, V.SUSPENDED)

#: The name os-instance-actions shows, where it differs.
API_NAMES = {"soft_reboot": "reboot", "hard_reboot": "reboot", "soft_delete": "delete",
             "stop_deleted": "stop", "reset_state": "resetState", "create_image_stopped": "createImage"}


class StateConflict(NamedTuple):
    """Why an action may not begin: the attribute that stands in its way, and its value."""

    attribute: str
    value: str


def refusal(action: Action, vm_state: VmState, task_state: TaskState | None,
            launched: bool = True) -> StateConflict | None:
    """None when ``action`` may begin in this state, else what is in its way."""
    if action.vm_states is not ANY and vm_state not in action.vm_states:
        return StateConflict("vm_state", vm_state.value)
    if action.task_states is not ANY and task_state not in action.task_states:
        return StateConflict("task_state", task_state.value if task_state else "None")
    if action.must_have_launched and not launched:
        return StateConflict("launched_at", "None")
    return None
