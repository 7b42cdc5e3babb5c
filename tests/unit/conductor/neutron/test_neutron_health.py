"""What a server's row says of its interfaces, kept like what Neutron has: rounds, events, and reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.cmd import conductor as daemon
from nova.conductor.neutron.back_end import NeutronBackEnd
from nova.conductor.neutron.events import Later
from nova.conductor.neutron.health import Healer
from nova.db.models import cell as tables
from nova.model.guest.guests import GuestQuery
from nova.model.network.networks import RequestedNetwork
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerQuery
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, NEUTRON, until

pytestmark = pytest.mark.one_in(2)  # one of two runs has each


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    yield made
    for trouble in made.neutron.troubles:
        trouble.left = 0
    made.close()


def heal(cloud: FailingCloud) -> int:
    return cloud.deps.networking.healer.turn()


def shown(cloud: FailingCloud, uuid: str) -> list[str]:
    return [one.id for one in cloud.server(uuid).interfaces]


def tell(cloud: FailingCloud, uuid: str, name: str, tag: str = "") -> tuple[int, ...]:
    return cloud.control.external_events((ExternalEvent(name=name, server_uuid=uuid, tag=tag or None),))


# -- rounds

def test_heal_when_all_is_as_it_was_then_nothing_is_written(cloud):
    cloud.active(3)
    seen = len(cloud.neutron.requests)
    assert heal(cloud) == 0
    assert len(cloud.neutron.requests) - seen <= 4  # ports, floating addresses, networks, subnets: for all of them


def test_heal_when_something_changed_then_it_is_written_and_the_order_stays(cloud):
    second = cloud.neutron.add_network("second", ("10.2.0.0/24",))
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=second, tag="a"), RequestedNetwork(
        network_id=cloud.net)))
    before = cloud.server(uuid).interfaces
    first = before[0].id
    cloud.neutron.floating["f"] = {"id": "f", "floating_ip_address": "172.24.4.9", "floating_network_id": "p",
                                   "port_id": first, "tenant_id": "demo"}
    cloud.neutron.networks[second]["name"] = "renamed"
    assert heal(cloud) == 1
    after = cloud.server(uuid).interfaces
    assert [one.id for one in after] == [one.id for one in before] and after[0].tag == "a"
    assert [one.address for one in after[0].floating_addresses] == ["172.24.4.9"] and after[0].label == "renamed"
    assert after[1] == before[1] and heal(cloud) == 0


def test_heal_when_a_port_is_gone_or_came_then_the_row_follows(cloud):
    [uuid] = cloud.active()
    [first] = shown(cloud, uuid)
    second = cloud.neutron.add_port(cloud.net, device_id=uuid)
    assert heal(cloud) == 1 and shown(cloud, uuid) == [first, second]
    del cloud.neutron.ports[first]
    heal(cloud)
    until(lambda: shown(cloud, uuid) == [second], "the row follows when the guest has given it up")


@pytest.mark.parametrize("path", ["ports", "networks", "subnets", "floatingips"])
@pytest.mark.parametrize("how", ["refused", 500, 401])
def test_heal_when_something_cannot_be_read_then_nothing_is_lost(cloud, path, how):
    [uuid] = cloud.active()
    before = cloud.server(uuid).interfaces
    cloud.neutron.trouble("GET", path, how, times=10)
    assert heal(cloud) == 0 and cloud.server(uuid).interfaces == before
    with pytest.raises(errors.NovaError):
        cloud.deps.networking.interfaces_now(cloud.server(uuid))


def test_heal_when_neutron_shows_no_port_of_any_server_then_it_is_not_believed(cloud, caplog):
    uuids = cloud.active(2)
    before = [shown(cloud, uuid) for uuid in uuids]
    kept = dict(cloud.neutron.ports)
    cloud.neutron.ports.clear()
    assert heal(cloud) == 0 and [shown(cloud, uuid) for uuid in uuids] == before
    assert "are the credentials" in caplog.text.lower()
    cloud.neutron.ports[before[0][0]] = kept[before[0][0]]
    heal(cloud)
    until(lambda: [shown(cloud, uuid) for uuid in uuids] == [before[0], []], "the row follows")


def test_heal_when_a_list_leaves_a_port_out_that_is_there_then_it_stays(cloud):
    """A replica that lags, say."""
    [uuid] = cloud.active()
    before = cloud.server(uuid).interfaces
    cloud.neutron.trouble("GET", "ports?device_id", "blind", times=10**6)
    assert heal(cloud) == 0 and cloud.server(uuid).interfaces == before


def test_heal_when_something_runs_on_the_server_then_it_is_left_alone(cloud):
    [uuid] = cloud.active()
    row = cloud.server(uuid)
    cloud.neutron.networks[cloud.net]["name"] = "renamed"
    [read] = [row]
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(epoch=row.epoch + 1))
    assert cloud.deps.networking.healer.correct([read]) == 0
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(task_state="resize_prep"))
    assert heal(cloud) == 0 and cloud.server(uuid).interfaces == row.interfaces


def test_heal_when_there_are_more_than_a_turn_takes_then_all_get_theirs(cloud):
    uuids = cloud.active(3)
    cloud.neutron.networks[cloud.net]["name"] = "renamed"
    healer = Healer(cloud.deps, cloud.deps.networking.reader, batch=2)
    assert [healer.turn(), healer.turn()] == [2, 1]
    assert {cloud.server(uuid).interfaces[0].label for uuid in uuids} == {"renamed"}


@pytest.mark.parametrize(("heal_s", "first", "expected"), [
    (-1.0, True, {"late ports": 60.0}), (60.0, True, {"late ports": 60.0, "interfaces of Neutron": 60.0}),
    (60.0, False, {"late ports": 60.0})])
def test_jobs_when_healing_is_off_or_another_worker_has_it_then_late_ports_are_left(cloud, heal_s, first, expected):
    networking = cloud.deps.networking
    back_end = NeutronBackEnd(cloud.deps, networking.client, lambda *_: None, heal_s=heal_s)
    jobs = back_end.jobs(first)
    assert {name: every for every, _job, name in jobs} == expected
    assert [job() for _every, job, _name in jobs][1:] in ([], [0])


# -- events

def test_event_when_the_network_changed_then_the_row_follows(cloud):
    [uuid] = cloud.active()
    cloud.neutron.floating["f"] = {"id": "f", "floating_ip_address": "172.24.4.9", "floating_network_id": "p",
                                   "port_id": shown(cloud, uuid)[0], "tenant_id": "demo"}
    assert tell(cloud, uuid, "network-changed") == (200,)
    until(lambda: cloud.server(uuid).interfaces[0].floating_addresses, "the row has the floating address")
    assert cloud.computes["host1"].events == []


def test_event_when_neutron_is_away_then_the_row_follows_when_it_is_back(cloud):
    [uuid] = cloud.active()
    cloud.deps.networking.events.late.pause_s = 0.01
    cloud.neutron.networks[cloud.net]["name"] = "renamed"
    cloud.neutron.trouble("GET", "ports", 503, times=4)
    tell(cloud, uuid, "network-changed")
    until(lambda: cloud.server(uuid).interfaces[0].label == "renamed", "the row says what Neutron says")


def test_events_when_ports_are_plugged_then_each_host_is_told_once(cloud):
    uuids = cloud.active(3)
    reported: list[Any] = []
    cloud.computes["host1"].given(network_events=lambda host, events: reported.append(events))
    cloud.deps.networking = cloud.make_back_end(cloud.deps, gather_s=0.05)
    events = tuple(ExternalEvent(name="network-vif-plugged", server_uuid=uuid, tag=shown(cloud, uuid)[0])
                   for uuid in uuids)
    assert cloud.control.external_events(events) == (200, 200, 200)
    until(lambda: reported, "the host was told")
    [message] = reported
    assert {(one.server_uuid, one.name, one.interface_id, one.status) for one in message} == {
        (uuid, "network-vif-plugged", shown(cloud, uuid)[0], "completed") for uuid in uuids}


def test_event_when_the_server_is_on_its_way_then_the_destination_is_told_too(cloud):
    [uuid] = cloud.active()
    [port] = shown(cloud, uuid)
    cloud.computes["host1"].before = {"migrate": lambda orders: (
        tell(cloud, uuid, "network-vif-plugged", port),
        until(lambda: cloud.computes["host2"].events, "the destination was told"))}
    cloud.begin(uuid, "live-migration")
    cloud.settle(uuid)
    assert [one.interface_id for one in cloud.computes["host2"].events] == [port]
    assert cloud.server(uuid).host == "host2"


def test_event_when_a_port_was_deleted_then_the_host_is_told_and_the_row_forgets_it(cloud):
    [uuid] = cloud.active()
    [port] = shown(cloud, uuid)
    del cloud.neutron.ports[port]
    tell(cloud, uuid, "network-vif-deleted", port)
    until(lambda: shown(cloud, uuid) == [], "the row has no interface")
    assert [one.name for one in cloud.computes["host1"].events] == ["network-vif-deleted"]


def test_event_when_a_port_was_deleted_then_the_guest_gives_its_interface_up_once(cloud):
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net), RequestedNetwork(network_id=cloud.net)))
    gone, stays = shown(cloud, uuid)
    del cloud.neutron.ports[gone]
    for _ in range(2):
        tell(cloud, uuid, "network-vif-deleted", gone)
    until(lambda: shown(cloud, uuid) == [stays], "the row has one interface less")
    until(lambda: not cloud.deps.networking.events.busy, "events are passed on")
    cloud.settle(uuid)
    [order] = [order for kind, order in cloud.computes["host1"].orders if kind == "detach"]
    assert order.interface.id == gone and [one.id for one in order.build.interfaces] == [stays]


@pytest.mark.parametrize("neutron_too", [False, True], ids=["busy", "busy and Neutron away"])
def test_event_when_a_port_was_deleted_while_something_ran_then_the_guest_gives_it_up_afterwards(cloud, neutron_too):
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net), RequestedNetwork(network_id=cloud.net)))
    gone, stays = shown(cloud, uuid)
    networking = cloud.deps.networking
    networking.events.late.pause_s = 0.01
    row = tables.servers.c.uuid == uuid
    cloud.write("cell", sa.update(tables.servers).where(row).values(task_state="rebooting"))
    del cloud.neutron.ports[gone]
    if neutron_too:
        cloud.neutron.trouble("GET", "ports", 503, times=5)
    tell(cloud, uuid, "network-vif-deleted", gone)
    until(lambda: not networking.events.busy, "events are passed on")
    assert shown(cloud, uuid) == [gone, stays] and networking.healer.spared == {uuid}
    cloud.write("cell", sa.update(tables.servers).where(row).values(task_state=None))
    until(lambda: shown(cloud, uuid) == [stays], "the row has one interface less")
    until(lambda: not networking.events.late._looks, "nothing is left to look at")
    cloud.settle(uuid)
    [order] = [order for kind, order in cloud.computes["host1"].orders if kind == "detach"]
    assert order.interface.id == gone and networking.healer.spared == set()


def test_heal_when_a_guest_is_about_to_give_an_interface_up_then_its_row_is_left_alone(cloud):
    [uuid] = cloud.active()
    before = shown(cloud, uuid)
    cloud.neutron.ports.clear()
    cloud.deps.networking.healer.spared = {uuid}
    assert heal(cloud) == 0 and shown(cloud, uuid) == before
    cloud.deps.networking.healer.spared = ()
    heal(cloud)
    until(lambda: shown(cloud, uuid) == [], "the row follows when the guest has given it up")


@pytest.mark.parametrize("busy", [False, True], ids=["at rest", "busy when the word came"])
def test_heal_when_the_conductor_that_was_told_of_a_deleted_port_died_then_the_guest_gives_it_up(cloud, busy):
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net), RequestedNetwork(network_id=cloud.net)))
    gone, stays = shown(cloud, uuid)
    row = tables.servers.c.uuid == uuid
    del cloud.neutron.ports[gone]  # what waited for it was in the memory of a conductor that is no more
    if busy:
        cloud.write("cell", sa.update(tables.servers).where(row).values(task_state="rebooting"))
        assert heal(cloud) == 0 and shown(cloud, uuid) == [gone, stays]
        cloud.write("cell", sa.update(tables.servers).where(row).values(task_state=None))
    heal(cloud)
    until(lambda: shown(cloud, uuid) == [stays], "the row has one interface less")
    cloud.settle(uuid)
    [order] = [order for kind, order in cloud.computes["host1"].orders if kind == "detach"]
    assert order.interface.id == gone and [one.id for one in order.build.interfaces] == [stays]
    assert heal(cloud) == 0 and cloud.deps.networking.healer.spared == set()


def test_heal_when_the_guest_cannot_give_a_deleted_port_up_then_the_row_forgets_it(cloud):
    [uuid] = cloud.active()
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(vm_state="error"))
    cloud.neutron.ports.clear()
    heal(cloud)
    until(lambda: shown(cloud, uuid) == [], "the row follows")
    assert not [order for kind, order in cloud.computes["host1"].orders if kind == "detach"]


def detached(cloud: FailingCloud) -> list[str]:
    return [order.interface.id for kind, order in cloud.computes["host1"].orders if kind == "detach"]


def test_heal_when_a_port_is_another_servers_by_now_then_it_is_not_deleted(cloud):
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net), RequestedNetwork(network_id=cloud.net)))
    gone, stays = shown(cloud, uuid)
    cloud.neutron.ports[gone]["device_id"] = "another-server"
    heal(cloud)
    until(lambda: shown(cloud, uuid) == [stays], "the row has one interface less")
    cloud.settle(uuid)
    assert detached(cloud) == [gone] and cloud.neutron.ports[gone]["device_id"] == "another-server"


def test_heal_when_neutron_shows_no_port_of_a_project_then_no_guest_of_it_loses_an_interface(cloud):
    """Credentials that are no administrator's any more see the ports of their own project alone."""
    mine, theirs = cloud.active(2)
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == theirs).values(project_id="other"))
    [hidden] = shown(cloud, theirs)
    del cloud.neutron.ports[hidden]
    heal(cloud)
    until(lambda: shown(cloud, theirs) == [], "the row follows")
    assert detached(cloud) == [] and len(shown(cloud, mine)) == 1


