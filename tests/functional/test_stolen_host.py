"""A thief with all that an enrolled compute host has: its broker user, its files and its secret, in a real cloud.

What it tries is refused, is in a log with its name, and harms nobody: after each deed the other host beats, boots and
is answered. What the broker's permissions alone refuse is in test_hosts_driver.py.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import kombu
import pytest
from amqp.exceptions import AccessRefused, NotAllowed
from oslo_config import cfg
from oslo_messaging import TransportURL
from oslo_messaging._drivers import common
from oslo_messaging._metrics.client import oslo_messaging_metrics
from oslo_messaging._tracing.client import oslo_messaging_tracing

from nova import context, errors
from nova.conf import register
from nova.model.guest.guests import GuestPassword, GuestQuery
from nova.model.guest.orders import GuestState, Outcome, Permission, PowerReport
from nova.model.guest.orphans import FoundOrphan, OrphanKind, OrphanReport
from nova.model.host.hosts import Inventory, Node
from nova.model.host.services import ContractVersion, Heartbeat, Registration
from nova.model.server.migrations import ProgressReport
from nova.model.server.states import PowerState
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret
from nova.rpc.proofs import AuthenticatedMethod, Proofs
from nova.rpc.transport import Bus, HostsBus
from tests import sampling
from tests.functional.backends import hosts_url, wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.test_hosts_driver import body_of

pytestmark = pytest.mark.in_turn(8, 10)

THIEF, OTHER = "host2", "host3"
FIRST = "host1"  # where there are two cells, it is the host of the first one, and the others are in the second
CELLS = sampling.cells(2)
COUNT = itertools.count()


class Thief:
    """Root on :data:`THIEF`, once its nova-compute is gone: nobody else reads its queues."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.config = (cloud.root / "etc" / THIEF / "nova.conf").read_text()
        self.secret = HostSecret(cloud.state(THIEF))
        self.host_id = (cloud.state(THIEF) / "host_id").read_text().strip()
        self._buses: list[Bus] = []

    def bus(self, name: str = THIEF, keys: Any = None) -> HostsBus:
        made = HostsBus(self.conf(), name, keys or self.secret)
        self._buses.append(made)
        return made

    def conf(self, host: str = THIEF) -> cfg.ConfigOpts:
        conf = cfg.ConfigOpts()
        conf([])
        register(conf)
        conf.register_opts(oslo_messaging_metrics, group="oslo_messaging_metrics")
        conf.register_opts(oslo_messaging_tracing, group="oslo_messaging_tracing")
        if self.cloud.plan.upstream:
            TransportURL.parse(conf)  # declares the option
            conf.set_override("transport_url", self.cloud.broker_of(host))
        else:
            conf.set_override("hosts_transport_url", hosts_url(self.cloud.broker_of(host), host))
        return conf

    def conductor(self, name: str = THIEF) -> Any:
        return self.bus(name).client(ConductorHostRPC)

    def channel(self, url: str = "") -> Any:
        broker = self.cloud.broker_of(THIEF)
        url = url or (broker if self.cloud.plan.upstream else hosts_url(broker, THIEF))
        connection = kombu.Connection(url.replace("rabbit://", "amqp://", 1))
        connection.ensure_connection(max_retries=1)
        channel = connection.channel()
        channel.confirm_select()
        return channel

    def publish(self, exchange: str, key: str, method: str = "ping", **envelope: Any) -> None:
        message = {"method": method, "args": envelope, "version": "1.0", "_unique_id": str(next(COUNT))}
        channel = self.channel()
        kombu.Producer(channel).publish(common.serialize_msg(message), exchange=exchange, routing_key=key)
        channel.queue_declare(f"compute.{THIEF}", passive=True)  # what is refused comes with the next answer

    def close(self) -> None:
        for bus in self._buses:
            bus.close()


class Scene(NamedTuple):
    cloud: Cloud
    thief: Thief
    victim: str  # a server on the other host
    own: str  # one on the stolen host


def stolen(cloud: Cloud) -> Iterator[Scene]:
    """The scene in this cloud, once it has started."""
    admin = cloud.api("admin")
    victim, own = (cloud.api("admin").boot(f"on-{host}", availability_zone=f"nova:{host}", user_data="c2VjcmV0")["id"]
                   for host in (OTHER, THIEF))
    assert admin.get(f"/servers/{victim}")["server"]["OS-EXT-SRV-ATTR:host"] == OTHER
    cloud.compute(THIEF).terminate()
    with context.entered(context.internal()):
        made = Scene(cloud, Thief(cloud), victim, own)
        yield made
    made.thief.close()


