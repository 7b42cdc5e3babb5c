"""What Neutron's networks, ports and groups refuse at once, before there is a server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nova import context, errors
from nova.conductor.networking.back_end import NetworkRequest
from nova.conductor.neutron.admission import PortAdmission
from nova.conductor.neutron.cache import NeutronCache
from nova.model.network.networks import RequestedNetwork
from tests.fakes.neutron import FakeNeutron

JOE = context.RequestContext(request_id="req-1", user_id="joe", project_id="demo", token="joe's")
ADMIN = context.RequestContext(request_id="req-2", user_id="root", project_id="demo", token="root's", is_admin=True)


class Desk:
    def __init__(self) -> None:
        self.neutron = FakeNeutron(tokens={"joe's": "demo"})
        self.net = self.neutron.add_network()
        client = self.neutron.client()
        self.now = 1000.0
        self.known = NeutronCache(client, lambda: self.now)
        self.admission = PortAdmission(client, self.known)
        client.extensions()

    def admit(self, *wanted: RequestedNetwork, who: context.RequestContext = JOE, **fields: Any) -> Any:
        self.neutron.requests.clear()
        request = NetworkRequest("demo", tuple(wanted) or None)._replace(**fields)
        with context.entered(who):
            return self.admission.admit(request)


@pytest.fixture
def cloud() -> Desk:
    return Desk()


def port(port_id: str) -> RequestedNetwork:
    return RequestedNetwork(port_id=port_id)


def network(network_id: str, **fields: Any) -> RequestedNetwork:
    return RequestedNetwork(network_id=network_id, **fields)


def test_admit_when_nothing_is_requested_then_the_only_network_and_two_calls(cloud):
    admitted = cloud.admit()
    assert admitted.networks == (network(cloud.net),) and admitted.security_groups == ("default",)
    assert len(cloud.neutron.requests) == 2  # networks, quota
    cloud.admit()
    assert len(cloud.neutron.requests) == 1  # how much room there is, is known for a while


def test_admit_when_none_is_requested_then_none_and_no_call(cloud):
    assert cloud.admit(networks=()).networks == () and cloud.neutron.requests == []


def test_admit_when_there_are_several_then_one_must_be_named(cloud):
    other = cloud.neutron.add_network("other", tenant_id="x", project_id="x", shared=True)
    for who in (JOE, ADMIN):
        with pytest.raises(errors.Conflict, match="Multiple possible networks found, use a Network ID"):
            cloud.admit(who=who)
    assert cloud.admit(network(other)).networks == (network(other),)


@pytest.mark.parametrize("who", [JOE, ADMIN], ids=["user", "admin"])
def test_admit_when_others_have_networks_then_they_are_none_of_the_projects(cloud, who):
    cloud.neutron.add_network("theirs", tenant_id="x", project_id="x")
    cloud.neutron.add_network("public", tenant_id="x", project_id="x", **{"router:external": True})
    assert cloud.admit(who=who).networks == (network(cloud.net),)


def test_admit_when_the_network_is_anothers_then_it_is_not_found(cloud):
    theirs = cloud.neutron.add_network("theirs", tenant_id="x", project_id="x")
    with pytest.raises(errors.Invalid, match=f"Network {theirs} could not be found"):
        cloud.admit(network(theirs))


@pytest.mark.parametrize("who", [JOE, ADMIN], ids=["user", "admin"])
def test_admit_when_the_network_is_external_then_only_who_policy_lets(cloud, who):
    public = cloud.neutron.add_network("public", tenant_id="x", project_id="x", **{"router:external": True})
    with pytest.raises(errors.Forbidden, match="external network"):
        cloud.admit(network(public), who=who)
    assert cloud.admit(network(public), who=who, external=True).networks == (network(public),)
    with context.entered(who), pytest.raises(errors.Forbidden, match="external network"):
        cloud.admission.one("demo", network(public))
    with context.entered(who):
        assert cloud.admission.one("demo", network(public, may_be_external=True)).network_id == public
    shared = cloud.neutron.add_network("shared", tenant_id="x", shared=True, **{"router:external": True})
    assert cloud.admit(network(shared)).networks == (network(shared),)


def test_admit_when_a_network_has_no_subnet_then_it_is_refused(cloud):
    bare = cloud.neutron.add_network("bare", cidrs=())
    with pytest.raises(errors.Invalid, match="requires a subnet"):
        cloud.admit(network(bare))


@pytest.mark.parametrize("change, error, words", [
    ({"device_id": "someone"}, errors.Conflict, "still in use"),
    ({"tenant_id": "x", "project_id": "x"}, errors.Invalid, "could not be found"),
    ({"fixed_ips": []}, errors.Invalid, "requires a FixedIP")])
def test_admit_when_a_port_cannot_be_had_then_it_is_refused(cloud, change, error, words):
    made = cloud.neutron.add_port(cloud.net, **change)
    if "fixed_ips" in change:
        cloud.neutron.ports[made]["fixed_ips"] = []
    with pytest.raises(error, match=words):
        cloud.admit(port(made))


def test_admit_when_a_port_needs_no_address_yet_then_it_is_taken(cloud):
    made = cloud.neutron.add_port(cloud.net, ip_allocation="deferred")
    cloud.neutron.ports[made]["fixed_ips"] = []
    assert cloud.admit(port(made)).networks == (port(made),)


def test_admit_when_a_port_is_unknown_or_named_twice_or_for_several_then_it_is_refused(cloud):
    made = cloud.neutron.add_port(cloud.net)
    with pytest.raises(errors.Invalid, match="could not be found"):
        cloud.admit(port("no-such-port"))
    with pytest.raises(errors.Invalid, match="more than once"):
        cloud.admit(port(made), port(made))
    with pytest.raises(errors.Invalid, match="multiple instances"):
        cloud.admit(port(made), servers=2)


def test_admit_when_an_address_is_requested_then_it_must_be_of_a_subnet_and_free(cloud):
    assert cloud.admit(network(cloud.net, fixed_ip="10.1.0.9")).networks[0].fixed_ip == "10.1.0.9"
    with pytest.raises(errors.Invalid, match="not an address of network"):
        cloud.admit(network(cloud.net, fixed_ip="10.2.0.9"))
    cloud.neutron.add_port(cloud.net, fixed_ips=[{"ip_address": "10.1.0.9"}])
    with pytest.raises(errors.Invalid, match="in use already"):
        cloud.admit(network(cloud.net, fixed_ip="10.1.0.9"))
    with pytest.raises(errors.Invalid, match="one server only"):
        cloud.admit(network(cloud.net, fixed_ip="10.1.0.10"), servers=2)


def test_groups_when_unknown_or_ambiguous_then_refused_and_ids_always_work(cloud):
    first, second = cloud.neutron.add_group("web"), cloud.neutron.add_group("web")
    with pytest.raises(errors.Invalid, match="not found"):
        cloud.admit(security_groups=("nosuch",))
    with pytest.raises(errors.Conflict, match="Multiple security groups"):
        cloud.admit(security_groups=("web",))
    admitted = cloud.admit(security_groups=(first, second, first))
    assert (admitted.security_groups, admitted.group_ids) == (("web",), (first, second))


def test_groups_when_one_is_called_like_the_id_of_another_then_an_id_is_an_id(cloud):
    web = cloud.neutron.add_group("web")
    cloud.neutron.add_group(web)
    assert cloud.admit(security_groups=(web,)).group_ids == (web,)
    assert cloud.admit(security_groups=("web",)).group_ids == (web,)
    assert cloud.admit(security_groups=("default",)).group_ids == ()


def test_groups_when_the_network_has_no_port_security_then_none_can_be_asked_for(cloud):
    bare = cloud.neutron.add_network("bare", port_security_enabled=False)
    cloud.neutron.add_group("web")
    with pytest.raises(errors.Invalid, match="port_security_enabled"):
        cloud.admit(network(bare), security_groups=("web",))
    assert cloud.admit(network(bare), security_groups=("default",)).security_groups == ()
    assert cloud.admit(network(bare), network(cloud.net)).security_groups == ("default",)


def test_groups_when_all_ports_are_given_then_the_server_brings_none_of_its_own(cloud):
    cloud.neutron.add_group("web")
    given = port(cloud.neutron.add_port(cloud.net))
    for words in ((), ("default",), ("web",)):
        assert cloud.admit(given, security_groups=words).security_groups == ()
    with pytest.raises(errors.Invalid, match="not found"):
        cloud.admit(given, security_groups=("nosuch",))
    assert cloud.admit(given, network(cloud.net), security_groups=("web",)).security_groups == ("web",)


def test_quota_when_there_is_no_room_for_all_ports_then_refused_at_once(cloud):
    cloud.neutron.quotas["demo"] = 5
    cloud.admit(servers=5)
    with pytest.raises(errors.OverQuota, match="Maximum number of ports exceeded"):
        cloud.admit(network(cloud.net), network(cloud.net), servers=3)
    made = cloud.neutron.add_port(cloud.net)
    with pytest.raises(errors.OverQuota):
        cloud.admit(servers=5)
    cloud.admit(port(made))  # makes none
    assert not [one for one in cloud.neutron.requests if "quotas" in one[1]]


def test_quota_when_it_is_not_told_then_neutron_itself_will_say(cloud):
    cloud.neutron.extensions.discard("quota_details")
    bare = Desk()
    bare.neutron.extensions.discard("quota_details")
    fresh = bare.neutron.client()
    assert NeutronCache(fresh).ports_left("demo", 3) is None


@pytest.mark.parametrize("how", ["refused", "timeout", 500])
def test_admit_when_neutron_does_not_answer_then_the_error_names_it(cloud, how):
    cloud.neutron.trouble("", "", how, times=10)
    with pytest.raises(errors.Unavailable, match="network service"):
        cloud.admit()


def test_known_when_time_goes_by_then_it_is_asked_for_again(cloud):
    cloud.known.networks([cloud.net])
    cloud.neutron.requests.clear()
    cloud.known.networks([cloud.net])
    assert cloud.neutron.requests == []
    cloud.now += 61
    cloud.known.networks([cloud.net])
    assert len(cloud.neutron.requests) == 1


def test_one_when_an_interface_is_for_a_server_that_lives_then_it_is_resolved(cloud):
    with context.entered(JOE):
        assert cloud.admission.one("demo", RequestedNetwork(tag="t")) == network(cloud.net, tag="t")
        request = network(cloud.net, fixed_ip="10.1.0.9")
        assert cloud.admission.one("demo", request) == request
    with context.entered(JOE), pytest.raises(errors.NotFound):
        cloud.admission.one("demo", network("11111111-1111-1111-1111-111111111111"))
    with context.entered(JOE), pytest.raises(errors.NotFound):
        cloud.admission.one("demo", port("11111111-1111-1111-1111-111111111111"))
    cloud.neutron.networks.clear()
    with context.entered(JOE), pytest.raises(errors.Invalid, match="No network"):
        cloud.admission.one("demo", msgspec.structs.replace(RequestedNetwork()))