def test_heal_when_a_guest_keeps_its_interface_then_it_is_asked_once_and_the_row_follows(cloud):
    [uuid] = cloud.active(networks=(RequestedNetwork(network_id=cloud.net), RequestedNetwork(network_id=cloud.net)))
    gone, stays = shown(cloud, uuid)
    del cloud.neutron.ports[gone]
    asked: list[tuple[str, str]] = []
    healer = cloud.deps.networking.healer
    healer.lost = asked.extend  # and the guest keeps it
    assert heal(cloud) == 0 and asked == [(uuid, gone)] and shown(cloud, uuid) == [gone, stays]
    assert heal(cloud) == 1 and asked == [(uuid, gone)] and shown(cloud, uuid) == [stays]
    assert heal(cloud) == 0 and not healer._asked


@pytest.mark.parametrize("why", ["it is there", "nobody knows it"])
def test_event_when_a_deleted_port_is_there_or_another_s_then_no_guest_loses_anything(cloud, why):
    [uuid] = cloud.active()
    tell(cloud, uuid, "network-vif-deleted", shown(cloud, uuid)[0] if why == "it is there" else cloud.net)
    until(lambda: cloud.computes["host1"].events, "the host was told")
    until(lambda: not cloud.deps.networking.events.busy, "events are passed on")
    assert len(shown(cloud, uuid)) == 1 and "detach" not in [kind for kind, _order in cloud.computes["host1"].orders]


