"""A thief with all that a console proxy, or a scheduler, has: its broker user and its files, in a real cloud.

What it tries is refused, and harms nobody: consoles open and servers boot meanwhile. The proxy and the scheduler of
this cloud know nothing of Keystone, and no broker user but their own.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import kombu
import pytest
from amqp.exceptions import AccessRefused, MessageNacked, NotAllowed
from oslo_messaging._drivers import common

from nova import context, errors
from nova.manage.secret_files import broker
from nova.model.guest.consoles import ConsoleType, TokenCheck
from nova.model.host.services import ContractVersion, Heartbeat, Registration
from nova.privileged.runner import Completed
from nova.rpc import control_rights
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.contracts.console_check import ConsoleCheckRPC
from nova.rpc.transport import Bus
from tests.fakes.console_front import Client, FakeEnd, rfb
from tests.functional.backends import daemon_url, free_port, hosts_vhost, wait_until
from tests.functional.cloud import Cloud, Plan, render
from tests.functional.daemons import Daemon
from tests.functional.test_control_driver import make_bus

pytestmark = pytest.mark.in_turn(3, 10)

PROXY, SCHEDULER = "nova-novncproxy", "nova-scheduler"
PORT = free_port()
COUNT = itertools.count()
FLOOD = 5000


class Thief:
    """Whoever has the broker user of a daemon."""

    def __init__(self, cloud: Cloud, user: str) -> None:
        self.cloud, self.user = cloud, user
        self.url = daemon_url(cloud.broker_url, user)
        self.queue = f"reply_{user}_{uuid.uuid4().hex}"
        self._buses: list[Bus] = []

    def bus(self) -> Bus:
        made = make_bus(self.url, "thief")
        self._buses.append(made)
        return made

    def channel(self, url: str = "") -> Any:
        connection = kombu.Connection((url or self.url).replace("rabbit://", "amqp://", 1))
        connection.ensure_connection(max_retries=1)
        channel = connection.channel()
        channel.confirm_select()
        return channel

    def own_queue(self) -> Any:
        channel = self.channel()
        channel.queue_declare(self.queue)
        return channel

    def publish(self, exchange: str, key: str, method: str = "ping", **more: Any) -> None:
        channel = self.own_queue()
        kombu.Producer(channel).publish(message(method, **more), exchange=exchange, routing_key=key)
        channel.queue_declare(self.queue, passive=True)  # what is refused comes with the next answer

    def consume(self, queue: str) -> None:
        self.channel().basic_consume(queue, callback=print)

    def bind(self, exchange: str, key: str = "#") -> None:
        self.own_queue().queue_bind(self.queue, exchange, key)

    def dead_letters(self, exchange: str, key: str) -> None:
        """A queue whose messages the broker itself hands on."""
        self.channel().queue_declare(f"reply_{self.user}_{uuid.uuid4().hex}", arguments={
            "x-message-ttl": 0, "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key})

    def close(self) -> None:
        for bus in self._buses:
            bus.close()


def message(method: str, **more: Any) -> Any:
    return common.serialize_msg({"method": method, "args": {"sender": "ctl"}, "version": "1.0",
                                 "_unique_id": str(next(COUNT)), **more})


class Scene(NamedTuple):
    cloud: Cloud
    proxy: Daemon
    thieves: dict[str, Thief]
    server: str


@pytest.fixture(scope="module")
def scene(make_cloud: Any) -> Iterator[Scene]:
    cloud = make_cloud(Plan(computes=1, consoles=True, options={"vnc": {
        "novncproxy_base_url": f"http://127.0.0.1:{PORT}/vnc_auto.html"}})).prepare()
    own_file(cloud, cloud.root / "etc" / "ctl", SCHEDULER)
    proxy = make_proxy(cloud)
    for daemon in (*cloud.daemons.values(), proxy):
        daemon.start()
    cloud.wait_up()
    cloud.create_sample_data()
    proxy.ready()
    server = cloud.api("demo").boot("vm")["id"]
    with context.entered(context.internal()):
        made = Scene(cloud, proxy, {user: Thief(cloud, user) for user in (PROXY, SCHEDULER)}, server)
        yield made
    for thief in made.thieves.values():
        thief.close()
    proxy.kill()


def own_file(cloud: Cloud, folder: Path, daemon: str) -> None:
    (folder / f"{daemon}.conf").write_text(render({"DEFAULT": {
        "transport_url": daemon_url(cloud.broker_url, daemon)}}))


def make_proxy(cloud: Cloud) -> Daemon:
    """On a machine of its own: without any credential but its broker user's."""
    folder, state = cloud.root / "etc" / "proxy", cloud.state("proxy")
    for made in (folder, state):
        made.mkdir(parents=True)
    (folder / "nova.conf").write_text(render({
        "DEFAULT": {"host": "proxy", "state_path": state, "report_interval": 2},
        "console": {"local_hosts": "host1"}, "monitoring": {"enabled": False},
        "vnc": {"novncproxy_host": "127.0.0.1", "novncproxy_port": PORT}}))
    own_file(cloud, folder, PROXY)
    return Daemon("novncproxy", folder / "nova.conf", cloud.root / "log" / "novncproxy.log")


