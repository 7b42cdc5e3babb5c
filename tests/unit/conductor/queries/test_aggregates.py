"""Aggregates and zones: what may be changed, and who follows: services, servers' rows, schedulers."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor import zones
from nova.conductor.queries.aggregates import Aggregates
from nova.db.host import aggregates
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.model.host.aggregates import Aggregate, AggregateUpdate, CachedImage, NewAggregate
from nova.model.host.services import ServiceQuery, ServiceUpdate
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.scheduler.snapshot import HostTable
from tests.fakes.small_cloud import SmallCloud, until
from tests.unit.conductor.queries.test_statement_counts import statements


def make(cloud: SmallCloud, name: str, zone: str | None = None, *hosts: str) -> Aggregate:
    made = cloud.control.create_aggregate(NewAggregate(name=name, availability_zone=zone))
    for host in hosts:
        made = cloud.control.add_aggregate_host(made.id, host)
    return made


def zone_of(cloud: SmallCloud, host: str) -> str:
    service, = cloud.control.list_services(ServiceQuery(host=host, binary="nova-compute"))
    return service.zone


# --- what there is

def test_create_then_it_is_listed_whole(cloud: SmallCloud) -> None:
    one = make(cloud, "one", "london", "b", "a")
    two = make(cloud, "two")
    assert (one.name, one.zone, one.hosts, one.metadata, one.updated_at) == (
        "one", "london", ("a", "b"), {"availability_zone": "london"}, None)
    assert (two.zone, two.hosts, two.metadata) == (None, (), {})
    assert cloud.control.list_aggregates() == (one, two)
    assert cloud.control.get_aggregate(two.id) == two and one.uuid != two.uuid


@pytest.mark.parametrize("count", [1, 6])
def test_list_costs_three_statements_whatever_its_length(cloud: SmallCloud, count: int) -> None:
    for number in range(count):
        make(cloud, f"g{number}", None, "a", "b")
    with statements(cloud) as seen:
        assert len(cloud.control.list_aggregates()) == count
    assert len(seen) == 3, seen


def test_names_are_taken_once(cloud: SmallCloud) -> None:
    make(cloud, "one")
    two = make(cloud, "two")
    for refused in (lambda: make(cloud, "one"),
                    lambda: cloud.control.update_aggregate(AggregateUpdate(id=two.id, name="one"))):
        with pytest.raises(errors.Conflict, match="Aggregate one already exists"):
            refused()
    assert cloud.control.update_aggregate(AggregateUpdate(id=two.id, name="two")).name == "two"  # its own name


@pytest.mark.parametrize("call", [
    lambda control: control.get_aggregate(99), lambda control: control.get_aggregate(2**63),
    lambda control: control.delete_aggregate(99), lambda control: control.set_aggregate_metadata(99, {}),
    lambda control: control.update_aggregate(AggregateUpdate(id=99, name="x")),
    lambda control: control.add_aggregate_host(99, "a"), lambda control: control.remove_aggregate_host(99, "a"),
    lambda control: control.cache_images(99, ())])
def test_aggregate_that_is_not_there_is_not_found(cloud: SmallCloud, call: Callable[[Any], Any]) -> None:
    with pytest.raises(errors.NotFound, match="Aggregate"):
        call(cloud.control)


def test_metadata_is_merged_and_null_takes_away(cloud: SmallCloud) -> None:
    one = make(cloud, "one", "london")
    changed = cloud.control.set_aggregate_metadata(one.id, {"ssd": "true", "gpu": "no"})
    assert changed.metadata == {"availability_zone": "london", "ssd": "true", "gpu": "no"}
    assert changed.updated_at is not None
    assert cloud.control.set_aggregate_metadata(one.id, {"gpu": None, "ssd": "false", "none": None}).metadata == {
        "availability_zone": "london", "ssd": "false"}


@pytest.mark.parametrize("zone", ["a:b", " "])
def test_zone_that_cannot_be_one_is_refused(cloud: SmallCloud, zone: str) -> None:
    one = make(cloud, "one")
    for refused in (lambda: make(cloud, "two", zone),
                    lambda: cloud.control.update_aggregate(AggregateUpdate(id=one.id, changes_zone=True,
                                                                           availability_zone=zone)),
                    lambda: cloud.control.set_aggregate_metadata(one.id, {"availability_zone": zone})):
        with pytest.raises(errors.Invalid, match="availability_zone"):
            refused()
    assert [found.zone for found in cloud.control.list_aggregates()] == [None]


@pytest.mark.parametrize("zone", ["internal", " internal "])
def test_zone_when_it_is_the_control_daemons_then_an_aggregate_may_be_named_so_but_has_no_hosts(
        cloud: SmallCloud, zone: str) -> None:
    named, full = make(cloud, "one", zone), make(cloud, "two", "london", "a")
    assert named.zone == zone
    for refused in (lambda: cloud.control.add_aggregate_host(named.id, "b"),
                    lambda: cloud.control.set_aggregate_metadata(full.id, {"availability_zone": zone})):
        with pytest.raises(errors.Invalid, match="zone of control services"):
            refused()
    assert [(found.zone, found.hosts) for found in cloud.control.list_aggregates()] == [(zone, ()), ("london", ("a",))]


def test_delete_is_refused_while_it_has_hosts(cloud: SmallCloud) -> None:
    one = make(cloud, "one", "london", "a")
    with pytest.raises(errors.Invalid, match="still has hosts \\(a\\)"):
        cloud.control.delete_aggregate(one.id)
    cloud.control.remove_aggregate_host(one.id, "a")
    cloud.control.delete_aggregate(one.id)
    assert cloud.control.list_aggregates() == ()
    assert not cloud.rows("api", sa.select(api_tables.aggregate_metadata))


# --- hosts of it

def test_host_that_is_unknown_or_there_already_is_refused(cloud: SmallCloud) -> None:
    one = make(cloud, "one", None, "a")
    for host in ("nobody", "net"):  # net has no nova-compute
        with pytest.raises(errors.NotFound, match=host):
            cloud.control.add_aggregate_host(one.id, host)
    with pytest.raises(errors.Conflict, match="already has host a"):
        cloud.control.add_aggregate_host(one.id, "a")
    with pytest.raises(errors.NotFound, match="Host b is not in aggregate"):
        cloud.control.remove_aggregate_host(one.id, "b")
    assert cloud.control.get_aggregate(one.id).hosts == ("a",)


def test_host_gets_one_zone_only(cloud: SmallCloud) -> None:
    make(cloud, "one", "london", "a")
    paris, same, none = make(cloud, "two", "paris"), make(cloud, "three", "london"), make(cloud, "four", None, "a")
    with pytest.raises(errors.Conflict, match="availability zone london, and"):
        cloud.control.add_aggregate_host(paris.id, "a")
    assert cloud.control.add_aggregate_host(same.id, "a").hosts == ("a",)
    with pytest.raises(errors.Invalid, match="another aggregate already puts its host a in availability zone london"):
        cloud.control.set_aggregate_metadata(none.id, {"availability_zone": "paris"})
    assert zone_of(cloud, "a") == "london" and zone_of(cloud, "b") == "nova"
    with pytest.raises(errors.Invalid, match="its host a in availability zone london"):  # by the first
        cloud.control.update_aggregate(AggregateUpdate(id=same.id, changes_zone=True, availability_zone="paris"))
    assert cloud.control.set_aggregate_metadata(same.id, {"availability_zone": None}).zone is None


def test_zone_cannot_change_while_servers_are_in_it(cloud: SmallCloud) -> None:
    one = make(cloud, "one", "london", "a")
    uuid, = cloud.active()
    for change in ({"availability_zone": "paris"}, {"availability_zone": None}):
        with pytest.raises(errors.Invalid, match="its hosts \\(a\\) have servers"):
            cloud.control.set_aggregate_metadata(one.id, change)
    with pytest.raises(errors.Invalid, match="have servers"):
        cloud.control.update_aggregate(AggregateUpdate(id=one.id, name="new", changes_zone=True,
                                                       availability_zone="paris"))
    kept = cloud.control.update_aggregate(AggregateUpdate(id=one.id, name="new", changes_zone=True,
                                                          availability_zone="london"))
    assert (kept.name, kept.zone) == ("new", "london")  # and the refused rename left nothing
    cloud.delete(uuid)
    assert cloud.control.set_aggregate_metadata(one.id, {"availability_zone": "paris"}).zone == "paris"


# --- servers and their zones

def test_server_shows_the_zone_its_host_is_in_and_follows_it(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    assert cloud.server(uuid).availability_zone == "nova"
    one = make(cloud, "one", "london", "a")
    assert cloud.server(uuid).availability_zone == "london"
    other, = cloud.active()
    assert cloud.server(other).availability_zone == "london"
    cloud.control.remove_aggregate_host(one.id, "a")
    assert {cloud.server(name).availability_zone for name in (uuid, other)} == {"nova"}


def test_host_stays_in_the_zone_that_a_server_of_it_asked_for(cloud: SmallCloud) -> None:
    one = make(cloud, "one", "london", "a")
    cloud.active(availability_zone="london")
    with pytest.raises(errors.Conflict, match="requested availability zone london"):
        cloud.control.remove_aggregate_host(one.id, "a")
    assert cloud.control.get_aggregate(one.id).hosts == ("a",)
    paris = make(cloud, "two", "paris")
    uuid, = cloud.active(availability_zone="nova")
    assert (cloud.server(uuid).host, cloud.server(uuid).availability_zone) == ("b", "nova")
    with pytest.raises(errors.Conflict, match="requested availability zone nova"):
        cloud.control.add_aggregate_host(paris.id, "b")
    cloud.delete(uuid)
    assert cloud.control.add_aggregate_host(paris.id, "b").hosts == ("b",)


@pytest.mark.parametrize(("zone", "known"), [("nova", True), ("london", True), ("paris", False), ("internal", False)])
def test_create_in_a_zone_needs_that_it_exists(cloud: SmallCloud, zone: str, known: bool) -> None:
    make(cloud, "one", "london", "b")
    make(cloud, "two", "paris")  # no host makes no zone
    if known:
        uuid, = cloud.active(availability_zone=zone)
        assert (cloud.server(uuid).availability_zone, cloud.server(uuid).host) == (
            zone, {"nova": "a", "london": "b"}[zone])
        return
    with pytest.raises(errors.Invalid, match=f"availability zone is not available: {zone}"):
        cloud.boot(availability_zone=zone)
    assert not cloud.open_ledger()


def test_create_in_a_zone_whose_hosts_are_all_disabled_is_refused(cloud: SmallCloud) -> None:
    make(cloud, "one", "london", "b")
    cloud.control.update_service(ServiceUpdate(host="b", binary="nova-compute", disabled=True))
    with pytest.raises(errors.Invalid, match="london"):
        cloud.boot(availability_zone="london")
    cloud.control.update_service(ServiceUpdate(host="a", binary="nova-compute", disabled=True))
    with pytest.raises(errors.Invalid, match="nova"):
        cloud.boot(availability_zone="nova")


def test_create_when_the_host_left_the_zone_since_it_was_chosen_then_the_next_host_is_taken(cloud: SmallCloud) -> None:
    """The scheduler's choice is a moment old: here it knows nothing of zones at all, and proposes ``a`` first."""
    make(cloud, "one", "london", "b")
    uuid, = cloud.active(availability_zone="london")
    assert (cloud.server(uuid).host, cloud.claims()) == ("b", {("b", uuid)})