@pytest.fixture(scope="module")
def scene(make_cloud: Any) -> Iterator[Scene]:
    if not CELLS:
        yield from stolen(make_cloud(Plan(computes=3, upstream=False)).start())
        return
    cloud = make_cloud(Plan(computes=1, cells=1, upstream=False)).start()
    cloud.add_cell("cell2", THIEF, OTHER)
    cloud.part_brokers()
    yield from stolen(cloud)


@contextlib.contextmanager
def honest_beats(cloud: Cloud) -> Iterator[list[float]]:
    """Heartbeats of the other host, one after another: the seconds that each took."""
    conf, took, over = Thief(cloud).conf(OTHER), [], threading.Event()  # type: cfg.ConfigOpts, list[float], Any
    bus = HostsBus(conf, OTHER, HostSecret(cloud.state(OTHER)))

    def beat() -> None:
        with context.entered(context.internal()):
            while not over.is_set():
                started = time.monotonic()
                bus.client(ConductorHostRPC).heartbeat(OTHER, Heartbeat(host=OTHER, binary="nova-compute"))
                took.append(time.monotonic() - started)
                over.wait(0.05)
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()
        bus.close()


def others_go_on(cloud: Cloud, host: str = OTHER) -> None:
    """The other host is up, takes a server and does what it is told."""
    wait_until("the other host is up", lambda: ("nova-compute", host) in cloud.up(), 15, 0.2)
    started = time.monotonic()
    api = cloud.api("admin")
    uuid = api.boot("another", availability_zone=f"nova:{host}")["id"]
    api.call("POST", f"/servers/{uuid}/action", {"pause": None})
    api.settled(uuid, "PAUSED")
    api.delete(uuid)
    assert time.monotonic() - started < 20


def logged(cloud: Cloud, pattern: str) -> None:
    cloud.conductor_of(THIEF).wait_log(pattern, 5)


# -- 1, 2, 6, 7, 8: by the broker

BY_THE_BROKER: dict[str, Callable[[Thief], Any]] = {
    "a call of control daemons": lambda thief: thief.publish("", "conductor", "get_server", sender="ctl"),
    "a call by the default exchange": lambda thief: thief.publish("", "conductor-host", sender=OTHER),
    "an order to the other host": lambda thief: thief.publish(f"nova-host-{OTHER}", f"compute.{OTHER}", "stop_guests"),
    "an order by the default exchange": lambda thief: thief.publish("", f"compute.{OTHER}", "stop_guests"),
    "the scheduler": lambda thief: thief.publish("nova-scheduler", "scheduler", "select_hosts"),
    "consoles' tokens": lambda thief: thief.publish("nova-consoleauth", "consoleauth", "open_console"),
    "certificates": lambda thief: thief.publish("nova-cert", "cert", "sign"),
    "a notification": lambda thief: thief.publish("nova", "versioned_notifications.info", "x"),
    "deleting what others are bound to": lambda thief: thief.channel().exchange_delete("nova-conductor-host"),
    "hearing all calls": lambda thief: thief.channel().queue_bind(f"compute.{THIEF}", "nova-conductor-host", "#"),
    "hearing all answers": lambda thief: thief.channel().queue_bind(f"compute.{THIEF}", "nova-answers", "#"),
    "the conductors' queue": lambda thief: thief.channel().queue_delete("conductor-host"),
    "the control daemons' vhost": lambda thief: thief.channel(
        thief.cloud.broker_url.replace("nova:nova", f"host-{THIEF}:nova"))}


@pytest.mark.parametrize("deed", sorted(BY_THE_BROKER))
def test_broker_when_the_thief_tries_then_refused(scene: Scene, deed: str) -> None:
    with pytest.raises((AccessRefused, NotAllowed)):
        BY_THE_BROKER[deed](scene.thief)


def test_others_when_all_that_was_refused_then_they_go_on(scene: Scene) -> None:
    others_go_on(scene.cloud)


# -- 3, 11: by what lies on the host

