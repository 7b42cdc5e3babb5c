"""Limits as Keystone keeps them, over real HTTP: whose endpoint, which region, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3

from nova import errors
from nova.clients import keystone
from nova.clients.session import Credentials
from tests.fakes.keystone import REGION, FakeKeystone

WANTED = keystone.WantedEndpoint(None, "compute", None, "public", None)


@pytest.fixture
def server() -> Iterator[FakeKeystone]:
    with FakeKeystone({"compute": "http://nova", "image": "http://glance"}, {"nova": "secret"}) as fake:
        yield fake


def client(url: str, wanted: keystone.WantedEndpoint = WANTED, password: str = "secret",
           **more: Any) -> keystone.Keystone:
    auth = v3.Password(f"{url}/v3", username="nova", password=password, project_name="nova",
                       user_domain_id="default", project_domain_id="default")
    return keystone.Keystone(Credentials(ksession.Session(), auth), wanted, **more)


def test_limits_when_others_services_have_some_too_then_only_computes_are_read(server: FakeKeystone) -> None:
    server.register("servers", 10)
    server.register("servers", 99, service="image")
    server.limit("demo", "servers", 3)
    server.limit("other", "servers", 4)
    assert client(server.url).limits("demo") == ({"servers": 10}, {"servers": 3})
    assert client(server.url).limits("") == ({"servers": 10}, {})


def test_limits_when_some_are_for_all_regions_then_the_regions_own_stand_above(server: FakeKeystone) -> None:
    server.register("servers", 1)
    server.register("servers", 2, region=None)
    server.register("class:VCPU", 5, region=None)
    server.register("class:PCPU", 6, region="elsewhere")
    assert client(server.url).limits("demo").registered == {"servers": 1, "class:VCPU": 5}


@pytest.mark.parametrize("wanted", [
    keystone.WantedEndpoint("compute-internal", "", None, "", None), WANTED._replace(region=REGION),
    WANTED._replace(service_name="compute")])
def test_limits_when_the_endpoint_is_named_otherwise_then_it_is_found(server: FakeKeystone,
                                                                      wanted: keystone.WantedEndpoint) -> None:
    server.register("servers", 7)
    assert client(server.url, wanted).limits("demo").registered == {"servers": 7}


def test_limits_when_they_are_read_again_then_it_takes_two_requests(server: FakeKeystone) -> None:
    server.register("servers", 7)
    keystone_client = client(server.url)
    keystone_client.limits("demo")
    server.gets.clear()
    keystone_client.limits("demo")
    assert [path.partition("?")[0] for path in server.gets] == ["/v3/registered_limits", "/v3/limits"]


@pytest.mark.parametrize("wanted", [WANTED._replace(service_type="nope"), WANTED._replace(region="nowhere"),
                                    WANTED._replace(id="nope")])
def test_limits_when_there_is_no_such_endpoint_then_an_error_says_so(server: FakeKeystone,
                                                                     wanted: keystone.WantedEndpoint) -> None:
    with pytest.raises((errors.quota.LimitsNoEndpoint, errors.NotFound), match="nope|nowhere"):
        client(server.url, wanted).limits("demo")


def test_limits_when_keystone_is_down_or_refuses_then_the_error_names_it(server: FakeKeystone) -> None:
    with pytest.raises(errors.Unavailable, match="identity"):
        client("http://127.0.0.1:9").limits("demo")
    with pytest.raises(errors.Forbidden, match="identity"):
        client(server.url, password="wrong").limits("demo")
