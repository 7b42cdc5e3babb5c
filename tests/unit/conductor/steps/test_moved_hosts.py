"""A host that was moved to another zone between the scheduler's choice and the claim."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.conductor import zones
from nova.conductor.engine.operation import Op
from nova.db.placement.claims import ProviderUsage
from nova.db.server.states import Entry
from tests.fakes.rows import server_value

WORLD: Any = SimpleNamespace(settings=SimpleNamespace(default_availability_zone="nova"))


def zone_of(made: str | None, wanted: str | None, forced: bool = False) -> Any:
    entry = Entry(id=1, server_uuid="s", action="create", epoch=1, arguments={"forced": forced},
                  data={"provider_id": 1, "host": "rack7-secret"})
    op = Op(entry, server_value(pinned_availability_zone=wanted))
    return zones.for_server(WORLD, op, [ProviderUsage(1, "rack7-secret", "rack7-secret", 1, {}, made)])


@pytest.mark.parametrize(("made", "wanted", "forced", "zone"), [
    ("london", "london", False, "london"), (None, None, False, "nova"), (None, "nova", False, "nova"),
    ("paris", None, False, "paris"), ("paris", "london", True, "paris")])
def test_zone_when_the_host_is_where_it_may_be_then_the_server_gets_its_zone(made, wanted, forced, zone):
    assert zone_of(made, wanted, forced) == {"zone": zone}


def test_zone_when_the_host_was_moved_to_another_then_the_refusal_names_zones_and_no_host():
    refused = zone_of("paris", "london")
    assert isinstance(refused, errors.aggregate.ZoneHostMoved) and "rack7" not in refused.message
    assert "now in availability zone paris, not in london" in refused.message
