"""The thief of test_stolen_host.py in a cloud in upstream mode: what is refused all the same, and what is not.

What the thief can do here is written down as tests, too: the table of doc/security.rst claims no more than holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nova import errors
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.transport import Bus, HostsBus
from tests.functional import test_stolen_host as bounded
from tests.functional.cloud import Plan
from tests.functional.test_stolen_host import BY_THE_BROKER, OTHER, SAID, THIEF, Scene, logged, others_go_on, stolen

pytestmark = pytest.mark.in_turn(7, 10)

#: A host runs what it says here.
ALLOWED = ("a metadata service", "a network host")
#: Deeds that the broker does not stop, and that leave the cloud as it is.
HARMLESS = ("a call of control daemons", "a notification", "hearing all answers", "hearing all calls", "the scheduler",
            "an order to the other host", "the control daemons' vhost")


@pytest.fixture(scope="module")
def scene(make_cloud: Any) -> Iterator[Scene]:
    yield from stolen(make_cloud(Plan(computes=3, upstream=True)).start())


test_call_when_it_is_proven_for_another_host_then_refused_and_logged = \
    bounded.test_call_when_it_is_proven_for_another_host_then_refused_and_logged
test_host_when_it_speaks_for_guests_of_others_then_nothing_changes = \
    bounded.test_host_when_it_speaks_for_guests_of_others_then_nothing_changes
test_host_when_it_pulls_its_version_down_then_others_are_asked_as_before = \
    bounded.test_host_when_it_pulls_its_version_down_then_others_are_asked_as_before


@pytest.mark.parametrize("what", sorted(SAID.keys() - set(ALLOWED)))
def test_host_when_it_says_or_asks_what_is_not_its_own_then_refused(scene: Scene, what: str) -> None:
    bounded.test_host_when_it_says_or_asks_what_is_not_its_own_then_refused(scene, what)


@pytest.mark.parametrize("name", [OTHER, "ctl"])
def test_call_when_it_bears_the_name_of_another_host_then_refused(scene: Scene, name: str) -> None:
    with pytest.raises(errors.NovaError):
        scene.thief.conductor(name).may_proceed(name, ())
    logged(scene.cloud, f"may_proceed from {name} refused")
    others_go_on(scene.cloud)


def test_orders_when_the_thief_makes_them_up_then_no_host_takes_them(scene: Scene) -> None:
    """It may write to every queue; what it writes proves nothing."""
    forger = HostsBus(scene.thief.conf(), "ctl9", lambda host, introducing=False: scene.thief.secret(THIEF),
                      conductor=True)
    with pytest.raises(errors.Unavailable, match="rejected this conductor's order"):
        forger.client(ComputeRPC).ping(OTHER)
    forger.close()
    scene.cloud.compute(OTHER).wait_log("from ctl9 refused", 5)
    others_go_on(scene.cloud)


@pytest.mark.parametrize("what", ALLOWED)
def test_host_when_it_registers_another_daemon_then_it_is_let(scene: Scene, what: str) -> None:
    SAID[what][1](scene.thief.conductor(), scene)


@pytest.mark.parametrize("deed", HARMLESS)
def test_broker_when_the_thief_reaches_for_what_is_not_its_own_then_nothing_stops_it(scene: Scene, deed: str) -> None:
    if deed == "the control daemons' vhost":
        scene.thief.channel(scene.cloud.broker_url)
    else:
        BY_THE_BROKER[deed](scene.thief)


def test_thief_when_it_speaks_as_a_control_daemon_then_it_is_an_administrator(scene: Scene) -> None:
    """Why the page says that one host is the cloud."""
    bus = Bus(scene.thief.conf(), "anything")
    try:
        assert OTHER in {one.host for one in bus.client(ConductorRPC).list_enrolled_hosts()}
    finally:
        bus.close()


def test_contract_of_hosts_when_it_is_asked_without_a_proof_then_it_says_nothing(scene: Scene) -> None:
    bus = HostsBus(scene.thief.conf(), OTHER, lambda host, introducing=False: ("0" * 64,))
    try:
        with pytest.raises(errors.NovaError):
            bus.client(ConductorHostRPC).known_host(OTHER)
    finally:
        bus.close()