def console_opens(scene: Scene) -> None:
    """A user's console: its page, and its guest's first words."""
    url = scene.cloud.api("demo").call("POST", f"/servers/{scene.server}/remote-consoles", {
        "remote_console": {"protocol": "vnc", "type": "novnc"}}).json()["remote_console"]["url"]
    token = url[-36:]
    port = scene.cloud.api("admin").get(f"/os-console-auth-tokens/{token}")["console"]["port"]
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    assert answer.status == 200 and b"noVNC" in answer.read()
    with contextlib.closing(FakeEnd(rfb, port)):
        client = Client(PORT, f"/?token={token}")
        assert client.status == 101 and client.received(12) == b"RFB 003.008\n"
        client.close()


def server_boots(scene: Scene) -> None:
    api = scene.cloud.api("demo")
    api.delete(api.boot("another")["id"])


# -- they do their work

def test_proxy_when_it_has_its_own_broker_user_and_nothing_else_then_consoles_open_and_it_is_up(scene: Scene) -> None:
    console_opens(scene)
    wait_until("the proxy is listed", lambda: (PROXY, "proxy") in registered(scene.cloud), 20, 0.2)


def registered(cloud: Cloud) -> set[tuple[str, str]]:
    return {tuple(line.split()[:2]) for line in cloud.manage("service", "list").splitlines()}  # type: ignore[misc]


def test_scheduler_when_it_has_its_own_broker_user_then_servers_boot_and_it_hears_itself(scene: Scene) -> None:
    server_boots(scene)
    assert "no message arrived" not in scene.cloud.daemons["scheduler"].text()
    scheduler = scene.cloud.daemons["scheduler"]
    assert not [line for line in scheduler.text().splitlines() if "access refused" in line.lower()]


# -- by the broker

EXCHANGES = ("nova-conductor", "nova-consoleauth", "nova-cert", "nova-objectstore", "nova-placement", "nova")
BOTH: dict[str, Callable[[Thief], Any]] = {
    **{f"a call to {name}": lambda thief, name=name: thief.publish(name, name.removeprefix("nova-"))
       for name in EXCHANGES},
    "a call by the default exchange": lambda thief: thief.publish("", "conductor", "get_server"),
    "an answer by the default exchange": lambda thief: thief.publish("", f"reply_{uuid.uuid4().hex}"),
    "a word to all conductors": lambda thief: thief.publish("conductor_fanout", ""),
    "what dead letters bring to conductors": lambda thief: thief.dead_letters("nova-conductor", "conductor"),
    "what dead letters bring to any queue": lambda thief: thief.dead_letters("", "conductor"),
    "reading calls to conductors": lambda thief: thief.consume("conductor"),
    "reading others' checks of tokens": lambda thief: thief.consume("consoleauth-check"),
    "reading others' reports": lambda thief: thief.consume("conductor-proxy"),
    "reading others' answers": lambda thief: thief.consume(others_replies(thief)),
    "hearing all calls": lambda thief: thief.bind("nova-conductor"),
    "hearing all answers": lambda thief: thief.bind("nova-control-answers"),
    "hearing some answers": lambda thief: thief.bind("nova-control-answers", "*"),
    "hearing all reports": lambda thief: thief.bind("nova-conductor-proxy"),
    "hearing notifications": lambda thief: thief.bind("nova"),
    "binding exchanges": lambda thief: thief.channel().exchange_bind("nova-conductor-proxy", "nova-conductor", "#"),
    "an exchange of its own": lambda thief: thief.channel().exchange_declare("mine", "topic"),
    "a queue of its own": lambda thief: thief.channel().queue_declare("mine"),
    "deleting others' exchange": lambda thief: thief.channel().exchange_delete("nova-control-answers"),
    "deleting others' queue": lambda thief: thief.channel().queue_delete("conductor"),
    "emptying others' queue": lambda thief: thief.channel().queue_purge("conductor"),
    "the hosts' vhost": lambda thief: thief.channel(
        f"{thief.url.rsplit('/', 1)[0]}/{hosts_vhost(thief.cloud.broker_url)}")}
