"""Quota sets and limits as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nova.api.request import Request
from nova.api.schemas.quotas import LAST_VERSIONS
from nova.api.view import Out, View
from nova.model.quotas import UNLIMITED, QuotaSet


def _limit(name: str) -> Callable[[QuotaSet, Request], int]:
    return lambda quotas, req: quotas.limits.get(name, UNLIMITED)


def _used(name: str) -> Callable[[QuotaSet, Request], int]:
    return lambda quotas, req: quotas.in_use.get(name, 0)


def _whole(name: str) -> Callable[[QuotaSet, Request], dict[str, int]]:
    """Nothing is ever reserved: what a request takes is counted in the transaction that admits it."""
    return lambda quotas, req: {"limit": quotas.limits.get(name, UNLIMITED), "in_use": quotas.in_use.get(name, 0),
                                "reserved": 0}


LIMITS = View(*(Out(name, _limit(name), until=until) for name, until in LAST_VERSIONS.items()))
DETAIL = View(*(Out(name, _whole(name), until=until) for name, until in LAST_VERSIONS.items()))

ABSOLUTE = View(
    Out("maxImageMeta", _limit("metadata_items"), until="2.38"),
    Out("maxPersonality", _limit("injected_files"), until="2.56"),
    Out("maxPersonalitySize", _limit("injected_file_content_bytes"), until="2.56"),
    Out("maxSecurityGroups", _limit("security_groups"), until="2.35"),
    Out("maxSecurityGroupRules", _limit("security_group_rules"), until="2.35"),
    Out("maxServerMeta", _limit("metadata_items")),
    Out("maxServerGroups", _limit("server_groups")),
    Out("maxServerGroupMembers", _limit("server_group_members")),
    Out("maxTotalCores", _limit("cores")),
    Out("maxTotalFloatingIps", _limit("floating_ips"), until="2.35"),
    Out("maxTotalInstances", _limit("instances")),
    Out("maxTotalKeypairs", _limit("key_pairs")),
    Out("maxTotalRAMSize", _limit("ram")),
    Out("totalCoresUsed", _used("cores")),
    Out("totalFloatingIpsUsed", _used("floating_ips"), until="2.35"),
    Out("totalInstancesUsed", _used("instances")),
    Out("totalRAMUsed", _used("ram")),
    Out("totalSecurityGroupsUsed", _used("security_groups"), until="2.35"),
    Out("totalServerGroupsUsed", _used("server_groups")),
)


def named(view: View, project_id: str, quotas: QuotaSet, req: Request) -> dict[str, Any]:
    """A quota set with its project's id, as all but an update answer."""
    return {"quota_set": {"id": project_id, **view(quotas, req)}}
