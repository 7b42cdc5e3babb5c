"""All workflows, grouped by their effect on a server."""

from nova.conductor.actions.create import CREATE_SERVER
from nova.conductor.actions.delete import DELETE_SERVER, RESTORE_SERVER, SOFT_DELETE_SERVER, STOP_DELETED_SERVER
from nova.conductor.actions.evacuate import EVACUATE
from nova.conductor.actions.interfaces import ATTACH_INTERFACE, DETACH_INTERFACE
from nova.conductor.actions.live_migrate import LIVE_MIGRATE
from nova.conductor.actions.power import (
    CHANGE_PASSWORD,
    CRASH_SERVER,
    HARD_REBOOT,
    PAUSE_SERVER,
    RESUME_SERVER,
    SOFT_REBOOT,
    START_SERVER,
    STOP_SERVER,
    SUSPEND_SERVER,
    UNPAUSE_SERVER,
)
from nova.conductor.actions.rebuild import REBUILD_SERVER
from nova.conductor.actions.rescue import RESCUE_SERVER, UNRESCUE_SERVER
from nova.conductor.actions.resize import MIGRATE, RESIZE
from nova.conductor.actions.resize_ends import CONFIRM_RESIZE, REVERT_RESIZE
from nova.conductor.actions.shelve import SHELVE_OFFLOAD_SERVER, SHELVE_SERVER, UNSHELVE_SERVER
from nova.conductor.actions.snapshot import CREATE_BACKUP, CREATE_IMAGE
from nova.conductor.actions.volume.stopped_images import CREATE_IMAGE_STOPPED
from nova.conductor.actions.volume.volume_snapshots import MERGE_VOLUME_SNAPSHOT, SNAPSHOT_VOLUME
from nova.conductor.actions.volume.volume_swaps import SWAP_VOLUME
from nova.conductor.actions.volume.volumes import ATTACH_VOLUME, DETACH_VOLUME, EXTEND_VOLUME

#: Actions on a server that stays on its host.
ON_ONE_HOST = (
    START_SERVER, STOP_SERVER, SOFT_REBOOT, HARD_REBOOT, PAUSE_SERVER, UNPAUSE_SERVER, SUSPEND_SERVER, RESUME_SERVER,
    RESCUE_SERVER, UNRESCUE_SERVER, CHANGE_PASSWORD, CRASH_SERVER, CREATE_IMAGE, CREATE_BACKUP, REBUILD_SERVER,
    SOFT_DELETE_SERVER, STOP_DELETED_SERVER, RESTORE_SERVER, SHELVE_SERVER, SHELVE_OFFLOAD_SERVER, UNSHELVE_SERVER)

#: Moves from one host to another.
MOVES = (RESIZE, MIGRATE, CONFIRM_RESIZE, REVERT_RESIZE, LIVE_MIGRATE, EVACUATE)

#: Attaching and detaching a server's devices, and images and snapshots of its volumes.
OF_DEVICES = (ATTACH_INTERFACE, DETACH_INTERFACE, ATTACH_VOLUME, DETACH_VOLUME, EXTEND_VOLUME, SWAP_VOLUME,
              SNAPSHOT_VOLUME, MERGE_VOLUME_SNAPSHOT, CREATE_IMAGE_STOPPED)

ALL = (CREATE_SERVER, DELETE_SERVER, *ON_ONE_HOST, *MOVES, *OF_DEVICES)
