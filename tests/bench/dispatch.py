"""What it costs to find an operation by its path, and to hold a body against its schema, in microseconds.

    python -m tests.bench.dispatch

Paths are measured against a plain trie of segments: what a few lines of Python do without a library. The check of a
body is measured against its whole request, up to a conductor that is fake. Ratios are of one run, the two taking turns.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nova.api import app, legacy_networks
from nova.api.schemas.servers import CREATE
from nova.placement.routes import ROUTES as PLACEMENT_ROUTES
from nova.web.routing import HasPath, Router
from tests.fakes.api import DEMO, ApiClient

WANTED_US = 100.0
WANTED_SHARE = 0.1
TURNS, CALLS = 7, 2000
ID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
COMPUTE = (("GET", "/servers"), ("GET", "/servers/detail"), ("POST", "/servers"), ("GET", f"/servers/{ID}"),
           ("POST", f"/servers/{ID}/action"), ("GET", f"/servers/{ID}/metadata/key"),
           ("GET", f"/servers/{ID}/topology"), ("GET", "/flavors/detail"), ("DELETE", f"/images/{ID}/metadata/key"),
           ("GET", "/os-volumes/1"), ("GET", "/nothing/at/all"), ("PATCH", "/servers"))
PLACEMENT = (("GET", f"/resource_providers/{ID}/inventories"), ("PUT", f"/allocations/{ID}"),
             ("GET", "/allocation_candidates"))
BODY = {"server": {
    "name": "vm", "imageRef": ID, "flavorRef": "1", "networks": [{"uuid": ID}], "metadata": {"a": "b", "c": "d"},
    "security_groups": [{"name": "default"}], "min_count": "1", "user_data": "aGVsbG8=",
    "config_drive": "true", "tags": ["a", "b"], "block_device_mapping_v2": [
        {"boot_index": "0", "uuid": ID, "source_type": "image", "destination_type": "local"}]}}


@dataclass
class Trie:
    literals: dict[str, Trie] = field(default_factory=dict)
    parameter: Trie | None = None
    methods: set[str] = field(default_factory=set)

    def add(self, method: str, parts: list[str]) -> None:
        node = self
        for part in parts:
            if part.startswith("{"):
                node.parameter = node.parameter or Trie()
                node = node.parameter
            else:
                node = node.literals.setdefault(part, Trie())
        node.methods.add(method)

    def match(self, method: str, parts: list[str]) -> bool:
        if not parts:
            return method in self.methods
        literal = self.literals.get(parts[0])
        return (literal is not None and literal.match(method, parts[1:])) or (
            self.parameter is not None and self.parameter.match(method, parts[1:]))


def trie(rows: Iterable[HasPath]) -> Trie:
    root = Trie()
    for row in rows:
        root.add(row.method, row.path.split("/")[1:])
    return root


def _us(call: Callable[[], object], calls: int = CALLS) -> float:
    return 1e6 * timeit.timeit(call, number=calls) / calls


def measure(rows: tuple[HasPath, ...], asked: Iterable[tuple[str, str]]) -> float:
    """Prints a line for each path; the slowest, in microseconds."""
    root, router, slowest = trie(rows), Router(rows), 0.0
    for method, path in asked:
        times = [(_us(lambda m=method, p=path: root.match(m, p.split("/")[1:])),
                  _us(lambda m=method, p=path: router.match(m, p))) for _ in range(TURNS)]
        plain, ours = (min(column) for column in zip(*times, strict=True))
        print(f"{method:7}{path:70}{plain:8.1f}{ours:8.1f}{ours / plain:8.1f}")
        slowest = max(slowest, ours)
    return slowest


def share_of_check() -> float:
    """The part of a POST /servers that is the body's check; prints both times."""
    client = ApiClient(token=DEMO)
    client.conductor.add_flavor("1")
    assert client.post("/servers", BODY, version="2.96").status_int == 202
    check = min(_us(lambda: CREATE.check(BODY, 96)) for _ in range(TURNS))
    request = min(_us(lambda: client.post("/servers", BODY, version="2.96"), 100) for _ in range(TURNS))
    print(f"POST /servers: {check:.1f} us of {request:.1f} us are the body's check, {check / request:.1%}")
    return check / request


def main() -> int:
    print(f"{'request':77}{'trie us':>8}{'ours us':>8}{'ratio':>8}")
    slowest = max(measure(app.table(legacy_networks.BACK_END), COMPUTE), measure(PLACEMENT_ROUTES, PLACEMENT))
    print(f"the slowest takes {slowest:.1f} us; less than {WANTED_US:.0f} wanted")
    return 0 if share_of_check() < WANTED_SHARE and slowest < WANTED_US else 1


if __name__ == "__main__":
    sys.exit(main())
