"""Where the time of one kind of request goes: a flame graph of each daemon, CPU time by package, and what is exchanged.

    bin/test bench profile create|delete|show|list [--out FOLDER]
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench import calls
from tests.bench.load import cpu_ms, processes
from tests.bench.meters import Meters
from tests.bench.where import Sampling, folded
from tests.functional.cloud import Cloud

SECONDS = 10
LISTED = 1000
LARGEST, SHOWN = 5, 20
SAMPLED = ("api", "conductor", "scheduler", "compute1")
NAMES = ("create", "delete", "show", "list")
SETTLED_S = 2.0


class Work(NamedTuple):
    """What is profiled. ``ready``: runs before, and returns the call; ``most``: how often it can be called."""

    ready: Callable[[Cloud], calls.Call]
    most: int | None = None


def _created(cloud: Cloud, count: int) -> list[str]:
    calls.each(calls.posting(cloud), count)
    return calls.all_up(cloud, count)


def _list(cloud: Cloud) -> calls.Call:
    _created(cloud, LISTED // 4)
    return calls.getting(cloud, f"/servers/detail?limit={LISTED}")


WORK = {
    "create": Work(calls.posting),
    "delete": Work(lambda cloud: calls.deleting(cloud, _created(cloud, LISTED)), LISTED),
    "show": Work(lambda cloud: calls.getting(cloud, f"/servers/{_created(cloud, 1)[0]}")),
    "list": Work(_list),
}


def package_of(stack: Sequence[str]) -> str:
    """Return the package whose code runs, from the innermost frame with a file: ``nova.db.server``, ``sqlalchemy``."""
    for frame in reversed(stack):
        _, found, path = frame.partition(" (")
        if not found or ".py" not in path:
            continue
        _, ours, rest = path.partition("/nova/")
        if ours and "site-packages" not in path:
            return ".".join(["nova", *rest.split("/")[:2]]).split(".py")[0]
        _, installed, rest = path.partition("site-packages/")
        return rest.split("/")[0].split(".py")[0] if installed else "Python"
    return "other"


def profile(cloud: Cloud, meters: Meters, name: str, out: Path, say: Callable[[str], None]) -> None:
    """Run one kind of request by eight clients for some seconds, and print its costs."""
    out.mkdir(parents=True, exist_ok=True)
    call = WORK[name].ready(cloud)
    time.sleep(SETTLED_S)
    pids = processes(cloud)
    raw = {who: Sampling(pids[who][0], SECONDS) for who in SAMPLED}
    pictures = {who: Sampling(pids[who][0], SECONDS, kind="flamegraph", out=out / f"{name}-{who}.svg")
                for who in SAMPLED}
    before = {who: cpu_ms(mine) for who, mine in pids.items()}
    counts = meters.statements(), meters.messages(), meters.bytes()
    done = _run(call, WORK[name].most)
    used = {who: (cpu_ms(mine) - before[who]) / done for who, mine in pids.items()}
    say(f"\n{name}: {done} requests by {calls.CLIENTS} clients; flame graphs: {out}")
    after = meters.statements(), meters.messages(), meters.bytes()
    for what, first, last in zip(("SQL statements", "messages", "bytes"), counts, after, strict=True):
        say(f"  {what} a request: {(last - first) / done:.1f}")
    costs: collections.Counter[tuple[str, str]] = collections.Counter()
    for who, ms in used.items():
        shares = {"all": 1.0}
        if who in raw:
            text = raw[who].text()
            (out / f"{name}-{who}.folded").write_text(text)
            shares = _packages(text)
        costs.update({(who, package): ms * share for package, share in shares.items()})
    for picture in pictures.values():
        picture.wait()
    say(f"  CPU ms a request: {', '.join(f'{who} {ms:.2f}' for who, ms in used.items())}; all {sum(used.values()):.2f}")
    for number, ((who, package), ms) in enumerate(costs.most_common(SHOWN), 1):
        say(f"  {'*' if number <= LARGEST else ' '} {who:<12}{package:<32}{ms:>8.2f} ms")


def _run(call: calls.Call, most: int | None) -> int:
    """Return how many requests were made: for SECONDS, or as many as can be."""
    if most is not None:
        calls.each(call, most)
        done = most
    else:
        done = len(calls.for_a_while(call, calls.CLIENTS, SECONDS - SETTLED_S)[0])
    time.sleep(SETTLED_S)
    return done


def _packages(text: str) -> dict[str, float]:
    counts: collections.Counter[str] = collections.Counter()
    for stack, count in folded(text):
        counts[package_of(stack)] += count
    total = sum(counts.values()) or 1
    return {package: count / total for package, count in counts.items()}
