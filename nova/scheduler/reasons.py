"""Why there is no valid host, in two texts: one for users, without anything about hosts, and one for admins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nova.model.scheduling import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.filters.always import AMOUNTS, CHECKS, available
from nova.scheduler.views import HostView

NO_VALID_HOST = "No valid host was found. "
LONGEST = 255  # what a fault's message may have
SHOWN = 5  # different reasons of one filter


class Reason(NamedTuple):
    """``public`` for users, ``details`` for admins."""

    public: str
    details: str


class _Refusals(NamedTuple):
    """What one filter said of the hosts that all filters before it let pass."""

    filter: Filter
    reasons: Counter[str]
    hosts: list[HostView]


def explain(hosts: Sequence[HostView], request: PlacementRequest, filters: Iterable[Filter]) -> Reason:
    """Each host is counted at the first filter that refuses it. ``filters`` are the enabled ones."""
    if not hosts:
        return _both("There is no compute host.", "There is no compute host.")
    asked = [host for host in hosts if request.host in (None, host.host) and request.node in (None, host.node)]
    if not asked:
        where = " ".join(f"{word} {name}" for word, name in (("host", request.host), ("node", request.node)) if name)
        return _both(f"There is no {where}.", f"There is no {where} among {_hosts(len(hosts))}.")
    left = [host for host in asked if host.host not in request.exclude]
    tried = len(asked) - len(left)
    refusals, left = _refusals(left, request, (*CHECKS, *(() if request.force else filters)))
    public = [f"{tried} refused it before"] * bool(tried)
    details = [f"{tried} refused it before ({', '.join(sorted(set(request.exclude)))})"] * bool(tried)
    for refusal in refusals:
        told = f"{refusal.filter.name} refused {len(refusal.hosts)}"
        words = _words(refusal, request)
        public.append(f"{told} ({_counted(refusal.reasons)})" if refusal.filter.public else told)
        details.append(f"{told} ({words})" if words else told)
    count = _hosts(len(asked))
    return _both(f"{count}: {'; '.join(public)}.", f"{count}: {'; '.join(details)}.")


def _both(public: str, details: str) -> Reason:
    public = NO_VALID_HOST + public
    return Reason(public if len(public) <= LONGEST else public[:LONGEST - 3] + "...", NO_VALID_HOST + details)


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _refusals(hosts: list[HostView], request: PlacementRequest,
              filters: Iterable[Filter]) -> tuple[list[_Refusals], list[HostView]]:
    """What each filter says, and the hosts that all let pass."""
    found = []
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


def _words(refusal: _Refusals, request: PlacementRequest) -> str:
    if refusal.filter.name == "capacity":
        return f"nearest: {_nearest(refusal.hosts, request)}"
    return _counted(refusal.reasons)


def _counted(reasons: Counter[str]) -> str:
    told = [f"{reason} {count}" for reason, count in reasons.most_common(SHOWN)]
    return ", ".join(told + ["..."] * (len(reasons) > SHOWN))


def _nearest(hosts: Iterable[HostView], request: PlacementRequest) -> str:
    """What the host that lacks least would have to have more."""
    def lacking(host: HostView) -> list[tuple[float, str]]:
        return [((need - left) / need, f"needs {need} {words}, {left} free")
                for field, free, total, words in AMOUNTS
                if 0 < (need := getattr(request.resources, field)) > (left := available(host, free, total))]

    nearest = min(hosts, key=lambda host: sum(share for share, _ in lacking(host)))
    return f"{' and '.join(words for _, words in lacking(nearest))} on {nearest.host}"
