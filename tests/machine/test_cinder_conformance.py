"""A real Cinder, with Keystone's tokens and files for volumes, answers as our client expects."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import requests
from keystoneauth1 import session as ksession
from keystoneauth1.identity import v3
from oslo_config import cfg

from nova import conf as nova_conf
from nova import context, errors
from nova.clients import cinder, session
from tests.contract.cinder_cases import CinderCases, Cloud
from tests.machine.conftest import made_sandbox
from tests.machine.live import adapter

if TYPE_CHECKING:
    from tests.machine.stack import Sandbox

pytestmark = pytest.mark.in_turn(4, 10)

#: What is next door alone: nova itself is not asked for anything.
VOLUMES = ("--driver", "fake", "--no-demo", "--volumes", "nfs", "--neighbours-only")
CONNECTOR = {"host": "host1", "ip": "10.200.0.11", "initiator": "iqn.2010-10.test:host1", "platform": "x86_64",
             "os_type": "linux", "multipath": False}


@pytest.fixture(scope="module")
def volumes_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, *VOLUMES) as made:
        yield made


class Door:
    """A way to a sandbox's Cinder, for our service user or another one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.http = requests.Session()
        self.http.mount("http://", adapter(sandbox.dial))

    def client(self, user: str = "nova", project: str = "service") -> cinder.Cinder:
        """As nova.conf there would have it: the address is the catalog's."""
        auth = v3.Password(self.sandbox.layout.url("keystone", "/v3"), username=user,
                           password=self.sandbox.secrets.password(user), user_domain_id="default",
                           project_name=project, project_domain_id="default")
        options = nova_conf.register(cfg.ConfigOpts())
        options([], project="nova", default_config_files=[])
        return cinder.of_groups(options.cinder, session.Credentials(ksession.Session(session=self.http), auth))

    @functools.cached_property
    def demo(self) -> context.RequestContext:
        """A request of the cloud's ordinary user."""
        token = self.sandbox.token("demo")
        answer = self.http.get(self.sandbox.layout.url("keystone", "/v3/auth/tokens"),
                               headers={"X-Auth-Token": token, "X-Subject-Token": token}, timeout=60)
        return context.RequestContext(request_id="req-1", token=token,
                                      project_id=answer.json()["token"]["project"]["id"])

    def set_quota(self, project_id: str, noun: str, number: int) -> None:
        answer = self.http.put(self.sandbox.layout.url("cinder", f"/v3/os-quota-sets/{project_id}"), timeout=60,
                               json={"quota_set": {noun: number}},
                               headers={"X-Auth-Token": self.sandbox.token("admin"),
                                        "OpenStack-API-Version": "volume 3.67"})
        assert answer.ok, answer.text


@pytest.fixture(scope="module")
def door(volumes_sandbox: Sandbox) -> Door:
    return Door(volumes_sandbox)


class TestRealCinder(CinderCases):
    @pytest.fixture
    def cloud(self, door: Door) -> Cloud:
        return Cloud(door.client(), door.demo, CONNECTOR,
                     lambda noun, number: door.set_quota(str(door.demo.project_id), noun, number))

    def test_delete_when_the_user_himself_takes_a_connected_attachment_away_then_it_stays(self, cloud, door):
        """Cinder would ask nova, which is not there: it does not give it back then either."""
        attachment = cloud.client.attach(cloud.volume(), cloud.server(), CONNECTOR)
        answer = door.http.delete(door.sandbox.layout.url("cinder", f"/v3/attachments/{attachment.id}"), timeout=60,
                                  headers={"X-Auth-Token": cloud.user.token, "OpenStack-API-Version": "volume 3.67"})
        assert answer.status_code in (409, 500)
        assert cloud.client.get_attachment(attachment.id).connection is not None

    def test_call_when_our_user_lacks_the_role_service_then_it_says_whose_credentials_are_refused(self, cloud, door):
        attachment = cloud.client.attach(cloud.volume(), cloud.server(), CONNECTOR)
        with pytest.raises((errors.volume.Credentials, errors.volume.InUseByService)):
            door.client("admin", "admin").delete_attachment(attachment.id)
        assert cloud.client.get_attachment(attachment.id).connection is not None