def test_zone_sweep_when_a_conductor_died_before_it_told_the_servers_then_they_follow(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    sweep = zones.ZoneSweep()
    sweep(cloud.deps)
    one = make(cloud, "one", "london")

    def half(tx: Any) -> None:
        aggregates.changing(tx)
        aggregates.add_host(tx, one.id, "a")
    cloud.api.transact(half)
    assert cloud.server(uuid).availability_zone == "nova"
    sweep(cloud.deps)
    assert cloud.server(uuid).availability_zone == "london"
    late = sa.update(cell_tables.servers).values(availability_zone="nova")  # a create that had read it just before
    cloud.write("cell", late)
    sweep(cloud.deps)
    assert cloud.server(uuid).availability_zone == "london"
    with statements(cloud) as seen:
        sweep(cloud.deps)
    assert len(seen) == 1, seen


# --- zones as they are listed

def test_zones_come_from_aggregates_and_their_hosts(cloud: SmallCloud) -> None:
    make(cloud, "one", "london", "b")
    make(cloud, "two", "empty")
    cloud.control.update_service(ServiceUpdate(host="b", binary="nova-compute", disabled=True))
    listed = {zone.name: zone for zone in cloud.control.list_zones(True)}
    assert {name: (zone.available, zone.internal, [one.host for one in zone.services]) for name, zone in listed.items()
            } == {"internal": (True, True, ["net"]), "london": (False, False, ["b"]), "nova": (True, False, ["a"])}


# --- schedulers

def places(hosts: HostTable) -> dict[str, tuple[str, dict[str, tuple[str, ...]]]]:
    return {view.host: (view.zone, dict(view.state.aggregate_metadata)) for view in hosts.snapshot().hosts}


def test_schedulers_know_of_every_change_at_once(cloud: SmallCloud) -> None:
    hosts = HostTable(90.0)
    hosts.update(cloud.control.get_host_states((), True))

    def message() -> dict[str, Any]:
        for states in cloud.scheduler.received:
            hosts.update(states)
        cloud.scheduler.calls.clear()
        return places(hosts)
    one = make(cloud, "one", "london", "a")
    two = make(cloud, "two", None, "a", "b")
    cloud.control.set_aggregate_metadata(two.id, {"ssd": "true"})
    cloud.control.set_aggregate_metadata(one.id, {"ssd": "false"})
    assert message() == {"a": ("london", {"availability_zone": ("london",), "ssd": ("false", "true")}),
                         "b": ("nova", {"ssd": ("true",)})}
    cloud.control.remove_aggregate_host(one.id, "a")
    cloud.control.set_aggregate_metadata(two.id, {"ssd": None})
    assert message() == {"a": ("nova", {}), "b": ("nova", {})}


def test_change_is_told_in_one_small_message_and_the_sweep_repeats_it_only_to_who_missed_it(cloud: SmallCloud) -> None:
    hosts = HostTable(90.0)
    hosts.update(cloud.control.get_host_states((), True))
    cloud.scheduler.calls.clear()
    one = make(cloud, "one", "london")
    cloud.scheduler.calls.clear()
    cloud.control.add_aggregate_host(one.id, "a")
    message, = cloud.scheduler.received
    assert not message.states and message.aggregates is not None and message.aggregates.aggregates[0].hosts == ("a",)
    swept = cloud.control.get_host_states(hosts.stamps(), False)
    assert not swept.states and swept.aggregates == message.aggregates
    hosts.update(swept)
    assert places(hosts)["a"][0] == "london"
    assert cloud.control.get_host_states(hosts.stamps(), False).aggregates is None


def test_whole_states_and_those_of_one_host_tell_the_same_place(cloud: SmallCloud) -> None:
    one = make(cloud, "one", "london", "a")
    cloud.control.set_aggregate_metadata(one.id, {"ssd": "true"})
    cloud.scheduler.calls.clear()
    cloud.deps.feed.host_changed("a")
    whole = {state.host: state for state in cloud.control.get_host_states((), True).states}
    assert cloud.scheduler.received[0].states == (whole["a"],) and whole["a"].zone == "london"
    assert whole["a"].aggregate_metadata == {"availability_zone": ("london",), "ssd": ("true",)}


# --- images kept ready

class Images:
    def show(self, image_id: str, as_user: bool = False) -> Image:
        assert as_user
        if image_id == "none":
            raise errors.NotFound("no image")
        return Image(id=image_id, name="i", status="queued" if image_id == "new" else "active")


@pytest.fixture
def imaged(cloud: SmallCloud) -> SmallCloud:
    cloud.deps.images = Images()
    return cloud


def test_images_are_cached_on_hosts_that_are_up(imaged: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    one = make(imaged, "one", None, "a", "b")
    imaged.control.update_service(ServiceUpdate(host="b", binary="nova-compute", forced_down=True))
    with context.entered(context.RequestContext(request_id="req-x", user_id="admin", project_id="admin")):
        imaged.control.cache_images(one.id, ("i1", "i2"))
    until(lambda: "2 images are ready on 1 of 2 hosts" in caplog.text, "the hosts are asked")
    assert (imaged.computes["a"].cached, imaged.computes["b"].cached) == (["i1", "i2"], [])
    assert "host b: it is down" in caplog.text and "image i1 on host a: cached" in caplog.text


@pytest.mark.parametrize(("image", "words"), [("none", "does not exist"), ("new", "its status is queued")])
def test_image_that_no_host_could_use_is_refused(imaged: SmallCloud, image: str, words: str) -> None:
    one = make(imaged, "one", None, "a")
    with pytest.raises(errors.Invalid, match=f"Image {image} cannot be cached: .*{words}"):
        imaged.control.cache_images(one.id, ("i1", image))
    assert imaged.computes["a"].cached == []


def test_host_that_does_not_answer_keeps_the_others_from_nothing(imaged: SmallCloud,
                                                                 caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    one = make(imaged, "one", None, "a", "b")

    imaged.computes["a"].given(cache_images=errors.Unavailable("host a did not answer"))
    imaged.control.cache_images(one.id, ("i1",))
    until(lambda: "ready on 1 of 2 hosts" in caplog.text, "both were asked")
    assert imaged.computes["b"].cached == ["i1"] and "not cached on host a" in caplog.text


@pytest.mark.parametrize("at_once", [1, 2])
def test_hosts_are_asked_as_many_at_a_time_as_the_option_says(imaged: SmallCloud, at_once: int) -> None:
    hosts = ["a", "b", "c", "d"]
    for host in hosts[2:]:
        imaged.add_compute(host)
    settings = dataclasses.replace(imaged.deps.settings, precache_concurrency=at_once)
    imaged.deps.settings = settings
    part = Aggregates(imaged.deps)
    asked: list[str] = []
    gate = threading.Semaphore(0)

    def wait(host: str, images: tuple[Image, ...], tickets: tuple[ImageTicket, ...]) -> tuple[CachedImage, ...]:
        asked.append(host)
        assert gate.acquire(timeout=10)
        return ()
    for host in hosts:
        imaged.computes[host].given(cache_images=wait)
    one = make(imaged, "one", None, *hosts)
    part.cache_images(one.id, ("i1",))
    part.cache_images(one.id, ("i2",))  # a second request waits behind the first
    for done in range(2 * len(hosts)):
        most = min(2 * len(hosts), done + at_once)
        until(lambda most=most: len(asked) == most, "the next host is asked")
        time.sleep(0.02)
        assert len(asked) == most
        gate.release()
    assert [sorted(imaged.computes[host].cached) for host in hosts] == [["i1", "i2"]] * 4