@pytest.mark.parametrize("word", ["mysql", "database", "connection", "transport_url = rabbit://nova:"])
def test_files_of_the_host_hold_no_way_to(scene: Scene, word: str) -> None:
    mine = [scene.thief.config, *(path.read_text(errors="replace") for path in _files(scene.cloud.state(THIEF)))]
    assert not [text for text in mine if word in text.replace("hosts_transport_url", "")]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# -- 4, 5: by its own voice, and by voices that it makes up

@pytest.mark.parametrize("name", [OTHER, "ctl", "stranger", ""])
def test_call_when_it_bears_another_name_then_refused_with_that_name(scene: Scene, name: str) -> None:
    """The answer would go to that host, if anywhere: the message is not even taken."""
    with pytest.raises(errors.NovaError):
        HostsBus.client(scene.thief.bus(name), ConductorHostRPC).heartbeat(
            name, Heartbeat(host=name, binary="nova-compute"))
    if name == OTHER:
        others_go_on(scene.cloud)


def test_call_when_it_is_proven_for_another_host_then_refused_and_logged(scene: Scene) -> None:
    thief = scene.thief.bus()
    thief.host = OTHER  # its own queue for the answer, and its own secret
    with pytest.raises(errors.NovaError):
        thief.client(ConductorHostRPC).may_proceed(OTHER, ())
    logged(scene.cloud, f"may_proceed from {OTHER} refused")


SAID: dict[str, tuple[str, Callable[[Any, Scene], Any]]] = {
    "a metadata service": ("rpc|host", lambda conductor, scene: conductor.register(THIEF, Registration(
        host=THIEF, binary="nova-metadata", topic="metadata"))),
    "a network host": ("host", lambda conductor, scene: conductor.register(THIEF, Registration(
        host=THIEF, binary="nova-network", topic="network"))),
    "a conductor": ("host", lambda conductor, scene: conductor.register(THIEF, Registration(
        host=THIEF, binary="nova-conductor", topic="conductor"))),
    "another host": ("host", lambda conductor, scene: conductor.register(THIEF, Registration(
        host=OTHER, binary="nova-compute", topic="compute"))),
    "another machine": ("host", lambda conductor, scene: conductor.register(THIEF, Registration(
        host=THIEF, binary="nova-compute", topic="compute", host_id="00000000-0000-4000-8000-000000000000"))),
    "another's guest by uuid": ("guest", lambda conductor, scene: conductor.guest_facts(
        THIEF, GuestQuery(server_uuid=scene.victim))),
    "another's guest by address": ("guest", lambda conductor, scene: conductor.guest_facts(
        THIEF, GuestQuery(address=_address(scene, scene.victim)))),
    "a password for another's guest": ("guest", lambda conductor, scene: conductor.set_guest_password(
        THIEF, GuestPassword(server_uuid=scene.victim, password="x"))),
    "another's node": ("host", lambda conductor, scene: conductor.report_inventory(THIEF, Inventory(
        host=THIEF, host_id=scene.thief.host_id, version=10**9, nodes=(Node(
            uuid=_node(scene, OTHER), name=THIEF, hypervisor_type="QEMU", vcpus=4096),)))),
    "another's inventory": ("host", lambda conductor, scene: conductor.report_inventory(THIEF, Inventory(
        host=OTHER, host_id=scene.thief.host_id, version=10**9, nodes=()))),
    "another's strangers": ("host", lambda conductor, scene: conductor.report_strangers(
        THIEF, OrphanReport(host=OTHER))),
    "another's heartbeat": ("host", lambda conductor, scene: conductor.heartbeat(
        THIEF, Heartbeat(host=OTHER, binary="nova-compute"))),
    "another's power": ("host", lambda conductor, scene: conductor.report_power(THIEF, PowerReport(host=OTHER)))}


def _address(scene: Scene, uuid: str) -> str:
    server = scene.cloud.api("admin").get(f"/servers/{uuid}")["server"]
    return next(row["addr"] for rows in server["addresses"].values() for row in rows)


def _node(scene: Scene, host: str) -> str:
    found = scene.cloud.api("admin").get("/os-hypervisors/detail")["hypervisors"]
    return next(one["id"] for one in found if one["service"]["host"] == host)


@pytest.mark.parametrize("what", sorted(SAID))
def test_host_when_it_says_or_asks_what_is_not_its_own_then_refused(scene: Scene, what: str) -> None:
    noun, say = SAID[what]
    with pytest.raises(errors.NovaError) as error:
        say(scene.thief.conductor(), scene)
    assert error.value.code.split(".")[0] in noun.split("|"), error.value
    if not isinstance(error.value, errors.NotFound):
        logged(scene.cloud, rf"from {THIEF} refused: .*")


