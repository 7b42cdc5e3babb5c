"""A cloud whose EC2 API the clients of Amazon's judge: nova-all with a volume service beside, and the clients.

    @judges("RunInstances", "TerminateInstances")
    def test_...(amazon: Amazon) -> None:

A test that judges actions must see each of them answered with 200, and every answer in today's shape is held against
botocore's model.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import boto3
import pytest
from boto.ec2.connection import EC2Connection
from boto.ec2.regioninfo import EC2RegionInfo
from botocore.config import Config
from libcloud.compute.drivers.ec2 import EucNodeDriver

from nova.devel.running import RunningCloud
from tests.fakes.cinder import FakeCinder
from tests.functional.ec2_wire import Call, Wire, faults_of

PATH = "/services/Cloud"
REGION = "RegionOne"
LAST_OLD = "2014-02-01"
POOL = "203.0.113.0/28"
CONF = """[DEFAULT]
ec2_signature_versions = 0,1,2,4
[quota]
instances = -1
cores = -1
ram = -1
[cinder]
auth_section = keystone_authtoken
endpoint_template = {volumes}
"""


class Keys(NamedTuple):
    access: str
    secret: str


class SignedBefore2012(EC2Connection):
    """boto 2 as it signed by itself then: version 2, in the form."""

    def _required_auth_capability(self) -> list[str]:
        return ["ec2"]


class UsersProjects(dict[str, str]):
    """Token -> project, as the cloud's Keystone says it: the volume service keeps projects apart."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud: RunningCloud | None = None

    def get(self, token: str, default: Any = None) -> Any:
        if token and token not in self and self.cloud:
            admin = self.cloud.session("admin")
            found = admin.get(f"{self.cloud.auth_url}/auth/tokens", headers={"X-Subject-Token": token},
                              raise_exc=False)
            token_of = found.json()["token"] if found.status_code == 200 else {}
            roles = {role["name"] for role in token_of.get("roles", ())}
            self[token] = "" if {"admin", "service"} & roles else token_of.get("project", {}).get("id", "")
        return super().get(token) or default


