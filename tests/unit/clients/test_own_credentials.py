"""Whose fault it is: Keystone refuses our own credentials, while the service would answer its user."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from keystoneauth1 import identity
from keystoneauth1 import session as ksession

from nova import context, errors, metrics
from nova.clients import session
from nova.clients.glance import Glance
from tests.fakes.glance import FakeGlance
from tests.fakes.keystone import FakeKeystone

SECRET = "canary-of-the-password"


@pytest.fixture
def image_service() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def keystone(image_service: FakeGlance) -> Iterator[FakeKeystone]:
    with FakeKeystone({"image": image_service.url}, {"glance": "right"}) as fake:
        yield fake


def glance(keystone_url: str, password: str, *addresses: str) -> Glance:
    auth = identity.V3Password(f"{keystone_url}/v3", username="glance", password=password, project_name="glance",
                               user_domain_id="default", project_domain_id="default")
    service = session.ServiceEndpoint("image", "image", addresses, retries=0)
    return Glance(session.Caller(service, session.Credentials(ksession.Session(), auth, section="glance")))


def ask(client: Glance, image_id: str, as_user: bool) -> None:
    with context.entered(context.RequestContext(request_id="req-1", token="users")):
        client.show(image_id, as_user=as_user)


def counted(status: str) -> float:
    """Log-ins of ours that ended so."""
    return sum(sample.value for metric in metrics.OUTSIDE_REQUESTS.collect() for sample in metric.samples
               if sample.name.endswith("_count") and sample.labels["service"] == "identity"
               and sample.labels["status"] == status)


@pytest.mark.parametrize("as_user", [True, False])
def test_show_when_keystone_refuses_our_credentials_then_it_is_not_the_image_that_is_forbidden(
        keystone: FakeKeystone, image_service: FakeGlance, caplog: pytest.LogCaptureFixture, as_user: bool) -> None:
    client, image_id = glance(keystone.url, SECRET), image_service.add()
    with caplog.at_level(logging.ERROR), pytest.raises(errors.service.Credentials, match=r"\[glance\]") as raised:
        ask(client, image_id, as_user)
    assert raised.value.status == 503 and isinstance(raised.value, errors.Unavailable)
    assert "[glance]" in caplog.text and SECRET not in caplog.text + raised.value.message
    assert image_service.requests == []


@pytest.mark.parametrize("as_user", [True, False])
def test_show_when_keystone_is_away_then_it_is_named_and_not_the_image_service(image_service: FakeGlance,
                                                                               as_user: bool) -> None:
    before = counted("none")
    with pytest.raises(errors.service.Unavailable, match="The identity service does not answer"):
        ask(glance("http://127.0.0.1:9", "right"), image_service.add(), as_user)
    assert counted("none") == before + 1, "the alert NovaOutsideServiceFails sees it"


def test_show_when_the_address_is_configured_then_a_users_call_needs_no_token_of_ours(
        image_service: FakeGlance) -> None:
    ask(glance("http://127.0.0.1:9", SECRET, image_service.url), image_service.add(), as_user=True)
    assert [headers["X-Auth-Token"] for _, _, headers in image_service.requests] == ["users"]


@pytest.mark.parametrize("as_user", [True, False])
def test_show_when_our_credentials_are_right_then_the_service_is_asked(
        keystone: FakeKeystone, image_service: FakeGlance, as_user: bool) -> None:
    ask(glance(keystone.url, "right"), image_service.add(), as_user)
    assert len(image_service.requests) >= 1