def test_host_when_it_speaks_for_guests_of_others_then_nothing_changes(scene: Scene) -> None:
    """Reports that are not refused as a whole: what is not its own in them counts for nothing."""
    conductor, admin = scene.thief.conductor(), scene.cloud.api("admin")
    before = admin.get(f"/servers/{scene.victim}")["server"]
    conductor.report_power(THIEF, PowerReport(host=THIEF, guests=(
        GuestState(server_uuid=scene.victim, power_state=PowerState.SHUTDOWN),)))
    conductor.report_outcomes(THIEF, tuple(range(200)), (Outcome(server_uuid=scene.victim, ok=True),))
    conductor.debt_paid(THIEF, 1)
    granted = conductor.may_proceed(THIEF, (Permission(server_uuid=scene.victim, epoch=10**6),))
    assert not any(one.granted for one in granted)
    time.sleep(0.5)
    assert admin.get(f"/servers/{scene.victim}")["server"] == before


def test_host_when_it_pulls_its_version_down_then_others_are_asked_as_before(scene: Scene) -> None:
    scene.thief.conductor().register(THIEF, Registration(
        host=THIEF, binary="nova-compute", topic="compute", host_id=scene.thief.host_id,
        contracts=(ContractVersion(name=ComputeRPC.__name__, version="1.0"),)))
    scene.cloud.conductor_of(THIEF).restart()
    others_go_on(scene.cloud)


def test_orders_when_the_thief_makes_them_up_then_no_host_takes_them(scene: Scene) -> None:
    """Even where the broker let them through: a conductor's user with a thief's secret."""
    bus = scene.thief.bus(keys=lambda host, introducing=False: scene.thief.secret(THIEF))
    bus.conf.set_override("hosts_transport_url", hosts_url(scene.cloud.broker_of(OTHER)))
    forger = HostsBus(bus.conf, "ctl9", lambda host, introducing=False: scene.thief.secret(THIEF), conductor=True)
    with pytest.raises(errors.Unavailable, match="rejected this conductor's order"):
        forger.client(ComputeRPC).ping(OTHER)
    forger.close()
    scene.cloud.compute(OTHER).wait_log("from ctl9 refused", 5)
    others_go_on(scene.cloud)


def test_conductor_contract_when_the_thief_speaks_it_on_its_own_vhost_then_nobody_is_there(scene: Scene) -> None:
    with pytest.raises(TypeError):
        scene.thief.bus().client(ConductorRPC)


# -- another cell

across = pytest.mark.skipif(not CELLS, reason="the cloud of this run has one cell")


class Far(NamedTuple):
    """What the first cell has. ``server``: on its host."""

    scene: Scene
    server: str

    def server_shown(self) -> Any:
        return self.scene.cloud.api("admin").show(self.server)

    def goes_on(self) -> None:
        """The first cell's host is up, as it was, and takes a server."""
        others_go_on(self.scene.cloud, FIRST)


@pytest.fixture(scope="module")
def far(scene: Scene) -> Far:
    return Far(scene, scene.cloud.api("admin").boot("far", host=FIRST)["id"])


BY_ITS_BROKER: dict[str, Callable[[Thief], Any]] = {
    "the vhost of the other cell's hosts": lambda thief: thief.channel(hosts_url(thief.cloud.broker_url, THIEF)),
    "an order to its host": lambda thief: thief.publish(f"nova-host-{FIRST}", f"compute.{FIRST}", "stop_guests"),
    "its host's queue": lambda thief: thief.channel().queue_declare(f"compute.{FIRST}"),
    "a call in the name of its host": lambda thief: thief.publish("nova-conductor-host", f"calls.{FIRST}")}


@across
@pytest.mark.parametrize("deed", sorted(BY_ITS_BROKER))
def test_broker_when_the_thief_reaches_for_another_cell_then_refused(far: Far, deed: str) -> None:
    with pytest.raises((AccessRefused, NotAllowed)):
        BY_ITS_BROKER[deed](far.scene.thief)


