"""What is told of calls that change something at once: each event once, after it is true."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.engine import announce
from nova.conductor.engine.announce import calls
from nova.conductor.service import conductor_service
from nova.model.base import Scope
from nova.model.flavor.flavors import NewFlavor
from nova.model.host.aggregates import AggregateUpdate, NewAggregate
from nova.model.host.services import Registration, ServiceQuery, ServiceUpdate
from nova.model.image.images import Image
from nova.model.server.keypairs import NewKeypair
from nova.model.server.server_groups import NewServerGroup
from nova.model.server.server_parts import StateReset, TagChange
from nova.model.server.servers import LockChange, ServerUpdate
from nova.notifications.kinds import KINDS
from nova.notifications.notifier import DisabledNotifier, Notifier, NotifierOptions
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.notifications import Kept
from tests.fakes.small_cloud import DEMO, SmallCloud, until

GROUP_ID = "788608ec-ebdc-45c5-bc7f-e5f24ab92c80"


class Heard:
    """A cloud whose notifications are heard."""

    def __init__(self, cloud: SmallCloud, **options: Any) -> None:
        self.cloud, self.control, self.kept = cloud, cloud.control, Kept()
        cloud.deps.notifier = Notifier(self.kept, NotifierOptions(host="ctl", forms=("versioned",), **options))

    def of(self, *calls: Callable[[Any], Any]) -> list[tuple[str, dict[str, Any]]]:
        """(type, payload's fields) of what these calls told."""
        self.settle()
        self.kept.sent.clear()
        with context.entered(DEMO):
            for call in calls:
                call(self.control)
        self.settle()
        return [(one.type, one.payload["nova_object.data"]) for _form, one in self.kept.sent]

    def settle(self) -> None:
        until(lambda: not self.cloud.deps.notifier.waiting and not self.cloud.deps.runner.running, "all is told")


@pytest.fixture
def heard(cloud: SmallCloud) -> Heard:
    return Heard(cloud)


def test_table_names_calls_that_there_are_and_events_that_there_are() -> None:
    assert set(announce.CALLS) <= set(ConductorRPC.methods)
    assert {row.event for row in announce.CALLS.values() if isinstance(row.event, str) and row.event} <= set(KINDS)


def test_wrapped_calls_keep_their_signatures(cloud: SmallCloud) -> None:
    whole = conductor_service(cloud.deps, cloud.daemons)
    for name in announce.CALLS:
        wanted = list(ConductorRPC.methods[name].signature.parameters)[1:]
        assert list(inspect.signature(getattr(whole, name)).parameters) == wanted


@pytest.mark.parametrize("generated, event", [(True, "create"), (False, "import")])
def test_keypair_is_told_when_it_is_made_or_imported_and_deleted(heard: Heard, generated: bool, event: str) -> None:
    key = NewKeypair(name="k", user_id="joe", fingerprint="1e:2c", public_key="ssh-rsa AAAA", generated=generated)
    told = heard.of(lambda control: control.create_keypair(key), lambda control: control.delete_keypair("joe", "k"))
    assert [kind for kind, _ in told] == [f"keypair.{event}.start", f"keypair.{event}.end", "keypair.delete.start",
                                          "keypair.delete.end"]
    assert [data["fingerprint"] for _, data in told] == [None, "1e:2c", "1e:2c", "1e:2c"]


def test_flavor_is_told_whole_at_each_change(heard: Heard) -> None:
    private = NewFlavor(name="f", flavorid="f1", memory_mb=1, vcpus=1, root_gb=1, is_public=False)
    told = heard.of(
        lambda control: control.create_flavor(private),
        lambda control: control.set_flavor_specs("f1", {"hw:numa_nodes": "2"}),
        lambda control: control.change_flavor_access("f1", "p", True),
        lambda control: control.delete_flavor_spec("f1", "hw:numa_nodes"),
        lambda control: control.update_flavor("f1", "words"),
        lambda control: control.delete_flavor("f1"))
    assert [kind for kind, _ in told] == ["flavor.create", *["flavor.update"] * 4, "flavor.delete"]
    assert [(data["extra_specs"], data["projects"], data["description"]) for _, data in told] == [
        ({}, [], None), ({"hw:numa_nodes": "2"}, [], None), ({"hw:numa_nodes": "2"}, ["p"], None), ({}, ["p"], None),
        ({}, ["p"], "words"), ({}, ["p"], "words")]


def test_aggregate_is_told_before_and_after_each_change(heard: Heard) -> None:
    def key(control: Any) -> int:
        return int(control.list_aggregates()[0].id)
    told = heard.of(
        lambda control: control.create_aggregate(NewAggregate(name="agg", availability_zone="z")),
        lambda control: control.update_aggregate(AggregateUpdate(id=key(control), name="new")),
        lambda control: control.set_aggregate_metadata(key(control), {"ssd": "yes"}),
        lambda control: control.add_aggregate_host(key(control), "a"),
        lambda control: control.remove_aggregate_host(key(control), "a"),
        lambda control: control.delete_aggregate(key(control)))
    names = ("create", "update_prop", "update_metadata", "add_host", "remove_host", "delete")
    assert [kind for kind, _ in told] == [f"aggregate.{name}.{phase}" for name in names for phase in ("start", "end")]
    assert (told[0][1]["id"], told[0][1]["hosts"]) == (None, None) and told[1][1]["id"] is not None
    assert (told[2][1]["name"], told[3][1]["name"]) == ("new", "new")
    assert told[5][1]["metadata"] == {"availability_zone": "z", "ssd": "yes"}
    assert [data["hosts"] for kind, data in told if "_host." in kind] == [[], ["a"], ["a"], []]


def test_call_that_fails_is_told_as_an_exception_and_has_no_end(heard: Heard) -> None:
    def again(control: Any) -> None:
        with pytest.raises(errors.Conflict):
            control.create_aggregate(NewAggregate(name="agg"))
    heard.of(lambda control: control.create_aggregate(NewAggregate(name="agg")))
    told = heard.of(again)
    assert [kind for kind, _ in told] == ["aggregate.create.start", "compute.exception"]
    assert "already exists" in told[1][1]["exception_message"] and told[1][1]["traceback"]


def test_delete_of_what_is_not_there_is_told_as_an_exception_alone(heard: Heard) -> None:
    def absent(control: Any) -> None:
        with pytest.raises(errors.NotFound):
            control.delete_flavor("none")
    assert [kind for kind, _ in heard.of(absent)] == ["compute.exception"]


@pytest.mark.parametrize("hint", [GROUP_ID, [GROUP_ID], GROUP_ID.replace("-", "")])
def test_server_group_is_told_when_made_joined_and_deleted(heard: Heard, hint: Any) -> None:
    group = NewServerGroup(uuid=GROUP_ID, name="g", policy="anti-affinity", rules={"max_server_per_host": 2})
    told = heard.of(lambda control: control.create_server_group(group),
                    lambda _control: heard.cloud.active(2, scheduler_hints={"group": hint}),
                    lambda control: control.delete_server_group(GROUP_ID, Scope()))
    groups = [(kind, data) for kind, data in told if kind.startswith("server_group")]
    assert [kind for kind, _ in groups] == ["server_group.create", "server_group.add_member", "server_group.delete"]
    assert len(groups[1][1]["members"]) == 2 and groups[0][1]["rules"] == {"max_server_per_host": "2"}
    assert groups[0][1]["policies"] == ["anti-affinity"]


def test_service_is_told_when_it_is_new_changed_and_taken_out(heard: Heard) -> None:
    def register(_control: Any) -> None:
        heard.cloud.daemons.register(Registration(host="s2", binary="nova-scheduler", topic="scheduler"))
    told = heard.of(
        register, register,
        lambda control: control.update_service(ServiceUpdate(host="s2", binary="nova-scheduler", disabled=True,
                                                             disabled_reason="because")),
        lambda control: control.delete_service(ServiceQuery(host="s2", binary="nova-scheduler")))
    assert [kind for kind, _ in told] == ["service.create", "service.update", "service.delete"]
    assert [(data["disabled"], data["disabled_reason"]) for _, data in told] == [
        (False, None), (True, "because"), (True, "because")]
    assert {one.publisher for _form, one in heard.kept.sent} == {"nova-scheduler:s2"}


def test_lock_and_unlock_are_told_with_their_reason(heard: Heard) -> None:
    uuid, = heard.cloud.active()
    told = heard.of(lambda control: control.lock_server(LockChange(uuid=uuid, by="owner", reason="mine")),
                    lambda control: control.lock_server(LockChange(uuid=uuid)))
    assert [(kind, data["locked"], data["locked_reason"]) for kind, data in told] == [
        ("instance.lock", True, "mine"), ("instance.unlock", False, None)]
    assert {one.publisher for _form, one in heard.kept.sent} == {"nova-api:ctl"}


def test_tags_are_told_as_an_update_whatever_is_said_of_states(heard: Heard) -> None:
    uuid, = heard.cloud.active()
    (kind, data), = heard.of(lambda control: control.change_tags(TagChange(uuid=uuid, add=("t",))))
    assert (kind, data["tags"]) == ("instance.update", ["t"])
    assert data["state_update"]["nova_object.data"]["state"] == "active"


@pytest.mark.parametrize("states, expected", [("", []), ("vm_state", [("vm", "other")])])
def test_new_name_is_told_where_changes_of_states_are(cloud: SmallCloud, states: str, expected: Any) -> None:
    uuid, = cloud.active()
    told = Heard(cloud, state_changes=states).of(
        lambda control: control.update_server(ServerUpdate(uuid=uuid, fields=("name",), name="other")))
    assert [(data["old_display_name"], data["display_name"]) for _, data in told] == expected


def test_reset_of_a_state_is_told_where_changes_of_states_are(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    (_kind, data), = Heard(cloud, state_changes="vm_state").of(
        lambda control: control.reset_state(StateReset(uuid=uuid, state="error")))
    change = data["state_update"]["nova_object.data"]
    assert (change["old_state"], change["state"]) == ("active", "error")


def test_off_then_a_call_reads_and_queues_nothing(cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def found_out(*_: Any) -> Any:
        raise AssertionError("something was prepared although notifications are off")
    for name in ("create_flavor", "delete_flavor"):
        monkeypatch.setitem(calls.CALLS, name, calls.Row(event=found_out, before=found_out, after=found_out))
    service: Any = conductor_service(cloud.deps, cloud.daemons)
    assert type(cloud.deps.notifier) is DisabledNotifier
    service.create_flavor(NewFlavor(name="f", flavorid="f1", memory_mb=1, vcpus=1, root_gb=1))
    service.delete_flavor("f1")


def test_images_kept_ready_are_told_with_each_hosts_progress(heard: Heard) -> None:
    cloud = heard.cloud
    cloud.deps.images = types.SimpleNamespace(show=lambda image_id, as_user: Image(id=image_id))
    cloud.computes["b"].given(cache_images=errors.Unavailable("no"))
    made: list[Any] = []
    heard.of(lambda control: made.append(control.create_aggregate(NewAggregate(name="agg"))),
             *[lambda control, host=host: control.add_aggregate_host(made[0].id, host) for host in ("a", "b")])

    def cache(control: Any) -> None:
        control.cache_images(made[0].id, ("i1", "i2"))
        until(lambda: "aggregate.cache_images.end" in heard.kept.types(), "the images are there")
    told = heard.of(cache)
    assert [kind.rpartition(".")[2] for kind, _ in told] == ["start", "progress", "progress", "end"]
    progress = {data["host"]: data for kind, data in told if kind.endswith("progress")}
    assert (progress["a"]["images_cached"], progress["a"]["images_failed"]) == (["i1", "i2"], [])
    assert (progress["b"]["images_cached"], progress["b"]["images_failed"]) == ([], ["i1", "i2"])
    assert {(data["index"], data["total"]) for data in progress.values()} == {(1, 2), (2, 2)}
    assert {one.publisher for _f, one in heard.kept.sent if one.type.endswith("progress")} == {"nova-conductor:ctl"}