def test_event_when_a_port_is_plugged_while_the_server_is_made_then_the_row_knows_when_it_has_ended(cloud):
    [uuid] = cloud.active()
    [port] = shown(cloud, uuid)
    cloud.deps.networking.events.late.pause_s = 0.01
    [down] = [msgspec.structs.replace(one, status="DOWN") for one in cloud.server(uuid).interfaces]
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(
        task_state="spawning", interfaces=(down,)))
    tell(cloud, uuid, "network-vif-plugged", port)
    until(lambda: not cloud.deps.networking.events.busy, "events are passed on")
    assert cloud.server(uuid).interfaces[0].status == "DOWN"
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(task_state=None))
    until(lambda: cloud.server(uuid).interfaces[0].status == "ACTIVE", "the row says what Neutron says")


def test_later_when_it_fails_then_it_is_tried_again_until_nothing_is_left():
    answers: list[Any] = [errors.Unavailable("away"), ["a", "b"], ["b"], []]
    asked: list[list[str]] = []

    def refresh(uuids: Any) -> Any:
        asked.append(list(uuids))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
    later = Later(refresh, 0.001)
    later.add(["a", "b"])
    until(lambda: not later._looks, "nothing is left")
    assert asked == [["a", "b"]] * 3 + [["b"]]
    answers.append([])
    later.add(["c"])
    until(lambda: not later._looks, "nothing is left")
    assert asked[-1] == ["c"]
    later.add([])
    assert not later._looks


