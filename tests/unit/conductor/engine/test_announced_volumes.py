"""What is told of volumes that come to servers, go, and become others."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from tests.fakes.compute_hosts import refused
from tests.fakes.small_cloud import SmallCloud
from tests.unit.conductor.actions.test_volume_swaps import ready, swap
from tests.unit.conductor.actions.test_volumes import attach, detach
from tests.unit.conductor.engine.test_announced_operations import data, listen, message, settled


def began(cloud: SmallCloud, way: str) -> tuple[str, dict[str, Any], Any]:
    """(server, the ids that events of this way tell, how it is done), with all that it needs."""
    uuid, old, new = ready(cloud)
    if way == "swap":
        return uuid, {"old_volume_id": old, "new_volume_id": new}, lambda: swap(cloud, uuid, old, new)
    if way == "detach":
        return uuid, {"volume_id": old}, lambda: detach(cloud, uuid, old)
    other = cloud.volume_service.add()
    return uuid, {"volume_id": other}, lambda: attach(cloud, uuid, other, wait=False)


@pytest.mark.parametrize("way", ["attach", "detach", "swap"])
def test_volume_when_it_comes_goes_or_becomes_another_then_its_start_and_its_end_are_told(cloud: SmallCloud, way: str
                                                                                          ) -> None:
    uuid, ids, act = began(cloud, way)
    kept = listen(cloud)
    act()
    settled(cloud)
    kinds = [f"instance.volume_{way}.{phase}" for phase in ("start", "end")]
    assert kept.types() == kinds
    for kind in kinds:
        assert data(kept, kind).items() >= {**ids, "uuid": uuid, "fault": None}.items()
        assert message(kept, kind).publisher == f"nova-compute:{cloud.server(uuid).host}"


@pytest.mark.parametrize(("way", "kinds"), [
    ("attach", ["start", "error"]), ("detach", ["start"]), ("swap", ["start", "error"])])
def test_volume_when_the_host_refuses_then_that_is_told_where_there_is_a_word_for_it(cloud: SmallCloud, way: str,
                                                                                     kinds: list[str]) -> None:
    uuid, ids, act = began(cloud, way)
    kept = listen(cloud)
    cloud.computes[cloud.server(uuid).host].answers[f"{way}_volume"] = refused(errors.HostRefused("no room"))
    act()
    settled(cloud)
    assert kept.types() == [f"instance.volume_{way}.{phase}" for phase in kinds]
    if "error" in kinds:
        told = data(kept, f"instance.volume_{way}.error")
        assert told.items() >= ids.items()
        assert told["fault"]["nova_object.data"]["exception_message"] == "no room"


@pytest.mark.parametrize("way", ["attach", "detach", "swap"])
def test_volume_in_the_unversioned_form_then_it_has_its_older_name_if_any(cloud: SmallCloud, way: str) -> None:
    _uuid, ids, act = began(cloud, way)
    kept = listen(cloud, "unversioned")
    act()
    settled(cloud)
    older = [] if way == "swap" else [f"compute.instance.volume.{way}.{phase}" for phase in ("start", "end")]
    assert kept.types("unversioned") == older
    for kind in older:
        assert message(kept, kind).payload["volume_id"] == ids["volume_id"]