OWN: dict[str, dict[str, Callable[[Thief], Any]]] = {
    PROXY: {"placing servers": lambda thief: thief.publish("nova-scheduler", "scheduler", "select_hosts"),
            "states of hosts": lambda thief: thief.publish("nova-conductor-scheduler", "conductor-scheduler"),
            "hearing checks of tokens": lambda thief: thief.bind("nova-consoleauth-check"),
            "an answer to anybody": lambda thief: thief.publish("nova-control-answers", f"reply_{uuid.uuid4().hex}"),
            "a scheduler's queue": lambda thief: thief.channel().queue_declare("scheduler.thief")},
    SCHEDULER: {"checking tokens": lambda thief: thief.publish("nova-consoleauth-check", "consoleauth-check"),
                "a proxy's report": lambda thief: thief.publish("nova-conductor-proxy", "conductor-proxy"),
                "a queue with a proxy's name": lambda thief: thief.channel().queue_declare(f"reply_{PROXY}_00"),
                "an answer into a queue of calls": lambda thief: thief.publish("nova-control-answers", "conductor")}}
DEEDS = [(user, what) for user, own in OWN.items() for what in sorted({**BOTH, **own})]


def others_replies(thief: Thief) -> str:
    """Some daemon's reply queue: its name, which a thief would have to know."""
    listed = thief.cloud.backends.broker.listed("list_queues", "-p", thief.cloud.broker_url.rsplit("/", 1)[1], "name")
    return next(name for name in listed if name.startswith("reply_") and thief.user not in name)


@pytest.mark.parametrize(("user", "deed"), DEEDS)
def test_broker_when_the_thief_tries_then_refused(scene: Scene, user: str, deed: str) -> None:
    with pytest.raises((AccessRefused, NotAllowed)):
        {**BOTH, **OWN[user]}[deed](scene.thieves[user])


def test_others_when_all_that_was_refused_then_they_go_on(scene: Scene) -> None:
    console_opens(scene)
    server_boots(scene)


# -- by its own voice

def registration(binary: str, **more: Any) -> Registration:
    return Registration(host="thief", binary=binary, topic="x", **more)


OTHER_DAEMONS = ("nova-conductor", "nova-compute", "nova-consoleauth", "nova-osapi_compute", "nova-cert",
                 "nova-objectstore", "nova-metadata", "nova-network")
DOORS: dict[str, tuple[type, str]] = {PROXY: (ConductorProxyRPC, SCHEDULER), SCHEDULER: (ConductorSchedulerRPC, PROXY)}


@pytest.mark.parametrize("user", list(DOORS))
def test_report_when_it_is_of_another_daemon_then_refused(scene: Scene, user: str) -> None:
    contract, other = DOORS[user]
    conductor: Any = scene.thieves[user].bus().client(contract)
    for binary in (*OTHER_DAEMONS, other):
        with pytest.raises(errors.Forbidden):
            conductor.register(registration(binary))
        with pytest.raises(errors.Forbidden):
            conductor.heartbeat(Heartbeat(host="thief", binary=binary))
    assert "thief" not in scene.cloud.manage("service", "list")


@pytest.mark.parametrize("served", ["ConductorRPC", "ConsoleCheckRPC", "ConductorProxyRPC"])
def test_report_when_a_proxy_says_that_it_serves_then_refused(scene: Scene, served: str) -> None:
    """The lowest version in use decides what daemons say to each other."""
    conductor: Any = scene.thieves[PROXY].bus().client(ConductorProxyRPC)
    with pytest.raises(errors.PeerTooOld):
        conductor.register(registration(PROXY, contracts=(ContractVersion(name=served, version="1.0"),)))


@pytest.mark.parametrize(("contract", "method"), [
    (ConsoleCheckRPC, "open_console"), (ConsoleCheckRPC, "show_token"), (ConductorProxyRPC, "get_server"),
    (ConductorProxyRPC, "get_host_states"), (ConductorProxyRPC, "keep_console"), (ConductorProxyRPC, "enroll_host")])
def test_call_when_the_part_of_a_proxy_does_not_have_it_then_nobody_knows_it(scene: Scene, contract: Any, method: str
                                                                             ) -> None:
    bus = scene.thieves[PROXY].bus()
    client = bus._prepared(contract, None, False)
    with pytest.raises(Exception, match="NoSuchMethod|does not exist|not support"):
        client.prepare(timeout=10).call({}, method, contract="1.0", sender="thief", body="")


