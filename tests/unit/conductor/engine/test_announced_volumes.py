"""What is told of volumes that come to servers, go, and become others."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.model.volumes import VolumeCounts
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


# -- how volumes are used

def used(uuid: str, volume: str) -> VolumeCounts:
    return VolumeCounts(server_uuid=uuid, volume_id=volume, reads=3, read_bytes=1536, writes=2, write_bytes=1024)


@pytest.mark.parametrize("form", ["versioned", "unversioned"])
def test_usage_when_the_host_reports_it_then_it_is_told_whose_it_is(cloud: SmallCloud, form: str) -> None:
    uuid, volume, _ = ready(cloud)
    kept, row = listen(cloud, form), cloud.server(uuid)
    cloud.hosts.report_volume_usage(row.host, (used(uuid, volume),))
    settled(cloud)
    [(_, told)] = kept.sent
    payload = told.payload["nova_object.data"] if form == "versioned" else told.payload
    owner = {"project_id" if form == "versioned" else "tenant_id": row.project_id, "user_id": row.user_id,
             "instance_uuid" if form == "versioned" else "instance_id": uuid}
    assert payload.items() >= {**owner, "volume_id": volume, "reads": 3, "read_bytes": 1536, "writes": 2,
                               "write_bytes": 1024}.items()
    assert (told.type, told.publisher[-len(row.host):]) == ("volume.usage", row.host)


def test_usage_when_it_is_of_what_is_not_the_hosts_then_nothing_is_told(cloud: SmallCloud) -> None:
    uuid, volume, free = ready(cloud)
    host = cloud.server(uuid).host
    [other] = {*cloud.computes} - {host}
    kept = listen(cloud)
    cloud.hosts.report_volume_usage(other, (used(uuid, volume),))
    cloud.hosts.report_volume_usage(host, (used(uuid, free), used(volume, volume)))
    settled(cloud)
    assert kept.sent == []


def test_usage_when_it_comes_in_the_detach_then_it_is_told(cloud: SmallCloud) -> None:
    uuid, volume, _ = ready(cloud)
    kept, host = listen(cloud), cloud.computes[cloud.server(uuid).host]

    def answer(kind: str, order: Any) -> Any:
        cloud.hosts.report_volume_usage(host.host, (used(uuid, volume),))
        return host._done(kind, order)
    host.answers["detach_volume"] = answer
    detach(cloud, uuid, volume)
    settled(cloud)
    assert kept.types(what="volume.usage") == ["volume.usage"]
