"""Rescue and unrescue: another system boots beside the server's disks, and goes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Workflow
from nova.conductor.workflows.endings import powered, remembering


def rescued(ops: Sequence[Op]) -> Mapping[str, Any]:
    return {**powered(ops), **remembering(ops, rescue_image_id=ops[0].entry.arguments.get("rescue_image_ref"))}


def unrescued(ops: Sequence[Op]) -> Mapping[str, Any]:
    return {**powered(ops), **remembering(ops, rescue_image_id=None)}


RESCUE_SERVER = Workflow("rescue", steps.RescueGuests(), ending=rescued)
UNRESCUE_SERVER = Workflow("unrescue", steps.UnrescueGuests(), ending=unrescued)
