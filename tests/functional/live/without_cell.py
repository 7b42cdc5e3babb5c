"""What is shown while the cell's database is away. Its name is the last: daemons notice late that it is back."""

from __future__ import annotations

from typing import Any

from tests.functional.backends import wait_until
from tests.functional.live.scenario import scenario
from tests.functional.live.world import World

BACK_S = 40.0


@scenario
def partial_answers(world: World) -> None:
    live, uuid = world.live, world.server
    world.cloud.cell_link.cut()
    try:
        live.shows("servers", "servers-details-resp", "/servers/detail", versions=range(69, 70))
        live.shows("servers", "server-get-down-cell-resp", f"/servers/{uuid}")
        live.shows("os-services", "services-list-get-resp", "/os-services", versions=range(69, 70))
        for version in range(69, 105):
            for path, part in (("/servers", "servers"), ("/servers/detail", "servers"), (f"/servers/{uuid}", "server")):
                found = live.get(path, version)[part]
                if uuid not in str(found) or "UNKNOWN" not in str(found):
                    live.problem(f"{path} at 2.{version}", f"expected {uuid} with status UNKNOWN, got {found}")
            if live.get("/servers/detail?limit=1", version) != {"servers": []}:
                live.problem(f"/servers/detail?limit=1 at 2.{version}", "expected no servers in a page")
        for version in (0, 1, 68):
            if live.get("/servers", version) != {"servers": []}:
                live.problem(f"/servers at 2.{version}", "expected a list without the cell's servers")
    finally:
        world.cloud.cell_link.repair()
    wait_until("the cell answers again", lambda: _whole(world, uuid), BACK_S, 0.2)


def _whole(world: World, uuid: str) -> Any:
    try:
        return world.ask("GET", f"/servers/{uuid}")["server"]["status"] != "UNKNOWN"
    except AssertionError:
        return False
