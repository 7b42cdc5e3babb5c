"""Whether there is a project: what Keystone says, over real HTTP, and what follows where it does not say it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3
from oslo_config import cfg

from nova import errors
from nova.clients import projects
from nova.clients.session import Credentials
from tests.fakes.keystone import FakeKeystone
from tests.unit.devel.served import PASSWORD, fake_cloud


@pytest.fixture
def server() -> Iterator[FakeKeystone]:
    with FakeKeystone({}, {"nova": "secret", "demo": "d"}) as fake:
        yield fake


def client(url: str, password: str = "secret") -> projects.Projects:
    auth = v3.Password(f"{url}/v3", username="nova", password=password, project_name="nova",
                       user_domain_id="default", project_domain_id="default")
    return projects.Projects(Credentials(ksession.Session(), auth))


def test_project_when_keystone_knows_it_then_nothing_and_when_not_then_it_is_refused_by_name(server, caplog):
    asked = client(server.url)
    asked.check("demo")
    for name in ("nope", "DEMO", "..", ".", "demo/../demo", "a b", "?x", "\N{SNOWMAN}"):
        with pytest.raises(errors.Invalid, match="is not a valid project"):
            asked.check(name)
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def test_project_when_it_is_asked_for_by_its_name_then_it_is_refused_and_by_its_id_it_is_not():
    with fake_cloud() as cloud:
        own = cloud.session("nova", "service", PASSWORD)
        asked = projects.Projects(Credentials(own, own.auth))
        [project] = own.get(f"{cloud.identity_url}/v3/projects?name=demo").json()["projects"]
        asked.check(project["id"])
        with pytest.raises(errors.service.NotAProject, match="demo is not a valid project"):
            asked.check("demo")


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == projects.LOG.name]


def test_project_when_keystone_cannot_be_reached_then_one_warning_and_nothing_is_refused(server, caplog):
    asked = client(server.url)
    server.__exit__()
    with caplog.at_level(logging.WARNING):
        asked.check("nope")
    assert len(warned(caplog)) == 1 and "nope" in warned(caplog)[0]


def test_project_when_our_credentials_are_wrong_then_one_warning_and_nothing_is_refused(server, caplog):
    with caplog.at_level(logging.WARNING):
        client(server.url, "wrong").check("nope")
    assert len(warned(caplog)) == 1


@pytest.mark.parametrize(("status", "body"), [
    (403, {"error": {"code": 403, "message": "You are not authorized"}}), (500, {}), (503, {}),
    (404, {}), (404, "<html>nginx</html>"), (400, {"error": {}}), (409, {})])
def test_project_when_the_answer_is_no_404_of_keystones_own_then_one_warning_and_nothing_is_refused(
        server, caplog, status, body):
    server.projects_answer = status, body
    with caplog.at_level(logging.WARNING):
        client(server.url).check("demo")
    assert len(warned(caplog)) == 1


def test_project_when_no_credentials_are_configured_then_nobody_is_asked():
    found = projects.of_group(cfg.ConfigOpts(), Credentials(ksession.Session(), None))
    found.check("anything")
    assert isinstance(found, projects.AnyProject)
