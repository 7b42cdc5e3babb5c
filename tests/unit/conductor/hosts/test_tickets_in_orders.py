"""Orders that may need an image have tickets for just that image and that host; nothing else of ours has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.hosts.image_tickets import (
    CACHERS,
    FILL,
    READERS,
    WRITERS,
    TicketedCalls,
    TicketMaker,
    TicketSettings,
    first_secret,
)
from nova.db.models import cell as cell_tables
from nova.model.guest.orders import GuestOrder, MoveOrder, RebuildOrder, RescueOrder, SnapshotOrder, tickets_of
from nova.model.image.image_tickets import READ, WRITE, ImageTicket, host_key
from nova.model.image.images import Image
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.ticket_encryption import TicketCipher
from tests.fakes.compute import build_order, fence
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.one_host_actions import BASE, CASES, Case, ready
from tests.fakes.small_cloud import KEYS, secret_of

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
SEAL = TicketCipher(KEYS)
ORDER = build_order(image=Image(id="img"), kernel=Image(id="aki"), ramdisk=Image(id="ari"))
ABOUT: dict[str, Any] = {"server_uuid": ORDER.server_uuid, "fence": fence(1)}
NAMED: dict[str, Any] = {**ABOUT, "instance_name": "instance-1"}
#: Call -> an order of it; and what it gets tickets for.
PARTS = [("img", READ), ("aki", READ), ("ari", READ)]
GUEST, MOVE = GuestOrder(build=ORDER, **NAMED), MoveOrder(build=ORDER, **ABOUT)
ORDERS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "build_guests": (ORDER, PARTS), "start_guests": (GUEST, PARTS), "reboot_guests": (GUEST, PARTS),
    "resume_guests": (GUEST, PARTS), "unrescue_guests": (GUEST, PARTS),
    "rescue_guests": (RescueOrder(image=Image(id="rescue", properties={"kernel_id": "aki2"}), build=ORDER, **NAMED),
                      [("rescue", READ), ("aki2", READ), *PARTS]),
    "rebuild_guests": (RebuildOrder(build=ORDER, **ABOUT), PARTS),
    "fetch_guests": (MOVE, PARTS), "finish_guests": (MOVE, PARTS), "return_guests": (MOVE, PARTS),
    "prepare_arrivals": (MOVE, PARTS), "land_guests": (MOVE, PARTS),
    "upload_snapshots": (SnapshotOrder(image_id="snap", build=ORDER, **NAMED), [("snap", WRITE)])}


class Recorder:
    """A client of ComputeRPC that only listens."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        for name in ComputeRPC.methods:
            setattr(self, name, self._call(name))

    def _call(self, name: str) -> Any:
        def call(*args: Any, **given: Any) -> tuple[()]:
            self.calls.append((name, given or {"args": args}))
            return ()
        return call


def ticketed(recorder: Recorder, secret: Any = secret_of, now: float = 1_700_000_000.5) -> Any:
    return TicketedCalls(ComputeRPC, recorder, TicketMaker(SEAL, TicketSettings(("http://p:9293",), 600), secret,
                                                           lambda: now))


def check(tickets: tuple[ImageTicket, ...], host: str) -> list[tuple[str, str]]:
    """What they are for. Each is sealed for the host, and for what it says."""
    for one in tickets:
        facts = SEAL.open(one.sealed)
        assert (facts.id, facts.image_id, facts.direction, facts.until) == (
            one.id, one.image_id, one.direction, one.until)
        assert facts.host == host and facts.host_key == host_key(secret_of(host), one.id)
        assert secret_of(host) not in one.sealed and one.servers
    return [(one.image_id, one.direction) for one in tickets]


def test_calls_then_all_that_may_need_an_image_are_known() -> None:
    assert set(ORDERS) == READERS | WRITERS and {"cache_images"} == CACHERS
    assert {type(order) for order, _ in ORDERS.values()} == set(FILL)


@pytest.mark.parametrize("name", ORDERS)
def test_order_when_it_may_need_images_then_it_has_tickets_for_them_alone(name: str) -> None:
    recorder = Recorder()
    order, wanted = ORDERS[name]
    getattr(ticketed(recorder), name)("host7", (order,))
    [(called, given)] = recorder.calls
    [sent] = given["orders"]
    assert (called, given["host"]) == (name, "host7")
    assert check(tickets_of(sent), "host7") == wanted
    assert {one.until for one in tickets_of(sent)} == {1_700_000_600}
    assert SEAL.open(tickets_of(sent)[0].sealed).server == ORDER.server_uuid
    assert tickets_of(order) == ()  # what it was made of has none still


def test_orders_of_one_call_then_they_share_the_ticket_for_an_image() -> None:
    recorder = Recorder()
    ticketed(recorder).build_guests("host7", (ORDER, build_order(image=Image(id="img"))))
    first, second = recorder.calls[0][1]["orders"]
    assert second.image_tickets == first.image_tickets[:1] and check(first.image_tickets, "host7") == PARTS


