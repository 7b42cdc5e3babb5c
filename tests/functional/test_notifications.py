"""Notifications over a real broker: what is in the queues after a day of a small cloud, and after a kill -9."""

from __future__ import annotations

import collections
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu
import pytest

from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import ADMIN, Cloud, Plan

pytestmark = pytest.mark.in_turn(2, 10)

VERSIONED, UNVERSIONED = "versioned_notifications", "notifications"
SELECT = ["scheduler.select_destinations.start", "scheduler.select_destinations.end"]
OPTIONS = {"oslo_messaging_notifications": {"driver": "messagingv2"},
           "notifications": {"notification_format": "both", "notify_on_state_change": "vm_state"}}


class Listener:
    """Consumes the notification queues of a cloud, as a billing system would."""

    def __init__(self, cloud: Cloud) -> None:
        self.connection = kombu.Connection(cloud.broker_url.replace("rabbit://", "amqp://", 1))
        self.heard: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)

    def listen(self) -> None:
        """Take what is in the queues now. Queues are there once something was sent."""
        for topic in (VERSIONED, UNVERSIONED):
            for priority in ("info", "error"):
                with contextlib.suppress(self.connection.connection_errors + self.connection.channel_errors), \
                        self.connection.channel() as channel:
                    self._drain(channel, topic, f"{topic}.{priority}")

    def _drain(self, channel: Any, topic: str, name: str) -> None:
        channel.queue_declare(name, passive=True)
        while (message := channel.basic_get(name, no_ack=True)) is not None:
            self.heard[topic].append(json.loads(json.loads(message.body)["oslo.message"]))

    def types(self, topic: str, uuid: str) -> list[str]:
        """Event types about one server, in the order in which they came."""
        self.listen()
        return [one["event_type"] for one in self.heard[topic] if uuid in json.dumps(one["payload"])]

    def until(self, topic: str, uuid: str, last: str, seconds: float = 30.0) -> list[str]:
        """Event types about a server once ``last`` has come."""
        wait_until(f"{last} of {uuid}", lambda: last in self.types(topic, uuid), seconds, 0.2)
        time.sleep(0.5)  # for what must not come any more
        return self.types(topic, uuid)


