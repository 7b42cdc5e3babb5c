"""Every GET in scope, at each of its turning points, on what stands in the world."""

from __future__ import annotations

from tests.contract import rows
from tests.functional.live import scope
from tests.functional.live.caller import turning_points
from tests.functional.live.scenario import scenario
from tests.functional.live.world import World


@scenario
def every_get(world: World) -> None:
    waiting = scope.untouched()
    for id, entry in rows.operations().items():
        if entry["method"] != "GET" or entry["status"] == "gone" or id in waiting:
            continue
        for version in turning_points(id):
            try:
                path = world.fill(id, version)
            except AssertionError as error:
                world.live.problem(id, f"what it shows can't be made: {error}")
                break
            world.live.call("GET", path, None, version, expect=scope.refused(id, version) or ())