def test_call_when_it_is_made_again_then_its_tickets_are_new() -> None:
    recorder = Recorder()
    for _ in range(2):
        ticketed(recorder).build_guests("host7", (ORDER,))
    first, second = (call["orders"][0].image_tickets for _name, call in recorder.calls)
    assert {one.id for one in first}.isdisjoint(one.id for one in second)


def test_cache_images_then_each_image_has_a_ticket() -> None:
    recorder = Recorder()
    ticketed(recorder).cache_images("host7", (Image(id="a"), Image(id="b")))
    assert check(recorder.calls[0][1]["tickets"], "host7") == [("a", READ), ("b", READ)]


def test_order_when_nobody_knows_the_hosts_secret_then_it_goes_without_and_the_log_says_so(caplog: Any) -> None:
    recorder = Recorder()
    ticketed(recorder, first_secret(lambda host: ())).start_guests("host7", (GUEST,))
    assert recorder.calls == [("start_guests", {"host": "host7", "orders": (GUEST,)})]
    assert "host host7 gets no image tickets: Host host7 has no secret" in caplog.text


def test_first_secret_when_there_are_some_then_the_first_counts() -> None:
    assert first_secret(lambda host: iter([f"{host}'s", "another"]))("host7") == "host7's"
    with pytest.raises(errors.host.NoSecret):
        first_secret(lambda host: ())("host7")


@pytest.mark.parametrize("name", sorted(set(ComputeRPC.methods) - READERS - WRITERS - CACHERS))
def test_other_calls_then_they_go_as_they_are(name: str) -> None:
    recorder = Recorder()
    getattr(ticketed(recorder), name)("host7", "whatever")
    assert recorder.calls == [(name, {"args": ("host7", "whatever")})]


# --- in whole stories

@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def check_all(cloud: FailingCloud) -> set[str]:
    """Calls whose orders had tickets. Each ticket is for an image of its own order and for the host that got it; and
    the cell's database has none of them."""
    seen, sealed = set(), []
    for host, compute in cloud.computes.items():
        for call in compute.calls:
            for order in call.arguments.get("orders", ()):
                tickets = tickets_of(order)
                check(tickets, host)
                assert {one.image_id for one in tickets} <= _images(order)
                assert bool(tickets) == (call.name in READERS | WRITERS and bool(_images(order)))
                seen |= {call.name} if tickets else set()
                sealed += [one.sealed for one in tickets]
    rows = str([tuple(row) for table in (cell_tables.operations, cell_tables.servers, cell_tables.cleanups)
                for row in cloud.rows("cell", sa.select(table))])
    assert sealed and not any(one in rows or one[10:50] in rows for one in sealed) and "image_tickets" not in rows
    return seen


def _images(order: Any) -> set[str]:
    build = getattr(order, "build", None) or order
    found = [build.image, build.kernel, build.ramdisk, getattr(order, "image", None)] if hasattr(build, "image") else []
    return {one.id for one in found if one is not None} | {getattr(order, "image_id", "")} - {""}


@pytest.mark.parametrize(("name", "calls"), [
    ("start", {"start_guests"}), ("hard-reboot", {"reboot_guests"}), ("resume", {"resume_guests"}),
    ("rescue", {"rescue_guests"}), ("unrescue", {"unrescue_guests"}), ("rebuild-same", {"rebuild_guests"}),
    ("create-image", {"upload_snapshots"}), ("create-backup", {"upload_snapshots"}),
    ("shelve-and-offload", {"upload_snapshots"}), ("unshelve-offloaded", {"upload_snapshots", "build_guests"})])
def test_story_on_one_host_then_its_orders_have_tickets_and_its_journal_has_none(cloud: FailingCloud, name: str,
                                                                                 calls: set[str]) -> None:
    case: Case = next(one for one in CASES if one.name == name)
    uuid = ready(cloud, case)
    case.start(cloud, uuid)
    assert cloud.settle(uuid).vm_state == case.after
    assert calls <= check_all(cloud)


@pytest.mark.parametrize(("actions", "calls"), [
    (("resize", "confirmResize"), {"fetch_guests", "finish_guests"}),
    (("migrate", "revertResize"), {"fetch_guests", "return_guests"}),
    (("live-migration",), {"prepare_arrivals", "land_guests"}),
    (("evacuate",), {"rebuild_guests"})])
def test_move_then_its_orders_have_tickets_for_the_host_that_each_goes_to(cloud: FailingCloud, actions: tuple[str, ...],
                                                                          calls: set[str]) -> None:
    cloud.image_service.add(BASE)
    [uuid] = cloud.active(image_id=BASE)
    for action in actions:
        if action == "evacuate":
            cloud.down(cloud.server(uuid).host)
        cloud.begin(uuid, action)
        cloud.settle(uuid)
    assert calls <= check_all(cloud)


def test_tickets_of_then_they_are_the_orders_own_and_its_builds() -> None:
    one = ImageTicket(id="1", image_id="i", direction=READ, until=1, sealed="s")
    build = msgspec.structs.replace(ORDER, image_tickets=(one,))
    assert tickets_of(build) == tickets_of(msgspec.structs.replace(GUEST, build=build)) == (one,)
    assert tickets_of(SnapshotOrder(image_id="x", build=build, image_tickets=(one,), **NAMED)) == (one, one)
