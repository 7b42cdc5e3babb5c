"""Steps of a workflow that an operation on a plain server executes."""

from __future__ import annotations

from nova.conductor.actions.volume.rebuild_root import REIMAGE
from nova.conductor.engine.workflow import Step, Workflow
from nova.conductor.steps.cell_moves import MoveToCell, ReturnToCell
from nova.conductor.steps.volumes import VolumeStep

#: Workflows about volumes: tests/unit/conductor/actions/test_volumes.py and test_stopped_images.py have their matrices.
OF_VOLUMES = frozenset({"attach_volume", "detach_volume", "extend_volume", "swap_volume", "snapshot_volume",
                        "merge_volume_snapshot", "create_image_stopped"})
#: Steps of a server that leaves its cell: tests/functional/test_cell_moves.py has their matrix.
BETWEEN_CELLS = (MoveToCell, ReturnToCell)


def without_volumes(workflow: Workflow) -> list[Step]:
    """Return the steps for a server without volumes that stays in its cell (test_root_volumes.py has the steps of root
    volumes)."""
    return [step for step in workflow.steps if not isinstance(step, (VolumeStep, *BETWEEN_CELLS))
            and step.when != REIMAGE]
