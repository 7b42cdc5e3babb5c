"""What each action is, forwards and backwards: one file each, read top to bottom."""

from nova.conductor.workflows.create_image import CREATE_BACKUP, CREATE_IMAGE
from nova.conductor.workflows.create_server import CREATE_SERVER
from nova.conductor.workflows.delete_server import DELETE_SERVER
from nova.conductor.workflows.evacuate import EVACUATE
from nova.conductor.workflows.inside import CHANGE_PASSWORD, CRASH_SERVER
from nova.conductor.workflows.interfaces import ATTACH_INTERFACE, DETACH_INTERFACE
from nova.conductor.workflows.live_migrate import LIVE_MIGRATE
from nova.conductor.workflows.pause import PAUSE_SERVER, RESUME_SERVER, SUSPEND_SERVER, UNPAUSE_SERVER
from nova.conductor.workflows.power import HARD_REBOOT, SOFT_REBOOT, START_SERVER, STOP_SERVER
from nova.conductor.workflows.rebuild_server import REBUILD_SERVER
from nova.conductor.workflows.rescue import RESCUE_SERVER, UNRESCUE_SERVER
from nova.conductor.workflows.resize import CONFIRM_RESIZE, MIGRATE, RESIZE, REVERT_RESIZE
from nova.conductor.workflows.shelve import SHELVE_OFFLOAD_SERVER, SHELVE_SERVER, UNSHELVE_SERVER
from nova.conductor.workflows.soft_delete import RESTORE_SERVER, SOFT_DELETE_SERVER, STOP_DELETED_SERVER

#: In a server's life, on its host.
ON_ONE_HOST = (
    START_SERVER, STOP_SERVER, SOFT_REBOOT, HARD_REBOOT, PAUSE_SERVER, UNPAUSE_SERVER, SUSPEND_SERVER, RESUME_SERVER,
    RESCUE_SERVER, UNRESCUE_SERVER, CHANGE_PASSWORD, CRASH_SERVER, CREATE_IMAGE, CREATE_BACKUP, REBUILD_SERVER,
    SOFT_DELETE_SERVER, STOP_DELETED_SERVER, RESTORE_SERVER, SHELVE_SERVER, SHELVE_OFFLOAD_SERVER, UNSHELVE_SERVER)

#: From one host to another.
MOVES = (RESIZE, MIGRATE, CONFIRM_RESIZE, REVERT_RESIZE, LIVE_MIGRATE, EVACUATE)

#: A server's interfaces that come and go.
OF_INTERFACES = (ATTACH_INTERFACE, DETACH_INTERFACE)

ALL = (CREATE_SERVER, DELETE_SERVER, *ON_ONE_HOST, *MOVES, *OF_INTERFACES)
