"""Quotas: the limits of a project or user, and their usage."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value

#: Resources that are counted or checked; ``[quota]`` has an option with the default of each.
RESOURCES = ("instances", "cores", "ram", "metadata_items", "injected_files", "injected_file_content_bytes",
             "injected_file_path_bytes", "key_pairs", "server_groups", "server_group_members")
#: Resources of nova-network, which old API versions still list.
NETWORK_RESOURCES = ("fixed_ips", "floating_ips", "networks", "security_groups", "security_group_rules")

UNLIMITED = -1

#: Quota class whose limits override the configured defaults.
DEFAULT_CLASS = "default"


class QuotaSet(Value):
    """Effective limits of a project (and user); usage and reserved amounts on request. Keys are those of RESOURCES."""

    project_id: str | None = None
    user_id: str | None = None
    limits: Mapping[str, int]
    in_use: Mapping[str, int] = {}
    minimum: Mapping[str, int] = {}  # for updates: the lowest limit that needs no force


class QuotaClass(Value):
    """A quota class and its limits: all effective ones in an answer, the ones to write in an update."""

    class_name: str
    limits: Mapping[str, int]


class QuotaUpdate(Value):
    """New limits for a project, or for one user in a project."""

    project_id: str
    user_id: str | None = None
    limits: Mapping[str, int]
    force: bool = False
