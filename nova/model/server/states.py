"""States of a server, and the table of actions allowed in each state.

One row per action: the (vm_state, task_state) it may begin in, the task state while it runs, and the states after
success and failure. Source: the Compute API's server state documentation (API guide, server concepts). Only ``begin``,
``advance`` and ``finish`` in ``nova.db`` write states, and only as this table allows.
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
    """Power states with the values of ``OS-EXT-STS:power_state``."""

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

#: (vm_state, task_state) -> status; None is the row for all other task states.
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
    """Return the API's status of a server that is not deleted."""
    row = STATUS.get(vm_state)
    return "UNKNOWN" if row is None else row.get(task_state, row[None])


def states_of(name: str) -> tuple[frozenset[VmState], frozenset[TaskState] | None]:
    """Return the (vm states, task states) with the status ``name``; task states None means "all except the named ones".

    An unknown status has no vm states.
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


ANY = None  # in a row of ACTIONS: all states
IDLE: frozenset[TaskState | None] = frozenset({None})


class Action(NamedTuple):
    """An action on servers. ``name`` is the instance action's name; ``task`` the task_state at its start.

    ``result`` is the vm_state after success (None: unchanged), ``failed`` after failure (None: unchanged).
    """

    name: str
    vm_states: frozenset[VmState] | None
    task_states: frozenset[TaskState | None] | None
    task: TaskState | None
    result: VmState | None = None
    failed: VmState | None = V.ERROR
    event: str = ""  # name of its main step in os-instance-actions
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

#: A shelved server has volumes too, but may have no host.
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
    # EC2: a guest with volumes is stopped during their snapshots
    Action("create_image_stopped", _v(V.ACTIVE), IDLE, T.IMAGE_SNAPSHOT_PENDING, None, None,
           "compute_snapshot_instance"),
    Action("createBackup", _SNAPSHOT_FROM, IDLE, T.IMAGE_BACKUP, None, None, "compute_backup_instance",
           refused_when_locked=False),
    # a stopped server stays off: set at the end of the workflow
    Action("rebuild", _v(V.ACTIVE, V.ERROR, V.STOPPED), IDLE, T.REBUILDING, V.ACTIVE, V.ERROR,
           "compute_rebuild_instance"),
    Action("evacuate", _v(V.ACTIVE, V.ERROR, V.STOPPED), ANY, T.REBUILDING, V.ACTIVE, None,
           "compute_rebuild_instance", refused_when_locked=False),
    Action("soft_delete", ANY, ANY, T.SOFT_DELETING, V.SOFT_DELETED, V.ERROR, "compute_soft_delete_instance",
           needs_host=False),
    # by nova itself, if the guest of a deleted server still runs
    Action("stop_deleted", _v(V.SOFT_DELETED), IDLE, T.POWERING_OFF, None, None, "compute_stop_instance",
           refused_when_locked=False),
    Action("restore", _v(V.SOFT_DELETED), IDLE, T.RESTORING, V.ACTIVE, None, "compute_restore_instance",
           needs_host=False),
    # with shelved_offload_time 0 it is offloaded immediately: set at the end of the workflow
    Action("shelve", _SNAPSHOT_FROM, IDLE, T.SHELVING, V.SHELVED, None, "compute_shelve_instance"),
    Action("shelveOffload", _v(V.SHELVED), IDLE, T.SHELVING_OFFLOADING, V.SHELVED_OFFLOADED, None,
           "compute_shelve_offload_instance"),
    Action("unshelve", _v(V.SHELVED, V.SHELVED_OFFLOADED), IDLE, T.UNSHELVING, V.ACTIVE, None,
           "compute_unshelve_instance", needs_host=False),
    Action("resize", _v(V.ACTIVE, V.STOPPED), IDLE, T.RESIZE_PREP, V.RESIZED, None, "compute_prep_resize"),
    Action("migrate", _v(V.ACTIVE, V.STOPPED), IDLE, T.RESIZE_PREP, V.RESIZED, None, "compute_prep_resize"),
    # confirm and revert restore the server's previous state: set at the end of the workflows
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
    # by the volume service, for a volume that is a file
    Action("snapshot_volume", _FILES_FROM, IDLE, None, None, None, "compute_snapshot_volume",
           refused_when_locked=False),
    Action("merge_volume_snapshot", _FILES_FROM, IDLE, None, None, None, "compute_merge_volume_snapshot",
           refused_when_locked=False),
    # the request contains the new state
    Action("reset_state", ANY, ANY, None, None, None, must_have_launched=False, refused_when_locked=False,
           needs_host=False),
    Action("live_migration_force_complete", _v(V.ACTIVE), _t(T.MIGRATING), None, None, None,
           "compute_live_migration_force_complete"),
    Action("live_migration_cancel", ANY, _t(T.MIGRATING), None, None, None, "compute_live_migration_abort"),
)

ACTIONS: dict[str, Action] = {row.name: row for row in _ROWS}

#: Actions whose start invalidates the server's console addresses: its guest is removed or moves.
ENDS_CONSOLES = frozenset({
    "delete", "soft_delete", "stop", "stop_deleted", "suspend", "rescue", "unrescue", "rebuild", "evacuate", "shelve",
    "shelveOffload", "unshelve", "resize", "migrate", "revertResize", "live-migration", "create_image_stopped"})

#: Actions that only consist of orders to the server's own host: if that is down, they always fail.
ON_ITS_HOST = frozenset({
    "start", "stop", "soft_reboot", "hard_reboot", "pause", "unpause", "suspend", "resume", "rescue", "unrescue",
    "changePassword", "trigger_crash_dump", "createImage", "create_image_stopped", "createBackup",
    "rebuild", "shelve"})

#: States for operations that check the state but do not change it (vm_states, task_states).
METADATA_STATES = _v(V.ACTIVE, V.PAUSED, V.STOPPED, V.SUSPENDED)

#: Name in os-instance-actions, if it differs.
API_NAMES = {"soft_reboot": "reboot", "hard_reboot": "reboot", "soft_delete": "delete",
             "stop_deleted": "stop", "reset_state": "resetState", "create_image_stopped": "createImage"}


class StateConflict(NamedTuple):
    """Reason why an action may not begin: the attribute with the conflict, and its value."""

    attribute: str
    value: str


def refusal(action: Action, vm_state: VmState, task_state: TaskState | None,
            launched: bool = True) -> StateConflict | None:
    """Return None if ``action`` may begin in this state, otherwise the conflict."""
    if action.vm_states is not ANY and vm_state not in action.vm_states:
        return StateConflict("vm_state", vm_state.value)
    if action.task_states is not ANY and task_state not in action.task_states:
        return StateConflict("task_state", task_state.value if task_state else "None")
    if action.must_have_launched and not launched:
        return StateConflict("launched_at", "None")
    return None
