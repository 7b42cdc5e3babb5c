"""A host with hundreds of nodes: what takes long for all of them holds up no order to one."""

from __future__ import annotations

import threading
from typing import Any

from tests.fakes.compute import build_order

NODES = 300


def test_build_when_a_report_of_many_nodes_takes_long_then_it_does_not_wait(make_world: Any, monkeypatch: Any) -> None:
    world = make_world()
    world.fake = {"nodes": NODES}
    world.driver = world.new_driver()
    world.service = world.new_service()
    world.start()
    looking, go_on = threading.Event(), threading.Event()
    nodes = world.driver.nodes

    def slow() -> Any:
        looking.set()
        assert go_on.wait(10), "the build waits for the report"
        return nodes()
    monkeypatch.setattr(world.driver, "nodes", slow)
    report = threading.Thread(target=lambda: world.service._inventory.send(world.service.host_id, always=True))
    report.start()
    assert looking.wait(5)
    outcomes = world.build(*[build_order(number=number) for number in range(1, 6)])
    assert [outcome.ok for outcome in outcomes] == [True] * 5 and report.is_alive()
    go_on.set()
    report.join(10)
    assert len(world.conductor.inventories[-1].nodes) == NODES