@across
@pytest.mark.parametrize("name", [THIEF, FIRST])
def test_conductors_of_another_cell_when_the_broker_lets_the_thief_through_then_they_do_not_answer(
        far: Far, name: str) -> None:
    conf = far.scene.thief.conf()
    conf.set_override("hosts_transport_url", hosts_url(far.scene.cloud.broker_url))
    bus = HostsBus(conf, name, far.scene.thief.secret)
    with pytest.raises(errors.NovaError):
        bus.client(ConductorHostRPC).may_proceed(name, (Permission(server_uuid=far.server, epoch=0),))
    bus.close()
    far.goes_on()


@across
def test_host_of_another_cell_when_the_broker_lets_the_thiefs_orders_through_then_it_does_not_take_them(
        far: Far) -> None:
    conf, secret = far.scene.thief.conf(), far.scene.thief.secret
    conf.set_override("hosts_transport_url", hosts_url(far.scene.cloud.broker_url))
    forger = HostsBus(conf, "ctl9", lambda host, introducing=False: secret(THIEF), conductor=True)
    with pytest.raises(errors.Unavailable, match="rejected this conductor's order"):
        forger.client(ComputeRPC).ping(FIRST)
    forger.close()
    far.scene.cloud.compute(FIRST).wait_log("from ctl9 refused", 5)
    far.goes_on()


SAID_OF_FAR: dict[str, tuple[str, Callable[[Any, Far], Any]]] = {
    "its guest by uuid": ("guest", lambda conductor, far: conductor.guest_facts(
        THIEF, GuestQuery(server_uuid=far.server))),
    "its guest by address": ("guest", lambda conductor, far: conductor.guest_facts(
        THIEF, GuestQuery(address=_address(far.scene, far.server)))),
    "a password for its guest": ("guest", lambda conductor, far: conductor.set_guest_password(
        THIEF, GuestPassword(server_uuid=far.server, password="x"))),
    "its host": ("host", lambda conductor, far: conductor.register(THIEF, Registration(
        host=FIRST, binary="nova-compute", topic="compute"))),
    "its host's inventory": ("host", lambda conductor, far: conductor.report_inventory(THIEF, Inventory(
        host=FIRST, host_id=far.scene.thief.host_id, version=10**9, nodes=()))),
    "its host's heartbeat": ("host", lambda conductor, far: conductor.heartbeat(
        THIEF, Heartbeat(host=FIRST, binary="nova-compute"))),
    "its host's power": ("host", lambda conductor, far: conductor.report_power(THIEF, PowerReport(host=FIRST)))}


@across
@pytest.mark.parametrize("what", sorted(SAID_OF_FAR))
def test_host_when_it_says_or_asks_what_is_another_cells_then_refused(far: Far, what: str) -> None:
    noun, say = SAID_OF_FAR[what]
    with pytest.raises(errors.NovaError) as error:
        say(far.scene.thief.conductor(), far)
    assert error.value.code.split(".")[0] == noun, error.value


@across
def test_host_when_it_speaks_for_guests_of_another_cell_then_nothing_changes(far: Far) -> None:
    conductor, before = far.scene.thief.conductor(), far.server_shown()
    conductor.report_power(THIEF, PowerReport(host=THIEF, guests=(
        GuestState(server_uuid=far.server, power_state=PowerState.SHUTDOWN),)))
    conductor.report_outcomes(THIEF, tuple(range(200)), (Outcome(server_uuid=far.server, ok=True),))
    conductor.report_progress(THIEF, (ProgressReport(server_uuid=far.server, epoch=1, percent=50),))
    conductor.report_strangers(THIEF, OrphanReport(host=THIEF, found=(
        FoundOrphan(kind=OrphanKind.GUEST, server_uuid=far.server, power_state=PowerState.RUNNING),)))
    granted = conductor.may_proceed(THIEF, tuple(Permission(server_uuid=far.server, epoch=each) for each in range(9)))
    assert not any(one.granted for one in granted)
    time.sleep(3.0)  # super conductors carry what a cell has about every second
    assert far.server_shown() == before and far.scene.cloud.guests(FIRST) >= {far.server}


