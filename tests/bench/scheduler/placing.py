"""How long decisions take, and how many placements a second come to a committed claim."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from nova.conductor.engine.operation import Op
from tests.bench.meters import percentile
from tests.bench.scheduler import flavors
from tests.bench.scheduler.clouds import Cloud, all_filters
from tests.bench.scheduler.report import Report

#: What a third of the requests ask for besides: an image that says what it runs on.
IMAGES = (None, None, {"hw_architecture": "x86_64", "img_hv_type": "kvm", "hw_vm_mode": "hvm"})
FILTERS: dict[str, dict[str, Any]] = {"default": {}, "all": {"enabled_filters": None}}
BATCHES = (1, 10, 100, 1000)


class Figures(NamedTuple):
    """Of one size of fleet, with one set of filters. Milliseconds; placements a second by size of batch."""

    p50: float
    first: float
    batch: float
    rates: dict[int, float]


def options_of(filters: str) -> dict[str, Any]:
    return {"enabled_filters": all_filters()} if filters == "all" else {}


def measure(databases: Any, hosts: int, filters: str, rounds: int, report: Report) -> Figures:
    """Single servers of mixed flavors one after the other, then batches."""
    cloud = Cloud(databases, **options_of(filters))
    cloud.start()
    singles = _singles(cloud, rounds)
    known = [1000 * seconds for _, seconds in cloud.schedulers.took[len(singles.first):]]
    first = statistics.median(singles.first)
    rates, costs, batches = {1: singles.rate}, [singles.cost], []
    for size in BATCHES[1:]:
        done = _batches(cloud, size, max(2, min(10, 2 * rounds // size)))
        rates[size], batches = done.rate, done.decisions
        costs.append(done.cost)
    report.row(hosts, filters, statistics.median(known), percentile(known, 0.99), first,
               statistics.median(batches), *[rates[size] for size in BATCHES],
               *[f"{statements:.1f}/{messages:.1f}" for statements, messages in (costs[0], costs[2])])
    return Figures(statistics.median(known), first, statistics.median(batches), rates)


HEADINGS = ("hosts", "filters", "p50 ms", "p99 ms", "first ms", "1000 ms", *[f"{size} pl/s" for size in BATCHES],
            "stm/msg 1", "stm/msg 100")


class _Done(NamedTuple):
    rate: float
    cost: tuple[float, float]  # (statements, messages) a placement
    decisions: list[float]  # ms
    first: list[float]


def _singles(cloud: Cloud, rounds: int) -> _Done:
    """``first``: decisions on requests of a kind that nobody asked for before. They come first, and once more: a
    kind is remembered when it comes again."""
    mix = flavors.mixed(1)
    kinds = [(flavors.flavor(one), image) for one in flavors.MIX for image in (IMAGES[0], IMAGES[2])]
    kinds += [(next(mix), IMAGES[number % 3]) for number in range(rounds)]
    ops = [cloud.asked_for(flavor, 1, image) for flavor, image in kinds]
    new = 2 * len(flavors.MIX)
    for one in ops[:new]:
        cloud.place(one)
    first = [1000 * seconds for _, seconds in cloud.schedulers.took]
    for again in (cloud.asked_for(flavor, 1, image) for flavor, image in kinds[:new]):
        cloud.place(again)
        ops.append(again)
    cloud.schedulers.took[new:] = []
    started, placed = time.perf_counter(), 0
    with cloud.counted() as cost:
        for one in ops[new:-new]:
            placed += cloud.place(one).placed
    took = time.perf_counter() - started
    cloud.give_back([op for one in ops for op in one])
    return _Done(placed / took, _each(cost, placed), [], first)


def _batches(cloud: Cloud, size: int, count: int) -> _Done:
    asked: list[Sequence[Op]] = [cloud.asked_for(flavors.TINY, size) for _ in range(count)]
    before, placed, seconds = len(cloud.schedulers.took), 0, 0.0
    statements = messages = 0
    for ops in asked:
        with cloud.counted() as cost:
            started = time.perf_counter()
            placed += cloud.place(list(ops)).placed
            seconds += time.perf_counter() - started
        statements, messages = statements + cost.statements, messages + cost.messages
        cloud.give_back(ops)
    decisions = [1000 * took for servers, took in cloud.schedulers.took[before:] if servers == size]
    return _Done(placed / seconds, (statements / max(1, placed), messages / max(1, placed)), decisions, [])


def _each(cost: Any, placed: int) -> tuple[float, float]:
    return cost.statements / max(1, placed), cost.messages / max(1, placed)