class Amazon:
    """The cloud, and clients at it. ``user``: of the keys; ``other``: of another project; ``reader``: may look only.
    ``state``: the cloud's folder, where it is kept."""

    def __init__(self, cloud: RunningCloud, cinder: FakeCinder, state: str = "") -> None:
        self.cloud, self.cinder, self.state = cloud, cinder, state
        self.root = cloud.auth_url.removesuffix("/identity/v3")
        self.wire = Wire(urlsplit(self.root).port or 0)
        self.endpoint = f"http://127.0.0.1:{self.wire.port}{PATH}"
        self._keys: dict[str, Keys] = {}

    # -- whose it is

    def keys(self, user: str = "demo") -> Keys:
        """Made as ``openstack ec2 credentials create`` does."""
        if user not in self._keys:
            session = self.cloud.session("admin") if user in ("other", "reader") else self.cloud.session(user)
            who = self._made(user) if user in ("other", "reader") else (session.get_user_id(),
                                                                        session.get_project_id())
            made = session.post(f"{self.cloud.auth_url}/users/{who[0]}/credentials/OS-EC2",
                                json={"tenant_id": who[1]}).json()["credential"]
            self._keys[user] = Keys(made["access"], made["secret"])
        return self._keys[user]

    def _made(self, name: str) -> tuple[str, str]:
        """(user, project): ``reader`` in demo's project with that role alone; any other in one of its own."""
        admin, url = self.cloud.session("admin"), self.cloud.auth_url
        project = self.cloud.session().get_project_id() if name == "reader" else admin.post(
            f"{url}/projects", json={"project": {"name": name}}).json()["project"]["id"]
        user = admin.post(f"{url}/users", json={"user": {"name": name, "password": "secret"}}).json()["user"]["id"]
        wanted = "reader" if name == "reader" else "member"
        roles = {role["name"]: role["id"] for role in admin.get(f"{url}/roles").json()["roles"]}
        admin.put(f"{url}/projects/{project}/users/{user}/roles/{roles[wanted]}")
        return user, str(project)

    def project(self, user: str = "demo") -> str:
        return str(self.cloud.session(user).get_project_id())

    # -- clients

    @functools.cached_property
    def ec2(self) -> Any:
        """boto3, as demo."""
        return self.boto3()

    def boto3(self, user: str = "demo", **keys: str) -> Any:
        own = self.keys(user)
        return boto3.client("ec2", endpoint_url=self.endpoint, region_name=REGION,
                            config=Config(retries={"max_attempts": 0}), **{
                                "aws_access_key_id": own.access, "aws_secret_access_key": own.secret, **keys})

    @functools.cached_property
    def objects(self) -> Any:
        """boto3's resource, as demo."""
        own = self.keys()
        return boto3.resource("ec2", endpoint_url=self.endpoint, region_name=REGION, aws_access_key_id=own.access,
                              aws_secret_access_key=own.secret)

    def boto2(self, version: str | None = None, user: str = "demo", v2: bool = False) -> EC2Connection:
        """``version``: of the API, 2014-10-01 if not said. ``v2``: signed as before 2012."""
        own = self.keys(user)
        found = (SignedBefore2012 if v2 else EC2Connection)(
            own.access, own.secret, is_secure=False, port=self.wire.port, path=PATH, api_version=version,
            region=EC2RegionInfo(name="nova", endpoint="127.0.0.1"))
        found.num_retries = 0
        return found

    def libcloud(self, user: str = "demo") -> Any:
        own = self.keys(user)
        return EucNodeDriver(own.access, own.secret, secure=False, host="127.0.0.1", port=self.wire.port, path=PATH)

    def aws(self, *words: str, user: str = "demo", fails: bool = False) -> Any:
        """awscli's answer; with ``fails``, what it says of the error."""
        own = self.keys(user)
        run = subprocess.run(
            [str(Path(sys.executable).with_name("aws")), "--endpoint-url", self.endpoint, "--output", "json", "ec2",
             *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env={
                 **os.environ, "AWS_ACCESS_KEY_ID": own.access, "AWS_SECRET_ACCESS_KEY": own.secret,
                 "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"})
        if fails:
            assert run.returncode != 0, run.stdout
            return run.stderr
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout) if run.stdout.strip() else None

    # -- what tests need

    @functools.cached_property
    def image(self) -> str:
        """Of the cloud's own image."""
        return str(self.ec2.describe_images(Filters=[{"Name": "name", "Values": ["tiny"]}])["Images"][0]["ImageId"])

    def wait(self, waiter: str, client: Any = None, **what: Any) -> None:
        """One of boto3's waiters, that looks ten times a second."""
        found = (client or self.ec2).get_waiter(waiter)
        found.config.delay, found.config.max_attempts = 0.1, 150
        found.wait(**what)

    def run(self, count: int = 1, **more: Any) -> list[str]:
        """Instances that run."""
        made = self.ec2.run_instances(**{"ImageId": self.image, "MinCount": count, "MaxCount": count,
                                         "InstanceType": "m1.tiny", **more})
        ids = [one["InstanceId"] for one in made["Instances"]]
        self.wait("instance_running", InstanceIds=ids)
        return ids

    def volume(self, size: int = 1, **more: Any) -> str:
        """One that is available."""
        made = self.ec2.create_volume(Size=size, AvailabilityZone="nova", **more)["VolumeId"]
        self.wait("volume_available", VolumeIds=[made])
        return str(made)

    def pool(self) -> None:
        """Floating addresses, as the administrator makes them."""
        self.cloud.session("admin").post("/os-floating-ips-bulk", endpoint_filter={"service_type": "compute"}, json={
            "floating_ips_bulk_create": {"ip_range": POOL, "pool": "nova"}}, headers={
                "OpenStack-API-Version": "compute 2.1"})

    def close(self) -> None:
        self.wire.end()


def judges(*actions: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The test judges these actions: see ``judged``."""
    def marked(test: Callable[..., None]) -> Callable[..., None]:
        test.judged = actions  # type: ignore[attr-defined]
        return pytest.mark.usefixtures("judged")(test)  # type: ignore[no-any-return]
    return marked


@pytest.fixture
def judged(request: pytest.FixtureRequest, amazon: Amazon) -> Iterator[None]:
    """Each action was answered, and no answer has what a client would lose."""
    begin = len(amazon.wire.calls)
    yield
    calls = amazon.wire.calls[begin:]
    answered = {call.action for call in calls if call.status == 200}
    missing = set(request.function.judged) - answered
    assert not missing, f"never answered: {missing}"
    found = sorted({fault for call in calls if is_of_today(call) for fault in faults_of(call)})
    assert not found, "\n".join(found)


def is_of_today(call: Call) -> bool:
    return call.version > LAST_OLD or call.status >= 300


@pytest.fixture(scope="session")
def amazon() -> Iterator[Amazon]:
    projects = UsersProjects()
    with FakeCinder() as cinder, tempfile.TemporaryDirectory(prefix="nova-ec2-") as folder:
        more = Path(folder, "more.conf")
        more.write_text(CONF.format(volumes=cinder.url))
        state = str(Path(folder, "state"))
        with RunningCloud(more=("--config-file", str(more), "--state", state)) as cloud:
            projects.cloud, cinder.tokens = cloud, projects
            found = Amazon(cloud, cinder, state)
            found.pool()
            yield found
            found.close()
