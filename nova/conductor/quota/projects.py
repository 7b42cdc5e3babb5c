"""Checks of projects that a request names: records are written only for projects that Keystone knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova import context

if TYPE_CHECKING:
    from nova.conductor.engine.deps import Deps


def check_project(deps: Deps, project_id: str | None) -> None:
    """Check that Keystone knows the project. The caller's own is not checked: the token has it. Raises
    service.NotAProject."""
    if project_id and project_id != context.current().project_id:
        deps.projects.check(project_id)


__all__ = ["check_project"]
