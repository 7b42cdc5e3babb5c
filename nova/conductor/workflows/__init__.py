"""What each action is, forwards and backwards: one file each, read top to bottom."""

from nova.conductor.workflows.create_server import CREATE_SERVER
from nova.conductor.workflows.delete_server import DELETE_SERVER
from nova.conductor.workflows.power import HARD_REBOOT, SOFT_REBOOT, START_SERVER, STOP_SERVER

ALL = (CREATE_SERVER, DELETE_SERVER, START_SERVER, STOP_SERVER, SOFT_REBOOT, HARD_REBOOT)
