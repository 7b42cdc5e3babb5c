"""What is asked of Neutron, Glance and Cinder for our users while these do not answer, or something else does in their
place: 503 that names the service, never an empty list and never a thing that seems to be missing."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from keystoneauth1 import session as ksession
from requests.adapters import BaseAdapter

from nova import context, errors
from nova.clients.cinder import Cinder
from nova.clients.cinder_caller import CinderCaller
from nova.clients.glance import Glance
from nova.clients.neutron import Neutron
from nova.clients.neutron_caller import NeutronCaller
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.conductor.neutron.proxies.floating import FloatingByNeutron
from nova.conductor.neutron.proxies.groups import GroupsByNeutron
from nova.conductor.neutron.proxies.networks import NetworksByNeutron
from nova.conductor.queries.images import ImageQueries
from nova.conductor.queries.volumes import VolumeQueries
from nova.model.base import Scope
from nova.model.image.images import ImageQuery, NewImage
from nova.model.network.floating import FloatingQuery
from nova.model.network.security_groups import NewSecurityGroup, SecurityGroupQuery, SecurityGroupUpdate
from nova.model.volumes import VOLUME, NewVolume, NewVolumeSnapshot, VolumeMetadataChange, VolumeQuery
from nova.rpc.contracts.conductor_networks import FloatingCalls, NetworkCalls, SecurityGroupCalls
from nova.rpc.contracts.conductor_volumes import VolumeProxyCalls
from tests.fakes.cinder import Ours
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO

ID, SCOPE, URL = new_uuid(), Scope(project_id="demo"), "http://neighbour.invalid"

#: What becomes of every request: no answer, a status, or a body that no service of these sends.
TROUBLES: dict[str, Exception | int | bytes] = {
    "refused": requests.ConnectionError("refused"), "timeout": requests.ReadTimeout("timeout"),
    **{str(status): status for status in (429, 500, 502, 503, 504)},
    "page": b"<html><body>Welcome to nginx!</body></html>", "list": b"[]", "object": b"{}", "null": b"null",
    "empty": b""}


class Troubled(BaseAdapter):
    def __init__(self, trouble: Exception | int | bytes) -> None:
        super().__init__()
        self._trouble, self.requests = trouble, 0

    def send(self, request: requests.PreparedRequest, **named: Any) -> requests.Response:  # type: ignore[override]
        self.requests += 1
        if isinstance(self._trouble, Exception):
            raise self._trouble
        answer = requests.Response()
        answer.status_code = self._trouble if isinstance(self._trouble, int) else 200
        answer.raw = io.BytesIO(self._trouble if isinstance(self._trouble, bytes) else b"")
        answer.request, answer.url = request, str(request.url)
        return answer

    def close(self) -> None:
        """Nothing is open."""


class Proxies:
    """The parts of the conductor that ask for users; one transport for all that they ask."""

    def __init__(self, trouble: Exception | int | bytes) -> None:
        self.transport = Troubled(trouble)
        http = requests.Session()
        http.mount(URL, self.transport)

        def service(name: str, address: str) -> tuple[ServiceEndpoint, Credentials]:
            return (ServiceEndpoint(name, name, (address,), retries=1, retry_wait_s=0.0),
                    Credentials(ksession.Session(session=http), Ours(address)))
        neutron = Neutron(NeutronCaller(*service("network", URL)), doubts_s=())
        deps: Any = SimpleNamespace(images=Glance(Caller(*service("image", URL))),
                                    volumes=Cinder(CinderCaller(*service("volume", f"{URL}/v3"))))
        self.networks, self.floating = NetworksByNeutron(neutron), FloatingByNeutron(deps, neutron, "public")
        self.groups, self.images, self.volumes = GroupsByNeutron(deps, neutron), ImageQueries(deps), VolumeQueries(deps)


Ask = Callable[[Proxies], object]
LISTS: dict[str, Ask] = {
    "list_networks": lambda at: at.networks.list_networks(SCOPE),
    "list_floating_pools": lambda at: at.floating.list_floating_pools(SCOPE),
    "list_floating_addresses": lambda at: at.floating.list_floating_addresses(FloatingQuery(scope=SCOPE)),
    "list_security_groups": lambda at: at.groups.list_security_groups(SecurityGroupQuery(scope=SCOPE)),
    "list_images": lambda at: at.images.list_images(ImageQuery()),
    "list_volumes": lambda at: at.volumes.list_volumes(VolumeQuery()),
    "list_volume_snapshots": lambda at: at.volumes.list_volume_snapshots(VolumeQuery())}
SHOWS: dict[str, Ask] = {
    "get_network": lambda at: at.networks.get_network(ID, SCOPE),
    "get_floating_address": lambda at: at.floating.get_floating_address(ID, SCOPE),
    "get_security_group": lambda at: at.groups.get_security_group(ID, SCOPE),
    "get_image": lambda at: at.images.get_image(ID),
    "get_volume": lambda at: at.volumes.get_volume(ID),
    "get_volume_snapshot": lambda at: at.volumes.get_volume_snapshot(ID)}
WRITES: dict[str, Ask] = {
    "allocate_floating_address": lambda at: at.floating.allocate_floating_address("demo", None),
    "release_floating_address": lambda at: at.floating.release_floating_address(ID, SCOPE),
    "create_security_group": lambda at: at.groups.create_security_group(NewSecurityGroup(
        name="web", description="", project_id="demo")),
    "update_security_group": lambda at: at.groups.update_security_group(SecurityGroupUpdate(
        id=ID, scope=SCOPE, name="web")),
    "delete_security_group": lambda at: at.groups.delete_security_group(ID, SCOPE),
    "update_image_properties": lambda at: at.images.update_image_properties(ID, {"a": "b"}, (), False),
    "register_image": lambda at: at.images.register_image(NewImage(id=ID, name="i")),
    "update_image": lambda at: at.images.update_image(ID, {"a": "b"}),
    "create_volume": lambda at: at.volumes.create_volume(NewVolume(size_gb=1, name="v")),
    "create_volume_snapshot": lambda at: at.volumes.create_volume_snapshot(NewVolumeSnapshot(volume_id=ID, name="s"))}
#: What is answered without a body, so that only a missing or refusing answer can be told.
BARE: dict[str, Ask] = {
    "delete_security_rule": lambda at: at.groups.delete_security_rule(ID, SCOPE),
    "delete_image": lambda at: at.images.delete_image(ID),
    "delete_volume": lambda at: at.volumes.delete_volume(ID),
    "delete_volume_snapshot": lambda at: at.volumes.delete_volume_snapshot(ID),
    "change_volume_metadata": lambda at: at.volumes.change_volume_metadata(VolumeMetadataChange(
        kind=VOLUME, id=ID, items={"a": "b"}))}
#: They look at the server's row or group first, and are asked in the tests of Neutron's proxies.
OF_SERVERS = {"associate_floating_address", "disassociate_floating_address", "create_security_rule",
              "list_server_security_groups", "change_group_membership"}


def refused(ask: Ask, trouble: Exception | int | bytes) -> tuple[int, str]:
    """The status of what is raised, and its message; somebody was asked."""
    proxies = Proxies(trouble)
    with context.entered(DEMO), pytest.raises(errors.NovaError) as caught:
        ask(proxies)
    assert proxies.transport.requests
    return caught.value.status, caught.value.message


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", [*LISTS, *SHOWS, *WRITES])
def test_call_when_the_neighbour_does_not_answer_then_it_is_503_and_names_it(name: str, trouble: str) -> None:
    status, message = refused({**LISTS, **SHOWS, **WRITES}[name], TROUBLES[trouble])
    assert status == 503 and any(word in message.lower() for word in ("network", "image", "volume")), message


@pytest.mark.parametrize("trouble", [name for name, how in TROUBLES.items() if not isinstance(how, bytes)])
@pytest.mark.parametrize("name", BARE)
def test_delete_when_the_neighbour_does_not_answer_then_it_is_503(name: str, trouble: str) -> None:
    assert refused(BARE[name], TROUBLES[trouble])[0] == 503


@pytest.mark.parametrize("name", LISTS)
def test_list_when_nobody_there_has_such_a_list_then_it_is_503_and_not_a_thing_that_is_missing(name: str) -> None:
    assert refused(LISTS[name], 404)[0] == 503


@pytest.mark.parametrize("name", SHOWS)
def test_show_when_the_neighbour_has_no_such_thing_then_it_is_missing(name: str) -> None:
    assert name == "get_network" or refused(SHOWS[name], 404)[0] == 404


def test_calls_of_this_test_are_all_that_are_passed_on() -> None:
    asked = {*LISTS, *SHOWS, *WRITES, *BARE, *OF_SERVERS}
    by_neutron = ((NetworkCalls, NetworksByNeutron), (FloatingCalls, FloatingByNeutron),
                  (SecurityGroupCalls, GroupsByNeutron))
    passed_on = {name for calls, proxy in by_neutron for name in vars(calls) if hasattr(proxy, name)}
    passed_on |= {name for name in (*vars(VolumeProxyCalls), *vars(ImageQueries)) if not name.startswith("_")}
    assert asked == {name for name in passed_on if not name.startswith("_")}