def test_event_when_the_server_is_unknown_or_on_no_host_then_the_code_says_so(cloud):
    [uuid] = cloud.active()
    cloud.order(uuid, "shelve")
    cloud.settle(uuid)
    assert tell(cloud, uuid, "network-changed") == (422,)
    assert tell(cloud, "11111111-1111-1111-1111-111111111111", "network-changed") == (404,)


# -- reads

def test_groups_shown_when_there_are_many_servers_then_one_call_for_the_page(cloud):
    cloud.neutron.groups[cloud.neutron.add_group("web")]["name"] = "web"
    uuids = cloud.active(20)
    rows = [cloud.server(uuid) for uuid in uuids]
    cloud.neutron.requests.clear()
    found = cloud.deps.networking.groups_shown(rows)
    assert set(found.values()) == {("default",)} and len(found) == 20
    assert len(cloud.neutron.requests) == 2
    cloud.deps.networking.groups_shown(rows)
    assert len(cloud.neutron.requests) == 3  # the names are known by now
    one = cloud.control.get_server(ServerQuery(uuid=uuids[0], as_kept=True))
    many = [msgspec.structs.replace(one, uuid=f"{number:036d}") for number in range(1000)]
    cloud.neutron.requests.clear()
    cloud.deps.networking.groups_shown(many)
    assert len(cloud.neutron.requests) == 1


