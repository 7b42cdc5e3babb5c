"""Quotas: limits a project or user has, and what is used of them."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value

#: Resources that are counted or checked now, with the option that holds their default in ``[quota]``.
RESOURCES = ("instances", "cores", "ram", "metadata_items", "injected_files", "injected_file_content_bytes",
             "injected_file_path_bytes", "key_pairs", "server_groups", "server_group_members")
#: Names that old versions still list: nova-network's own resources.
NETWORK_RESOURCES = ("fixed_ips", "floating_ips", "networks", "security_groups", "security_group_rules")

UNLIMITED = -1

#: The class whose limits stand in for the configured defaults.
DEFAULT_CLASS = "default"


class QuotaSet(Value):
    """Limits in force for a project (and user); usage and reserved where asked for. Keys are RESOURCES' names."""

    project_id: str | None = None
    user_id: str | None = None
    limits: Mapping[str, int]
    in_use: Mapping[str, int] = {}
    minimum: Mapping[str, int] = {}  # for updates: what a limit may not go below without force


class QuotaClass(Value):
    """A class and its limits: for an answer all in force, for an update those to write."""

    class_name: str
    limits: Mapping[str, int]


class QuotaUpdate(Value):
    """New limits for a project, or for one user in it."""

    project_id: str
    user_id: str | None = None
    limits: Mapping[str, int]
    force: bool = False