@across
def test_host_when_its_node_has_the_uuid_of_another_cells_node_then_that_one_stays_as_it_was(far: Far) -> None:
    """The cell's conductor cannot know; super conductors do not use what is reported."""
    admin, uuid = far.scene.cloud.api("admin"), _node(far.scene, FIRST)
    before = _hypervisor(admin, uuid)
    far.scene.thief.conductor().report_inventory(THIEF, Inventory(
        host=THIEF, host_id=far.scene.thief.host_id, version=10**9, nodes=(
            Node(uuid=uuid, name=THIEF, hypervisor_type="QEMU", vcpus=4096),)))
    far.scene.cloud.daemons["conductor"].wait_log(f"the capacity of host {THIEF} is not used", 15)
    assert _hypervisor(admin, uuid) == before
    assert [one["service"]["host"] for one in admin.get("/os-hypervisors/detail")["hypervisors"]
            if one["id"] == uuid] == [FIRST]
    far.scene.cloud.daemons["scheduler"].restart()  # which reads all hosts anew
    far.goes_on()


def _hypervisor(admin: Any, uuid: str) -> Any:
    found = admin.get(f"/os-hypervisors/{uuid}")["hypervisor"]
    return {name: value for name, value in found.items() if name != "uptime"}


# -- floods

def test_calls_when_hundreds_name_queues_that_are_not_there_then_others_are_answered(scene: Scene) -> None:
    """An answer used to wait a minute for each, and kept one of 64 who answer."""
    bus = scene.thief.bus()
    client = bus.client(ConductorHostRPC)
    client.may_proceed(THIEF, ())
    channel = scene.thief.channel()

    def send(sealed: dict[str, Any]) -> None:
        message = {"method": "may_proceed", "args": sealed, "version": "1.0", "_unique_id": f"flood{next(COUNT)}",
                   "_reply_q": sealed["reply_to"], "_msg_id": "m"}
        kombu.Producer(channel).publish(common.serialize_msg(message), exchange="nova-conductor-host",
                                        routing_key=f"calls.{THIEF}")
    proofs, method = Proofs(scene.thief.secret), ConductorHostRPC.methods["may_proceed"]
    envelope = {"sender": THIEF, "contract": ConductorHostRPC.version, "body": body_of({"host": THIEF, "asked": []})}
    for number in range(400):
        with pytest.raises(errors.NovaError):  # there is no answer to read
            called = AuthenticatedMethod(ConductorHostRPC, method, THIEF)
            proofs.ask(called, envelope, f"reply_{THIEF}_{number:032x}", send)
    started = time.monotonic()
    others_go_on(scene.cloud)
    assert time.monotonic() - started < 20
    logged(scene.cloud, f"reply queue reply_{THIEF}_")


UNPROVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "a heartbeat without a proof": lambda: {"method": "heartbeat", "args": {
        "sender": THIEF, "proof": "x", "id": str(next(COUNT)), "contract": "1.0", "at": "1", "body": "x"}},
    "one that asks for an answer": lambda: {"method": "heartbeat", "_reply_q": f"reply_{THIEF}_{'0' * 32}",
                                            "_msg_id": "m", "args": {
        "sender": THIEF, "reply_to": f"reply_{THIEF}_{'0' * 32}", "proof": "x", "body": "x"}},
    "one in another host's name": lambda: {"method": "heartbeat", "args": {"sender": OTHER, "proof": "x"}},
    "a method that is not there": lambda: {"method": "nothing", "args": {}},
    "an echo": lambda: {"method": "echo", "args": {}},
    "nonsense": lambda: {"method": ["heartbeat"], "args": [1, 2]}}
FLOOD = 20_000


@pytest.mark.parametrize("what", UNPROVEN)
def test_conductors_when_a_host_sends_20000_messages_that_prove_nothing_then_others_are_answered_in_time(
        scene: Scene, what: str) -> None:
    log = scene.cloud.conductor_of(THIEF).log
    size = log.stat().st_size
    channels = [kombu.Connection(hosts_url(scene.cloud.broker_of(THIEF), THIEF).replace("rabbit://", "amqp://", 1))
                .channel() for _ in range(2)]
    with honest_beats(scene.cloud) as took:
        for number in range(FLOOD):
            message = {**UNPROVEN[what](), "version": "1.0", "_unique_id": f"flood{next(COUNT)}"}
            kombu.Producer(channels[number % 2]).publish(
                common.serialize_msg(message), exchange="nova-conductor-host", routing_key=f"calls.{THIEF}")
        others_go_on(scene.cloud)
    assert len(took) > 10 and max(took) < 2.0, sorted(took)[-5:]
    assert log.stat().st_size - size < 200_000
    for channel in channels:
        channel.connection.client.close()