@pytest.mark.parametrize("contract", [ConductorRPC, ConsoleAuthRPC])
def test_call_when_it_is_of_the_whole_contract_then_it_is_not_delivered(scene: Scene, contract: Any) -> None:
    client = scene.thieves[PROXY].bus().client(contract)
    name = "check_token" if contract is ConsoleAuthRPC else "heartbeat"
    said: Any = TokenCheck(token_hash="0" * 64, types=(ConsoleType.NOVNC,)) if contract is ConsoleAuthRPC \
        else Heartbeat(host="thief", binary=PROXY)
    with pytest.raises(errors.daemon.RpcNotDelivered):
        getattr(client, name)(said)


def test_token_when_the_thief_makes_it_up_then_it_opens_nothing(scene: Scene) -> None:
    consoles: Any = scene.thieves[PROXY].bus().client(ConsoleCheckRPC)
    with pytest.raises(errors.NotFound):
        consoles.check_token(TokenCheck(token_hash="0" * 64, types=tuple(ConsoleType)))


def test_call_when_its_answer_would_go_to_conductors_then_it_is_not_taken(scene: Scene) -> None:
    scene.thieves[PROXY].publish("nova-conductor-proxy", "conductor-proxy", "heartbeat", _msg_id=uuid.uuid4().hex,
                                 _reply_q="conductor")
    scene.cloud.daemons["conductor"].wait_log("heartbeat from ctl refused: its reply would go to queue conductor", 10)


# -- floods

def test_reports_when_a_proxy_sends_thousands_then_consoles_and_servers_go_on(scene: Scene) -> None:
    thief, over = scene.thieves[PROXY], threading.Event()

    def flood() -> None:
        for _ in range(FLOOD):
            if over.is_set():
                return
            with contextlib.suppress(MessageNacked):  # its queue is full
                producer.publish(message("heartbeat"), exchange="nova-conductor-proxy", routing_key="conductor-proxy")
    producer = kombu.Producer(thief.channel())
    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        started = time.monotonic()
        server_boots(scene)
        console_opens(scene)
        assert time.monotonic() - started < 20
    finally:
        over.set()
        flooding.join()


# -- what its files open

def test_files_of_the_proxy_hold_its_broker_user_and_no_other_secret(scene: Scene) -> None:
    text = "".join(path.read_text() for path in (scene.cloud.root / "etc" / "proxy").iterdir())
    assert [line for line in text.splitlines() if "://" in line] == [
        f"transport_url = {daemon_url(scene.cloud.broker_url, PROXY)}"]
    assert "password" not in text and "key" not in text


def test_rights_then_each_limited_daemon_is_in_the_table_of_the_broker(scene: Scene) -> None:
    vhost = scene.cloud.broker_url.rsplit("/", 1)[1]
    listed = (line.split("\t") for line in scene.cloud.backends.broker.listed("list_permissions", "-p", vhost))
    found = {user: patterns for user, *patterns in listed}
    assert {user: found[user] for user in control_rights.LIMITED} == {
        user: list(control_rights.permissions(user).values()) for user in control_rights.LIMITED}


# -- what makes the users

class OwnBroker:
    """rabbitmqctl of the tests' own broker, as the system's runner has it."""

    def __init__(self, cloud: Cloud) -> None:
        self._environment = cloud.backends.broker.environment()

    def run(self, argv: Any, *, stdin: str | None = None, **_more: Any) -> Completed:
        done = subprocess.run([f"/usr/lib/rabbitmq/bin/{argv[0]}", *argv[1:]], env=self._environment, input=stdin or "",
                              capture_output=True, text=True, check=True)
        return Completed(done.returncode, done.stdout, done.stderr)


def test_broker_user_when_it_is_made_twice_then_it_has_its_last_password_and_its_rights(scene: Scene) -> None:
    runner, vhost = OwnBroker(scene.cloud), scene.cloud.broker_url.rsplit("/", 1)[1]
    for word in ("first", "second"):
        known = broker.existing(runner)
        assert known and "nova" in known
        broker.make(broker.BrokerUser("nova-cert", word, (vhost,)), known, runner)
    url = broker.with_user(scene.cloud.broker_url, "nova-cert", "second")
    scene.thieves[PROXY].channel(url).queue_declare("cert", passive=False)
    with pytest.raises((AccessRefused, NotAllowed)):
        scene.thieves[PROXY].channel(url.rsplit("/", 1)[0] + "/" + hosts_vhost(scene.cloud.broker_url))
