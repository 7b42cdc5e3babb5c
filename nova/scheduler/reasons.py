"""Reasons for no valid host, as two texts and as values for the journal.

Users see which part of their request could not be met, and nothing about hosts. Admins see counts and the nearest miss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from nova.model.scheduling.decisions import PlacementRequest, Refusal
from nova.scheduler.closest_host import Shortfall, nearest
from nova.scheduler.filters import Filter
from nova.scheduler.filters.always import CHECKS
from nova.scheduler.views import HostView

NO_VALID_HOST = "No valid host was found. "
NOT_ENOUGH = "There are not enough hosts available"
LONGEST = 255  # maximum length of a fault's message
SHOWN = 5  # different reasons shown of one filter
PUBLIC_SHOWN = 2  # the same for users, of a filter with public reasons
TRIED = "tried before"  # pseudo filter of hosts that were excluded after they refused or failed
REASON_LONGEST = 200  # maximum length of a reason, as operators' own filters return any


class Reason(NamedTuple):
    """The reason: ``public`` for users, ``details`` for admins. ``asked``: the number of hosts to choose from."""

    public: str
    details: str
    asked: int = 0
    refusals: tuple[Refusal, ...] = ()


class _Refusals(NamedTuple):
    """A filter's refusals among the hosts that passed all filters before it."""

    filter: Filter
    reasons: Counter[str]
    hosts: list[HostView]


#: Filters whose reasons disclose hosts or other users -> the part of the user's request that they check.
_ASKED_BY: Mapping[str, Callable[[PlacementRequest], str]] = {
    "AvailabilityZoneFilter": lambda request: f"zone {request.availability_zone}",
    "ImagePropertiesFilter": lambda request: "the image's properties",
    "AggregateImagePropertiesIsolation": lambda request: "the image's properties",
    "ComputeCapabilitiesFilter": lambda request: "the flavor's extra specs",
    "AggregateInstanceExtraSpecsFilter": lambda request: "the flavor's extra specs",
    "AggregateTypeAffinityFilter": lambda request: f"flavor {request.flavor_name}",
    "NUMATopologyFilter": lambda request: "the topology of processors and memory",
    "PciPassthroughFilter": lambda request: "devices",
}


def explain(hosts: Sequence[HostView], request: PlacementRequest, filters: Iterable[Filter]) -> Reason:
    """Return the reason. Each host counts at the first filter that refuses it. ``filters``: the filters for the
    request."""
    if not hosts:
        return _reason((), "There is no compute host.")
    asked = [host for host in hosts if request.host in (None, host.host) and request.node in (None, host.node)]
    if not asked:
        where = " ".join(f"{word} {name}" for word, name in (("host", request.host), ("node", request.node)) if name)
        return Reason(f"{NO_VALID_HOST}There is no {where}.",
                      f"{NO_VALID_HOST}There is no {where} among {_hosts(len(hosts))}.")
    left = [host for host in asked if host.host not in request.exclude]
    tried = len(asked) - len(left)
    found, _passed = _refusals(left, request, (*CHECKS, *filters))
    misses = [nearest(one.filter, one.hosts, request) for one in found]
    parts = [f"{tried} refused it before ({', '.join(sorted(set(request.exclude)))})"] * bool(tried)
    parts += [_described(one, shortfall) for one, shortfall in zip(found, misses, strict=True)]
    unmet = [words for one, shortfall in zip(found, misses, strict=True)
             for words in _unmet_of(one, shortfall, request)]
    refusals = [Refusal(filter=TRIED, hosts=tried)] * bool(tried)
    refusals += [Refusal(filter=one.filter.name, hosts=len(one.hosts), nearest=" and ".join(shortfall.words),
                         reasons={reason[:REASON_LONGEST]: count for reason, count in one.reasons.most_common(SHOWN)})
                 for one, shortfall in zip(found, misses, strict=True)]
    return _reason(unmet, f"{_hosts(len(asked))}: {'; '.join(parts)}.")._replace(asked=len(asked),
                                                                             refusals=tuple(refusals))


def _reason(asked: Iterable[str], details: str) -> Reason:
    unmet = "; ".join(dict.fromkeys(asked))
    public = f"{NO_VALID_HOST}{NOT_ENOUGH}{': ' if unmet else ''}{unmet}."
    return Reason(public if len(public) <= LONGEST else public[:LONGEST - 3] + "...", NO_VALID_HOST + details)


def _unmet_of(one: _Refusals, shortfall: Shortfall, request: PlacementRequest) -> list[str]:
    """Return the users' text of a filter's refusals: the part of their request that it checks, if any."""
    if shortfall.asked:
        return list(shortfall.asked)
    if one.filter.name in _ASKED_BY:
        return [_ASKED_BY[one.filter.name](request)]
    return [reason for reason, _count in one.reasons.most_common(PUBLIC_SHOWN)] if one.filter.public else []


def _described(one: _Refusals, shortfall: Shortfall) -> str:
    """Return the admins' text of a filter's refusals."""
    near = f"nearest: {' and '.join(shortfall.words)} on {shortfall.host}" if shortfall.words else ""
    words = "; ".join(filter(None, ("" if one.filter.name == "capacity" else _counted(one.reasons), near)))
    refusal = f"{one.filter.name} refused {len(one.hosts)}"
    return f"{refusal} ({words})" if words else refusal


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _refusals(hosts: list[HostView], request: PlacementRequest,
              filters: Iterable[Filter]) -> tuple[list[_Refusals], list[HostView]]:
    """Return the refusals of each filter, and the hosts that pass all of them."""
    found: list[_Refusals] = []
    for filter_ in filters:
        if not filter_.wanted(request):
            continue
        refusal, passed = _Refusals(filter_, Counter(), []), []
        for host in hosts:
            reason = filter_.refuses(host, request)
            if reason is None:
                passed.append(host)
            else:
                refusal.reasons[reason] += 1
                refusal.hosts.append(host)
        if refusal.hosts:
            found.append(refusal)
        hosts = passed
    return found, hosts


def _counted(reasons: Counter[str]) -> str:
    counted = [f"{reason} {count}" for reason, count in reasons.most_common(SHOWN)]
    return ", ".join(counted + ["..."] * (len(reasons) > SHOWN))
