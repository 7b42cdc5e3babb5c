"""Make an image of a server, or a backup of which only the newest are kept. The server stays as it is."""

from __future__ import annotations

from nova.conductor import steps
from nova.conductor.engine.workflow import Workflow
from nova.model.states import TaskState

CREATE_IMAGE = Workflow(
    "createImage",
    steps.HoldImage(whole_stays=True),                        # its record; undo: delete it, if it has no data
    steps.TakeSnapshots(task=TaskState.IMAGE_SNAPSHOT,        # a file on the host; undo: drop it
                        event="compute_snapshot_instance"),
    steps.UploadSnapshots(task=TaskState.IMAGE_UPLOADING),    # the host sends it, and drops it
)

CREATE_BACKUP = Workflow(
    "createBackup",
    steps.HoldImage(when="kept", whole_stays=True),           # with a rotation of 0 none is kept
    steps.TakeSnapshots(when="kept", event="compute_backup_instance"),
    steps.UploadSnapshots(when="kept"),
    steps.RotateBackups(),                                    # the oldest go
)
