"""Projects that a request names: they are Keystone's, and something is kept for them only if Keystone knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova import context

if TYPE_CHECKING:
    from nova.conductor.engine.deps import Deps


def check_project(deps: Deps, project_id: str | None) -> None:
    """service.NotAProject. The caller's own is not asked for: the token has it."""
    if project_id and project_id != context.current().project_id:
        deps.projects.check(project_id)


__all__ = ["check_project"]