@pytest.fixture(scope="module")
def cloud(make_cloud, tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    point = tmp_path_factory.mktemp("faults") / "point"
    return make_cloud(Plan(options=OPTIONS, env={"NOVA_FAULT_POINT": f"@{point}"})).start()


@pytest.fixture(scope="module")
def listener(cloud: Cloud) -> Iterator[Listener]:
    made = Listener(cloud)
    yield made
    made.connection.release()


def test_life_of_a_server_is_in_both_queues_once_and_in_its_order(cloud: Cloud, listener: Listener) -> None:
    api = cloud.api()
    server = api.boot("told", metadata={"k": "v"}, adminPass="hunter2-secret")
    api.act(server["id"], "os-stop")
    api.settled(server["id"], "SHUTOFF")
    api.remove(server["id"])
    life = ["create", "power_off", "delete"]
    expected = {f"instance.{name}.{phase}": 1 for name in (*life, "shutdown") for phase in ("start", "end")}
    reported = listener.until(VERSIONED, server["id"], "instance.delete.end")
    assert collections.Counter(reported) == {**expected, **dict.fromkeys(SELECT, 1), "instance.update": 3}
    whole = [one for one in reported if one.partition("instance.")[2].split(".")[0] in life]
    assert whole == [f"instance.{name}.{phase}" for name in life for phase in ("start", "end")]
    old = listener.until(UNVERSIONED, server["id"], "compute.instance.delete.end")
    assert collections.Counter(old) == {f"compute.{kind}": count for kind, count in expected.items()} | {
        **dict.fromkeys(SELECT, 1), "compute.instance.update": 3}
    text = json.dumps(listener.heard)
    assert "hunter2-secret" not in text and "demo:demo" not in text, "neither the password nor the token"
    end = next(one for one in listener.heard[VERSIONED] if one["event_type"] == "instance.create.end")
    assert end["publisher_id"] == "nova-compute:host1" and end["payload"]["nova_object.version"] == "1.13"
    assert end["_context_request_id"] == end["payload"]["nova_object.data"]["request_id"]
    assert end["payload"]["nova_object.data"]["metadata"] == {"k": "v"}


def test_conductor_killed_in_the_middle_then_the_end_is_told_and_no_start_twice(cloud: Cloud, listener: Listener
                                                                                 ) -> None:
    point = Path(cloud.plan.env["NOVA_FAULT_POINT"].removeprefix("@"))
    point.write_text("create:BuildGuests:after:kill")
    api = cloud.api()
    server = api.create("survivor")
    api.settled(server["id"], "ACTIVE", seconds=60)
    assert not point.exists(), "a conductor was killed"
    reported = collections.Counter(listener.until(VERSIONED, server["id"], "instance.create.end"))
    assert reported["instance.create.end"] == 1 and reported["instance.create.start"] <= 1
    assert not reported["instance.create.error"]
    api.remove(server["id"])


def test_failed_create_is_told_in_the_queue_of_errors(cloud: Cloud, listener: Listener) -> None:
    api = cloud.api()
    with cloud.knobs("host1", {"call": "start_new", "do": "fail"}):
        server = api.create("failing")
        api.settled(server["id"], "ERROR", seconds=60)
    reported = listener.until(VERSIONED, server["id"], "instance.create.error")
    assert reported.count("instance.create.error") == 1
    failed = next(one for one in listener.heard[VERSIONED] if one["event_type"] == "instance.create.error")
    assert failed["priority"] == "ERROR"
    assert failed["payload"]["nova_object.data"]["fault"]["nova_object.data"]["exception_message"]
    api.remove(server["id"])


def test_operators_resources_are_told(cloud: Cloud, listener: Listener) -> None:
    api = cloud.api(ADMIN)
    api.call("POST", "/flavors", {"flavor": {"name": "told", "id": "told", "ram": 64, "vcpus": 1, "disk": 1}})
    api.call("DELETE", "/flavors/told")
    made = api.call("POST", "/os-keypairs", {"keypair": {"name": "told", "type": "ssh"}}).json()["keypair"]
    api.call("DELETE", "/os-keypairs/told")

    def heard() -> list[str]:
        listener.listen()
        return [one["event_type"] for one in listener.heard[VERSIONED]
                if one["event_type"].startswith(("flavor.", "keypair."))]
    wait_until("the keypair's end", lambda: "keypair.delete.end" in heard(), 15, 0.2)
    assert [one for one in heard() if one.startswith("keypair")] == [
        f"keypair.{name}.{phase}" for name in ("create", "delete") for phase in ("start", "end")]
    assert heard()[-6:-4] == ["flavor.create", "flavor.delete"]
    assert made["fingerprint"] in json.dumps(listener.heard)
    assert made.get("private_key", "none") not in json.dumps(listener.heard)


def test_broker_of_notifications_that_is_away_delays_nothing(make_cloud) -> None:
    """A broker of its own where nobody listens: the library tries for ever, and only the notifier's thread waits."""
    away = {**OPTIONS, "oslo_messaging_notifications": {
        "driver": "messagingv2", "transport_url": f"rabbit://u:p@127.0.0.1:{free_port()}/"}}
    cloud = make_cloud(Plan(options=away)).start()
    api = cloud.api()
    begun = time.monotonic()
    servers = [api.boot(f"quick{number}") for number in range(3)]
    api.remove(*(server["id"] for server in servers))
    assert time.monotonic() - begun < 30
    cloud.wait_clean()
    code, seconds = cloud.daemons["conductor"].terminate()
    assert code == 0 and seconds < 15, "a stop waits for what can be sent, and no longer"