def test_interfaces_now_when_read_then_as_neutron_has_them(cloud):
    [uuid] = cloud.active()
    with context.entered(DEMO):
        [found] = cloud.deps.networking.interfaces_now(cloud.server(uuid))
    assert found == cloud.server(uuid).interfaces[0] and found.status == "ACTIVE"


# -- at start

class BackEnd:
    name = "neutron"

    def __init__(self, client: Any) -> None:
        self.client = client


@pytest.mark.parametrize("status, words", [(401, r"\[neutron\]auth_url, username"), (403, "rejects nova's credentials"),
                                           (404, r"\[neutron\]endpoint_override")])
def test_start_when_neutron_does_not_let_nova_in_then_it_goes_on_and_one_error_names_the_option(
        cloud, caplog, status, words):
    client = cloud.neutron.client(retries=0)
    cloud.neutron.trouble("GET", "extensions", status)
    daemon.check_networking(BackEnd(client))
    assert [record.levelname for record in caplog.records if re.search(words, record.getMessage())] == ["ERROR"]


def test_start_when_neutron_is_away_then_it_goes_on(cloud, caplog):
    client = cloud.neutron.client(retries=0)
    cloud.neutron.trouble("GET", "extensions", "refused")
    daemon.check_networking(BackEnd(client))
    assert "not available yet" in caplog.text
    daemon.check_networking(BackEnd(client))


# -- what guests are told

def test_metadata_when_groups_changed_in_neutron_then_they_are_told_after_the_next_look_or_event(cloud):
    [uuid] = cloud.active()
    web = cloud.neutron.add_group("web")

    def told() -> tuple[str, ...]:
        return cloud.hosts.guest_facts("host1", GuestQuery(server_uuid=uuid)).security_groups
    assert told() == ("default",)
    cloud.neutron.of(uuid)[0]["security_groups"] = [web]
    assert cloud.deps.networking.healer.turn() == 1
    assert told() == ("web",)
    cloud.neutron.of(uuid)[0].update(security_groups=[], port_security_enabled=False)
    assert tell(cloud, uuid, "network-changed") == (200,)
    until(lambda: not cloud.server(uuid).interfaces[0].filtered, "the row follows")
    assert told() == ()


def test_metadata_when_neutron_is_away_then_names_that_nobody_knows_are_left_out_and_the_rest_is_told(cloud):
    [uuid] = cloud.active()
    cloud.neutron.away()
    cloud.deps.networking = cloud.make_back_end(cloud.deps)  # which has asked for no name yet
    facts = cloud.hosts.guest_facts("host1", GuestQuery(server_uuid=uuid))
    assert (facts.uuid, facts.security_groups, bool(facts.interfaces)) == (uuid, (), True)
