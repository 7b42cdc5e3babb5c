"""Quota sets and limits as the API shows them."""

from __future__ import annotations

from collections.abc import Callable

from nova.api.request import Request
from nova.api.schemas.quotas import CLASS_LAST_VERSIONS, CLASS_SHOWN_SINCE, LAST_VERSIONS
from nova.api.view import Out, View
from nova.model.quota.quotas import UNLIMITED, QuotaClass, QuotaSet


def _limit(name: str) -> Callable[[QuotaSet | QuotaClass, Request], int]:
    return lambda quotas, req: quotas.limits.get(name, UNLIMITED)


def _used(name: str) -> Callable[[QuotaSet, Request], int]:
    return lambda quotas, req: quotas.in_use.get(name, 0)


def _whole(name: str) -> Callable[[QuotaSet, Request], dict[str, int]]:
    """Return a getter of a limit with its usage. Reservations are always 0, because usage is counted in the transaction
    that admits a request."""
    return lambda quotas, req: {"limit": quotas.limits.get(name, UNLIMITED), "in_use": quotas.in_use.get(name, 0),
                                "reserved": 0}


WHOLE = {"limit": "integer", "in_use": "integer", "reserved": "integer"}

LIMITS = View(*(Out(name, _limit(name), until=until, type="integer") for name, until in LAST_VERSIONS.items()))
DETAIL = View(*(Out(name, _whole(name), until=until, type=WHOLE) for name, until in LAST_VERSIONS.items()))
CLASS_LIMITS = View(*(Out(name, _limit(name), CLASS_SHOWN_SINCE.get(name), until, type="integer")
                      for name, until in CLASS_LAST_VERSIONS.items()))

ABSOLUTE = View(
    Out("maxImageMeta", _limit("metadata_items"), until="2.38", type="integer"),
    Out("maxPersonality", _limit("injected_files"), until="2.56", type="integer"),
    Out("maxPersonalitySize", _limit("injected_file_content_bytes"), until="2.56", type="integer"),
    Out("maxSecurityGroups", _limit("security_groups"), until="2.35", type="integer"),
    Out("maxSecurityGroupRules", _limit("security_group_rules"), until="2.35", type="integer"),
    Out("maxServerMeta", _limit("metadata_items"), type="integer"),
    Out("maxServerGroups", _limit("server_groups"), type="integer"),
    Out("maxServerGroupMembers", _limit("server_group_members"), type="integer"),
    Out("maxTotalCores", _limit("cores"), type="integer"),
    Out("maxTotalFloatingIps", _limit("floating_ips"), until="2.35", type="integer"),
    Out("maxTotalInstances", _limit("instances"), type="integer"),
    Out("maxTotalKeypairs", _limit("key_pairs"), type="integer"),
    Out("maxTotalRAMSize", _limit("ram"), type="integer"),
    Out("totalCoresUsed", _used("cores"), type="integer"),
    Out("totalFloatingIpsUsed", _used("floating_ips"), until="2.35", type="integer"),
    Out("totalInstancesUsed", _used("instances"), type="integer"),
    Out("totalRAMUsed", _used("ram"), type="integer"),
    Out("totalSecurityGroupsUsed", _used("security_groups"), until="2.35", type="integer"),
    Out("totalServerGroupsUsed", _used("server_groups"), type="integer"),
)


# with the project's (the class's) name, in all responses except those of updates
_NAME = Out("id", "", type="string")
NAMED, NAMED_DETAIL = View(_NAME, *LIMITS.fields), View(_NAME, *DETAIL.fields)
NAMED_CLASS = View(_NAME, *CLASS_LIMITS.fields)


def named(view: View, project_id: str, quotas: QuotaSet, req: Request) -> dict[str, object]:
    """Return a quota set with its project's id, for all responses except those of updates."""
    return {"quota_set": {"id": project_id, **view(quotas, req)}}
